// Package cleanup finishes the deletion of threads: it deletes the threads that work for
// a deleted one, and erases the contents of purged ones.
//
// # What it promises
//
//   - A deletion is noted in the bucket of threads with the batch that holds it, and the
//     note is removed when all is done. Until then every step may be repeated, so that a
//     crash at any moment leaves nothing undone.
//   - What a purged thread held is erased after the timeline has shown its tombstone: in
//     streams, buckets and object stores, and the commits last, since they say what else
//     there is (docs/erasure.md).
//   - It holds up neither the runner nor other deletions: what takes long or has to wait
//     is done in turns.
//   - [Cleaner.Sweep] removes documents of deleted threads that a server that was killed
//     has restored.
//
// # What it does not
//
// It does not purge a deleted thread's documents: the runner does, through its fences,
// before it hands the deletion over. It deletes no thread by itself, but submits a
// command.
//
// # What may enter
//
// Work that remains after a thread is deleted. It imports projections/buckets and what is
// below it, and not the runner.
package cleanup
