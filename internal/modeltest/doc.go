// Package modeltest is for tests of models' endpoints. A [Protocol] writes any [Answer] in its form,
// so that one table of cases runs over all of them; an [Endpoint] is an HTTP server that a codec
// calls, and a [Strict] one refuses what the real endpoints are reported to refuse.
package modeltest
