// Package query answers queries: from the read models as they are now, from a thread's
// own events as it was, or from the log.
//
// # What it promises
//
//   - A query that names a sequence or a version is answered from a read model that
//     shows it, or with projection_behind, never from an older one.
//   - A thread that was deleted is not found, whatever a bucket still holds of it.
//   - An answer fits into a message: a list is cut at a page, and in a larger item notes
//     replace its largest values.
//   - A cursor is bound to the query that returned it; lists of items and messages cost
//     as much for a long thread as for a short one.
//
// # What it does not
//
// It writes nothing, apart from a tenant's own consumers of the timeline. What a query
// shows without minSeq or minVersion is as new as the runner is, which is usually
// milliseconds. It does not know who may ask; see package service.
//
// # What may enter
//
// One file for each kind of query, and the code that several of them share. It imports
// what is below the runner (projections/buckets, documents and definitions), and not the
// runner: any process can answer queries.
package query
