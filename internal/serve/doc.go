// Package serve puts a whole Skein together in one process: the embedded
// nats-server (or connections to another one), the log, the commands, the read
// models, and a small HTTP server for health and metrics.
//
// # What it promises
//
//   - When Start returns without an error, commands and queries are taken. When it
//     returns an error, nothing is left running.
//   - Stop takes no new requests, finishes and answers those under way, ends what
//     runs in the background, and closes everything, in that order. What was
//     acknowledged is in the log, whether Stop was called or not.
//   - Without authentication and TLS, nothing listens but on loopback. HTTP has
//     neither, and stays there.
//
// # What runs where
//
// Appends, read models, queries, and what tools and hooks ask have a connection
// each, so that a burst of one does not delay the others. When it stops, runs are let
// go first: their tools ask for commands and queries. Work of which there is to be one (the timeline, the
// submitted commands, the read models) runs under a lease: several processes may
// be started, and one of them does it.
package serve
