// Package mcp serves the threads of a caller at /mcp, over the Model Context Protocol: what
// `skein mcp` serves to one user (package threadmcp), with the keys and tokens of the edge.
//
// # What it promises
//
//   - A request acts with its credential alone, as every other of the edge: keys, rights, quotas
//     and idempotency are those of commands and queries.
//   - Who has no credential is told where the protocol's metadata are, and those which issuer's
//     tokens are taken.
//
// # What it does not
//
// It keeps no sessions: each request stands for itself, and the server sends nothing unasked.
package mcp
