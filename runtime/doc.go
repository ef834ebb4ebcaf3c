// Package runtime runs agents: it takes executions off their queue, calls
// reactors and tools, and records what comes of them, each boundary as one
// commit (EK 6, EK 7).
//
// # What it promises
//
//   - An execution that was accepted ends, whatever dies on the way: its queue
//     message is kept alive while a worker lives, handed over when the worker
//     does not, and made anew by the sweeper if it is lost.
//   - Only one worker writes for an execution at a time. A claim bears a token
//     that only grows; what an older claim sends is refused by the decision on
//     the thread, not by a clock.
//   - Ids are derived from the execution, so that a resumed run writes the same
//     ones. A tool call that has a result is never made again; one that may have
//     been made is repeated, with the same key, only if the tool is idempotent,
//     and otherwise waits for a person.
//   - A step records which items the model was shown, by id and digest, and
//     never a copy of them.
//   - A reactor or tool that fails, hangs, panics or answers nonsense ends its
//     step or call with a short text that says so, and the thread stays usable.
//
// # What it does not
//
// It decides nothing about threads: each of its commits is a command, decided
// by package commands on the state of the thread. It keeps nothing that the log
// does not have: a worker can be killed at any moment. It does not make a
// tool's effects happen once; only the tool can, with the key it is given.
//
// # The way of a turn
//
//	thread.react: context, trigger, execution, run.requested     one commit
//	worker: claim and step                                       same commit, or one
//	SKEIN_RUNS: one message an execution, until it ends or waits
//	  reactor: parts, reaction item, calls                       one commit
//	  tools:   results merged, step closed, next step            one commit
//	  ... until nothing continues: item, execution, thread       same commit
//	chunks of what the reactor streams go to SKEIN_CHUNKS meanwhile
//
// The worker of the process that stores the commit claims the run with it, if it
// has a place; else the queue gives it to any worker. The message of a run that
// was claimed so goes to its worker, from whoever is given it first; once it was
// delivered again, it is another worker's.
package runtime
