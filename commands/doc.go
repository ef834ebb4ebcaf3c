// Package commands is the write side: it decides commands on the state of their thread, and
// appends the events to the log. Commands arrive as requests, which package service serves, or
// published on skein.submit.
//
// # What it promises
//
//   - A reply means that the command's events are durable. An error means that
//     nothing was written, except "unavailable" with outcome "unknown" in its
//     details, after which the same request with the same commandId is safe.
//   - A command whose commandId was used within the last 24 hours returns its
//     first reply again, from any process and after any restart. Another command
//     with that id on the same thread is refused.
//   - Several processes may write the same thread: the log's expected sequence
//     decides, and the loser decides again on what it had not seen. No command
//     is refused because of a stale state.
//   - File content in a command is stored before the command is decided, so that
//     no event names content that is not stored.
//   - A command that changes nothing is answered with the thread as the log
//     shows it, and leaves no trace: a repeat is decided again.
//   - A command published on skein.submit is executed once, in the order of its
//     thread; a refusal is recorded as command.rejected.
//
// # What it does not
//
// It does not authenticate callers, and does not limit how much a tenant may ask: the server's
// permissions and package service do. It reads no read model.
//
// # The path of a command
//
//	package service: subject -> tenant and name      schema: body -> typed data
//	dispatcher: thread -> entry (state, queue)
//	one goroutine per active thread: load, draft, decide, append, apply, reply
//
// Commands that wait for a busy thread go into one commit, each with its own events and its
// own reply.
package commands
