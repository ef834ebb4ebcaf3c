// Package cold reads the documents of cold threads from the log.
//
// A thread to which nothing was written for a long time is frozen: its documents leave the read
// models, but for its own one, which bears a mark (buckets.Mark), and those that tenants ask for
// without naming a thread. "The log alone is enough": what the documents said, a fold of the
// thread's log up to the sequence of its own document says. So nothing is stored for a cold
// thread, neither here nor in the object store, and there is nothing that could be lost.
//
//	frozen     archive.Freezer marks a thread's own document
//	removed    some minutes later, when the mark is certainly on the disk, its other documents go
//	read       queries fold its log, and keep some of these folds in memory
//	written    the runner folds it, writes its documents, and takes the mark off
//
// # What it promises
//
//   - A fold shows exactly what the documents showed: it is bound to the sequence of the thread's
//     own document, and refused if a copy of the log does not show that yet.
//   - Threads that are folded at once are bounded, and shared fairly between tenants.
//   - Memory for folds is bounded in bytes. A thread is folded once for all who ask for it at
//     the same time.
//
// # What it does not
//
// It writes nothing, and does not say which threads are cold.
//
// # What may enter
//
// What queries need of cold threads. It imports events, eventlog, projections/buckets and
// projections/documents.
package cold
