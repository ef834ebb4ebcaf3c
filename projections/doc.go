// Package projections is the runner: it folds the log into the read models of package
// documents, in key-value buckets. Packages below it do the rest of the read side:
//
//	buckets      how documents and checkpoints are stored, and how far they are
//	rebuild      folds the log again, compares, repairs
//	cleanup      finishes deletions: cascades, erasure
//	definitions  definitions of tenants, for those who run agents
//	cold         folds cold threads for queries
//	query        answers queries
//
// # What it promises
//
//   - A document shows exactly what the log says at the sequence that it bears.
//     It never goes back to an older one, whatever is restarted, killed or
//     rebuilt meanwhile.
//   - A commit that cannot be read stops nothing. It is counted, logged, remembered
//     by the checkpoints, and skipped.
//   - The log alone is enough: everything that the buckets hold can be folded again.
//
// # What it does not
//
// It decides no command and answers no query.
//
// # What may enter
//
// Code that reads the log from end to end and writes the buckets through their fences. It
// imports buckets, cleanup and rebuild, and neither queries nor the write side.
//
// # The runner
//
// There is one runner in the installation, under the lease [RunnerLease]. It folds
// commits in memory as they arrive, for up to a second and a half under load, and then
// writes each document that changed once, through one fence a bucket, so that a runner
// that was replaced stops at its first write:
//
//	notes of the threads whose documents are removed
//	documents of all buckets
//	notes of the threads that were deleted
//	the checkpoints of the buckets that were written to, when all that is stored
//	the purge of the documents of some deleted threads
//	the checkpoint of threads, which holds the progress of all
//
// Buckets are stored without waiting for the disk, so a crash of the server may lose
// the newest writes of a bucket. Documents and checkpoint of a bucket share one stream
// and its order: what is left of it is a state that it had. If every bucket still has the
// checkpoint that the one of threads names, or a newer one, the runner continues all of
// them from there; if not, each from its own checkpoint, in a new epoch, and a document
// that already shows a commit is not changed by it. A bucket that has lost its checkpoint,
// too, is filled by a rebuild while the runner runs (the index before it), and until then
// readers are told that nothing is certainly shown.
//
// # Deletions
//
// A thread's deletion is noted in the bucket of threads with the batch that holds it.
// The runner purges its documents, and package cleanup does the rest and removes the
// note.
//
// A purge takes a few milliseconds, so thousands of them would delay what others read. Before
// a batch is shown the documents of [Config.Purges] threads are purged, tenants in turn; the
// others follow between batches, at least one each time. Until then they have the note, queries
// do not find the thread, and a verification expects them.
//
// A server that is killed may restore what was purged within the last two minutes, after
// which it has written that to the disk. So there is a second note, [buckets.Removal],
// which the runner removes five minutes later, or ten. Each process removes what is
// restored of the threads that these notes name, before it is ready and after each
// reconnect. The checkpoint of threads says that there are such notes: after an older
// Skein, which writes none, all deleted threads are looked for, until its removals are on
// the disk, too.
package projections
