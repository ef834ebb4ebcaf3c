// Package client is the Go client of Skein: commands, queries and subscriptions
// over NATS.
//
// # What it promises
//
//   - A command carries an id, also where the caller gives none, and is repeated
//     with the same id until it is answered or its context ends. So a call that
//     returned did its work once, whatever was lost on the way.
//   - An error is an *events.Error: what the service answered, or unavailable. If
//     it is unavailable with the outcome "unknown" in its details, the command may
//     have been done; call again with the same id ([CommandID]).
//   - A [Timeline] gives each event once and in the order of the log. What a slow
//     reader, a lost connection or the server's retention took away is read from
//     the log; nothing is left out in silence.
//   - [Client.Chunks] gives the chunks of a run each once, in order and with an
//     end. What was missed is read from the stream that keeps them for an hour;
//     what has expired is told of.
//   - A [ThreadState] is a thread in the words of Standard Agents, over the same
//     commands and queries. What one handle wrote, it reads.
//   - A [Live] gives what is emitted while it listens, in the order of each emitter.
//     Nothing of it is kept anywhere.
//   - A handler of [Client.Consume] sees each event at least once, in order, and
//     the next one only after it returned without an error.
//
// # What it does not
//
// It keeps no state of threads and caches nothing: what a query answers is what
// the service says. Time travel, filters and pages are the service's.
//
// It needs the rights to publish on the tenant's commands and queries, to
// subscribe to its timeline, and to its own inboxes; none on streams. What is
// stored it asks of the service.
package client
