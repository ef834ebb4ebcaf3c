// Package server runs a whole Skein in one process: the embedded nats-server (or
// connections to another one), the log, the commands, the read models, and the HTTP edge
// with health and metrics.
//
// # What it promises
//
//   - When Start returns without an error, commands and queries are accepted. When it
//     returns an error, nothing is left running.
//   - Stop refuses new requests, finishes and answers those in flight, ends background
//     work, and closes everything, in that order. What was acknowledged is in the log,
//     whether Stop was called or not.
//   - Without authentication and TLS, every listener is on loopback, except that of
//     --ops-listen.
//
// # What runs where
//
// Appends, read models, queries, and the requests of tools and hooks have a connection
// each, so that a burst of one does not delay the others. On a stop, runs are drained
// first: their tools send commands and queries. Work that must run once (the timeline,
// the submitted commands, the read models) runs under a lease: of several processes,
// one of them does it.
package server
