// Package commands is the write side: it decides commands on the state of their
// thread, and appends the events to the log. Commands arrive as requests, which
// package service serves, or were published on skein.submit.
//
// # What it promises
//
//   - A reply means that the command's events are durable. An error means that
//     nothing was written, but for "unavailable" with outcome "unknown" in its
//     details, after which the same request with the same commandId is safe.
//   - A command with a commandId that was done within the last 24 hours gives
//     its first answer again, from any process and after any restart.
//   - Several processes may write the same thread: the log's expected sequence
//     decides, and whoever lost decides anew on what it had not seen. No command
//     is refused on the ground of a stale state.
//   - Content that a command brings for a file is stored before the command is
//     decided, so that no event names content that is not there.
//   - A command that has nothing to change is answered with the thread as the log
//     shows it, and leaves no trace: a repeat is decided anew.
//   - A command published on skein.submit is done once, in the order of its
//     thread; a refusal is recorded as command.rejected.
//
// # What it does not
//
// It does not know who may ask, and does not limit how much a tenant may ask: the
// server's permissions and package service do. It reads no read model.
//
// # The way of a command
//
//	package service: subject -> tenant and name      schema: body -> typed data
//	dispatcher: thread -> entry (state, queue)
//	  one goroutine an active thread: load, draft, decide, append, apply, answer
//
// What waits for a busy thread goes into one commit, each command with its own
// events and its own answer.
package commands
