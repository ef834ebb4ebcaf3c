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
// # Cold threads
//
// A thread to which nothing was written for a long time is frozen: its documents leave the read
// models, but for its own one, which bears a mark (buckets.Mark), and those that tenants ask for
// without naming a thread. "The log alone is enough": what the documents said, a fold of the
// thread's log up to the sequence of its own document says. So nothing is stored for a cold
// thread, neither here nor in the object store, and there is nothing that could be lost.
//
//		frozen     archive.Freezer marks a thread's own document
//		removed    some minutes later, when the mark is certainly on the disk, its other documents go
//		read       queries fold its log, and keep some of these folds in memory
//		written    the runner folds it, writes its documents, and takes the mark off
//
//	  - A fold shows exactly what the documents showed: it is bound to the sequence of the thread's
//	    own document, and refused if a copy of the log does not show that yet.
//	  - Threads that are folded at once are bounded, and shared fairly between tenants.
//	  - Memory for folds is bounded in bytes. A thread is folded once for all who ask for it at
//	    the same time.
//
// # The list of threads
//
// A directory lists the threads of each tenant by their last change: what the filters of lists look
// at, and no documents.
//
//   - It takes about 160 bytes a thread with a key of 15 letters, and the time of a list
//     depends on what is examined, not on how many threads there are.
//
// It stores nothing and follows nothing: what follows the bucket of threads applies each update. What
// it shows may be behind the documents.
//
// # Definitions
//
// [Definitions] reads the definitions of tenants: models, prompts, tools, agents and contexts.
//
//   - It returns what a definition is now from memory where it can, and is
//     told of changes by the bucket itself. What it returns may lag behind the log by
//     as much as the read model does, which is usually milliseconds.
//   - A definition with its version never changes: a run that notes the version can ask
//     for just that one, also when it was removed since.
//
// It changes no definition: the command definition.apply does. It does not know what a
// definition is used for.
//
// # What may enter
//
// One file for each kind of query, and the code that several of them share. It imports
// what is below the runner (projections/buckets and documents), and not the
// runner: any process can answer queries.
package query
