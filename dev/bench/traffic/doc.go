// Package traffic is what clients do to a Skein that is measured: the same operations over HTTP
// and over NATS, each as its users do them, with the time that each took.
package traffic
