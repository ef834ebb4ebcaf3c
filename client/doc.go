// Package client is the Go client of Skein: commands, queries and subscriptions over
// NATS.
//
// The type of the data says which command or query is meant, and package events has these
// types: [Client.Send] executes a command, and [Read] a query. What takes more than one
// request has a method or a type of its own, such as [Client.WaitRun] and [Timeline].
//
//	reply, err := c.Send(ctx, thread, events.CreateItem{Item: events.UserText("Hello.")})
//	page, err := client.Read(ctx, c.WithMinSeq(reply.Seq), events.ListItems{ThreadID: thread})
//
// # What it promises
//
//   - Every command carries an id, generated if the caller sets none, and is retried
//     with the same id until it is answered or its context ends. A call that returned
//     without an error was executed exactly once.
//   - An error is an *events.Error: the refusal of the service, or unavailable. If it
//     is unavailable with the outcome "unknown" in its details, the command may have
//     been executed; retry with the same id ([CommandID]).
//   - A [Timeline] returns each event once, in the order of the log. What a slow
//     reader, a lost connection or the server's retention missed is read from the log;
//     no event is skipped silently.
//   - [Client.Chunks] returns the chunks of a run, each once, in order and with an end.
//     Missed chunks are read from a stream that stores them for an hour; expired ones
//     are reported.
//   - A [ThreadState] is a thread with the names of Standard Agents, over the same
//     commands and queries. Each handle reads its own writes.
//   - A [Live] returns what is emitted while it is subscribed, in the order of each
//     emitter. Live events are not stored.
//   - [Project] applies each event exactly once to what a [Projector] stores, such as the tables of
//     a database ([SQL]).
//   - A handler of [Client.Consume] receives each event at least once, in order, and
//     the next one only after it returned without an error.
//
// # What it does not
//
// It holds no state of threads and caches nothing: the service answers every query.
// Time travel, filters and pages are features of the service.
//
// It needs permission to publish on the tenant's commands and queries, and to subscribe
// to its timeline and its own inboxes; it needs none on streams.
package client
