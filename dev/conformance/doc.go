// Package conformance has libraries that others wrote read what Skein publishes and shows, where
// neither a server nor a network is needed. It has tests only.
package conformance
