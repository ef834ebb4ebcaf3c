// Package eventlog is JetStream as the log of Skein: where commits are
// appended, read, and put on the timeline.
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
//   - The timeline holds each event of the log once and in order, also when
//     the relay is killed or runs twice: it is the only writer of its stream,
//     and every message it writes is conditional on the one before.
//   - What is derived (timeline, read models) is written through a
//     [derived.Fence], so that a writer which was replaced cannot write any more.
//   - What was erased ([Log.Erase]) is overwritten on the server's disk.
//   - Commits that were archived are read as before, with their sequences and
//     bytes, by [Log.Thread], [Log.Raw], [Log.Commit] and [Log.After].
//
// # What it does not
//
// It does not decide what may be appended (commands/thread does), and does not
// cache: a read asks the server. A read by direct get may lag on a cluster;
// whoever decides on it is kept right by the expected sequence.
//
// # Rooms
//
// streams and derived are below the log, which is built on them; chunks, queues and backup
// are above it. The archives' reader stays in the log: every read of a thread may go
// through an archive, and nothing outside has to know.
//
// # What may enter
//
// What appends commits, reads them, or puts them on the timeline. What reads or writes
// another stream has a room of its own.
//
// # Group commit
//
// One appender per process. What waits while a write is under way goes together
// in the next one. Up to [Crossover] commits go as plain publishes, pipelined;
// more go as one atomic batch, which costs the server about 2 ms whatever its
// size, but one fsync for all. Measured on two cores: at 8 the two take the same
// time, at 64 the batch is three times as fast, at 256 seven times.
package eventlog
