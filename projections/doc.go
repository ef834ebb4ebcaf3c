// Package projections is the read side: it keeps the read models of package
// documents in key-value buckets, and answers queries from them.
//
// # What it promises
//
//   - A document shows exactly what the log says at the sequence that it bears.
//     It never goes back to an older one, whatever is restarted, killed or
//     rebuilt meanwhile.
//   - A query that names a sequence or a version is answered from a read model
//     that shows it, or with projection_behind, never from an older one.
//   - One commit that cannot be read stops nothing. It is counted, logged, kept
//     in mind by the checkpoints, and left out.
//   - The log alone is enough: [Runner.Rebuild] folds it anew beside the live
//     documents, names every difference, and repairs it while writes and
//     queries go on.
//
// # What it does not
//
// Nothing here decides anything: a refused command never gets this far. What a
// query shows without minSeq or minVersion is as new as the runner is, which is
// usually milliseconds.
//
// # The runner
//
// One runner in the installation, under the lease [RunnerLease]. It folds what
// comes in memory, for up to a second and a half under load, and then writes
// each document that changed once, through one fence a bucket, so that a runner
// which was replaced stops at its first write:
//
//	documents of all buckets
//	the ends of threads: their documents are purged
//	the checkpoints of the buckets that were touched, when all that is stored
//	the checkpoint of threads, which holds the progress of all
//
// Buckets are stored without waiting for the disk, so a crash of the server may
// take the newest writes of a bucket back. Documents and checkpoint of a bucket
// share one stream and its order: what is left of it is a state that it had. If
// every bucket still has the checkpoint that the one of threads tells of, or a newer
// one, all go on from there; if not, each goes on from its own checkpoint, in a new
// epoch, and each document that already shows a commit leaves it alone. A bucket that has lost its checkpoint
// too is filled by a rebuild beside the runner, the index before it, and until
// then readers are told that nothing is shown for sure.
//
// # Ends
//
// A thread's end is noted in the bucket of threads with the batch that holds it,
// and the note goes when all is done: its documents are purged, the threads that
// work for it are deleted, and after a purge what it held is erased (docs/erasure.md).
// What takes long, or has to wait, goes on beside the runner.
//
// # Rebuilding
//
// Documents belong to one thread, so the log is folded thread by thread. A live
// document at sequence s is compared with the fold up to s, so that no write
// makes a false difference; a repair is conditional on the key's own last
// message, so that it never replaces anything but what was judged. The running
// runner notices foreign writes by its fence, and begins again from its
// checkpoints.
package projections
