// Package rest is /api: every command and query over HTTP, resources for people, the files of
// threads, events as they happen, and a socket.
//
// # One table
//
// [Rows] is the table of all routes. A resource costs one row: it names the command or query
// that the route is, and which fields the path fills. The parameters of a query, and their
// types, are the fields of its Go struct. /api/openapi.json is written from the same rows.
//
// # What it promises
//
//   - A body is what docs/commands.md and docs/queries.md say, and is refused as they say. An
//     error's param names the field as the caller wrote it.
//   - A stream of events has each event once, in order, from any point that its reader names:
//     the point is in the log, never in this process. A reader that is slow, or that was away,
//     reads the log until it has caught up.
//   - Readers of one thread share one subscription; each event is decoded once for all of them.
//   - Contents of files are never in memory as a whole.
//
// # What it does not
//
// It decides nothing about rights: the client of an [edge.Caller] can do what its principal may.
package rest
