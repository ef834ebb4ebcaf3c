// Package mcp serves the threads of a caller at /mcp, over the Model Context Protocol: what
// `skein mcp` serves to one user (package threadmcp), with the keys and tokens of the edge.
//
// # What it promises
//
//   - A request acts with its credential alone, as every other of the edge: keys, rights, quotas
//     and idempotency are those of commands and queries.
//   - A request without a credential is refused with the address of the protocol's metadata,
//     which name the issuer of accepted tokens.
//
// # What it does not
//
// It keeps no sessions: each request is answered by itself, and the server sends nothing else.
package mcp
