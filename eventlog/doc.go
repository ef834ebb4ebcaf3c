// Package eventlog is JetStream as the log of Skein: it appends commits and reads them.
//
// # What it promises
//
//   - An append that returned is stored as the server's settings say: fsynced on
//     one node with sync_interval: always, stored by a quorum on a cluster.
//   - A commit is stored whole or not at all, and so are all commits of one
//     [Log.Append]. It is stored only if its aggregate's last sequence is the
//     one that was expected.
//   - An unknown outcome (a timeout, a lost connection) is looked up in the log
//     and never guessed; [Log.Append] returns stored, a *[ConflictError], or,
//     if the log cannot be asked either, a *[UnknownError].
//   - What was erased ([Log.EraseCommits]) is overwritten on the server's disk.
//   - Commits that were archived are read as before, with their sequences and
//     bytes, by [Log.Thread], [Log.Raw], [Log.Commit] and [Log.After].
//
// # What it does not
//
// It does not decide what may be appended (commands/thread does), and does not
// cache: a read asks the server. A read by direct get may lag on a cluster; a
// decision that rests on it is checked by the expected sequence.
//
// # Rooms
//
// Below the log, and imported by it: streams (reads and writes of JetStream) and assets
// (which streams there are). Above it: timeline, chunks, queues and backup. derived (one
// writer at a time of a derived stream) and snapshots (states of threads) stand on streams,
// and the log does not use them.
//
// The reader of archives is in the log: every read of a thread may continue in an archive,
// and no caller has to know.
//
// # What may enter
//
// What appends commits to the log or reads them from it. What reads or writes another stream
// has a room of its own.
//
// # Group commit
//
// One appender per process. Commits that wait while a write is in flight go together in the
// next one. Up to [Crossover] commits go as plain publishes, pipelined; more go as one atomic
// batch, which costs the server about 2 ms whatever its size, but one fsync for all. Measured
// on two cores: at 8 the two take the same time, at 64 the batch is three times as fast, at
// 256 seven times.
package eventlog
