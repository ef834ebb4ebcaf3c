// Package files keeps what the files of threads hold, in the JetStream object
// store thread_files, and looks into it.
//
// # What it promises
//
//   - Content is stored before the event that names it, whole and durable. It is
//     an object named {tenant}/{SHA-256}: shared by the versions of a file, by
//     files, threads and forks of a tenant, and by nothing else. Any client of
//     NATS object stores can read it.
//   - What a write did not finish is nothing: a path shows the content that it had
//     or the new one, never a mixture. The pieces of an upload that broke off are
//     taken away, at once if the service still runs, else by the collector.
//   - Content is given to whoever names a thread of their tenant whose history
//     names the content. A digest alone opens nothing.
//   - Memory does not grow with a file: content passes through in pieces of 512
//     KiB, a few of them at a time.
//   - The collector takes only what no thread's history names, and never what a
//     writer is about to name.
//
// # What it does not
//
// It does not decide which file stands at which path: commands/thread does, and
// projections shows it. It keeps no content of external files, and fetches none.
//
// # The way of a file
//
// A small one comes inside file.write. A larger one comes by an upload: the
// body of a file.write is sent to skein.file.{tenant}.content.put; the answer names
// the subject skein.upload.{tenant}.{id}, where one process takes the pieces in
// order, hashes and stores them, and does the command when they are all there.
// Reading is a request a piece on skein.file.{tenant}.content.get, which any
// process answers.
//
// # Collecting
//
// An object's last write is its age. A writer that finds its content there and
// older than [touchAfter] writes the object's entry again. The collector looks
// at entries older than [MinGrace] at least, then reads the log, and takes what the
// log does not name, on condition that the entry was not written again meanwhile.
// So what it takes was named by nobody, and nobody who found it there can still be
// about to name it.
//
// # Erasing
//
// When a thread is purged, [Eraser] takes the contents that it named and no other
// history names, by the same rule, and has the server overwrite them on its disk.
package files
