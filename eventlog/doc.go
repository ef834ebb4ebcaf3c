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
// # Consumers of the log
//
// [Follow] passes each commit, in order, to a function, and a [Position] says where to begin:
//
//	at, err := eventlog.OpenPosition(ctx, log, "thread_mail", "mail")
//	...
//	err = eventlog.Follow(ctx, log, "mail", at.Seq(), eventlog.FollowHandler{Take: func(e eventlog.Entry) error {
//		...
//		return at.Save(ctx, e.Seq)
//	}})
//
// It promises:
//
//   - Each commit from the position on is passed at least once, also after a crash: what was passed
//     after the last [Position.Save] is passed again.
//   - A position of another log, such as one that was restored from an older backup, is not used.
//   - Of two followers at the same time the one that was replaced cannot move the position.
//
// It lets two followers run at the same time, who both act on what they are passed: run it under a
// lease ([derived.Leases.Hold]), which also calls it again when it fails. It keeps no commit: who acts
// on one later reads it from the log again, which no longer has it if the thread was purged.
//
// # Who follows the log otherwise
//
// All read it with a [Tail]. The relay of the timeline and the runner of the read models
// do not use [Follow], since they write streams of their own as fenced writers (ADR 2). Their
// position is what these streams show: a position in another place could be ahead of them after a
// power cut, and a check of it would not refuse the writes of a replaced writer. And both decide by
// what is waiting in the tail when to flush and how large a batch is.
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
