// Package conformance holds what Skein publishes to libraries that others have written to read it,
// where neither a server nor a network is needed. It has tests only.
package conformance
