// Package follow is a consumer of the log: [Run] passes each commit, in order, to a function, and a
// [Position] says where to begin.
//
//	at, err := follow.Open(ctx, log, "thread_mail", "mail")
//	...
//	err = follow.Run(ctx, log, "mail", at.Seq(), follow.Handler{Take: func(e eventlog.Entry) error {
//		...
//		return at.Save(ctx, e.Seq)
//	}})
//
// # What it promises
//
//   - Each commit from the position on is passed at least once, also after a crash: what was passed
//     after the last [Position.Save] is passed again.
//   - A position of another log, such as one that was restored from an older backup, is not used.
//   - Of two followers at the same time the one that was replaced cannot move the position.
//
// # What it does not
//
// It lets two followers run at the same time, who both act on what they are passed: run it under a
// lease ([derived.Leases.Hold]), which also calls it again when it fails. It keeps no commit: who acts
// on one later reads it from the log again, which no longer has it if the thread was purged.
//
// # Who follows the log otherwise
//
// All read it with an [eventlog.Tail]. The relay of the timeline and the runner of the read models
// do not use this package, since they write streams of their own as fenced writers (ADR 2). Their
// position is what these streams show: a position in another place could be ahead of them after a
// power cut, and a check of it would not refuse the writes of a replaced writer. And both decide by
// what is waiting in the tail when to flush and how large a batch is.
//
// # What may enter
//
// What any consumer of the log needs. It knows commits and sequences, and nothing of what is done
// with them.
package follow
