// Package runtime runs agents: it takes executions off their queue, calls reactors and
// tools, and records the results, each boundary as one commit (EK 6, EK 7).
//
// # What it promises
//
//   - An accepted execution ends, whatever crashes on the way: its queue message is
//     kept alive while a worker lives, redelivered when the worker does not, and
//     re-created by the sweeper if it is lost.
//   - Only one worker writes for an execution at a time. A claim has a token that only
//     grows; a write of an older claim is refused by the decision on the thread, not by
//     a clock.
//   - Ids are derived from the execution, so a resumed run writes the same ones. A tool
//     call with a result is never made again; one that may have been made is repeated,
//     with the same key, only if the tool is idempotent, and otherwise waits for a
//     person.
//   - A step records which items the model was shown, by id and digest, and never a
//     copy of them.
//   - A reactor or tool that fails, hangs, panics or returns invalid data ends its step
//     or call with a short text that says so, and the thread stays usable.
//
// # What it does not
//
// It decides nothing about threads: each of its commits is a command, decided by
// package commands on the state of the thread. It keeps nothing that the log does not
// have: a worker can be killed at any moment. It does not make the effects of a tool
// happen exactly once; only the tool can, with the key of the call.
//
// # The steps of a turn
//
//	thread.react: context, trigger, execution, run.requested     one commit
//	worker: claim and step                                       same commit, or one
//	SKEIN_RUNS: one message an execution, until it ends or waits
//	  reactor: parts, reaction item, calls                       one commit
//	  tools:   results merged, step closed, next step            one commit
//	  ... until nothing continues: item, execution, thread       same commit
//	chunks of what the reactor streams go to SKEIN_CHUNKS meanwhile
//
// The worker in the process that stores the commit claims the run with it, if it has a
// place; else the queue delivers it to any worker. The message of a run that was
// claimed this way is forwarded to its worker by the first one that receives it; once
// it is redelivered, it belongs to the worker that receives it.
package runtime
