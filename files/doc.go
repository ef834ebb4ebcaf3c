// Package files stores the contents of threads' files in the JetStream object store
// thread_files, and reads and searches them.
//
// # What it promises
//
//   - Content is stored before the event that names it, complete and durable. It
//     is an object named {tenant}/{SHA-256}: shared by the versions of a file, by
//     files, threads and forks of a tenant, and by nothing else. Any client of
//     NATS object stores can read it.
//   - An unfinished write has no effect: a path shows its old content or the new
//     one, never a mixture. The pieces of an aborted upload are deleted, at once
//     if the service still runs, otherwise by the collector.
//   - Content is returned to callers that name a thread of their tenant whose
//     history names the content. A digest alone opens nothing.
//   - Memory does not grow with a file: content passes through in pieces of 512
//     KiB, a few of them at a time.
//   - The collector deletes only what no thread's history names, and never what a
//     writer is about to name.
//
// # What it does not
//
// It does not decide which file is at which path: commands/thread does, and projections shows
// it. It stores no content of external files, and fetches none.
//
// # The path of a file
//
// A small file is part of file.write. A larger one is uploaded: the body of a file.write is
// sent to skein.file.{tenant}.content.put; the reply names the subject
// skein.upload.{tenant}.{id}, where one process receives the pieces in order, hashes and
// stores them, and runs the command when all have arrived. Reading is a request per piece on
// skein.file.{tenant}.content.get, which any process answers.
//
// # Collecting
//
// The age of an object is that of its last write. A writer that finds its content in the
// store, older than [touchAfter], writes the object's entry again. The collector considers
// entries that are at least [MinGrace] old, then reads the log, and deletes what the log does
// not name, on condition that the entry was not written again meanwhile. So nothing named what
// it deletes, and no writer that found it can still be about to name it.
//
// # Erasing
//
// When a thread is purged, [Eraser] deletes the contents that it named and no other history
// names, by the same rule, and makes the server overwrite them on its disk.
package files
