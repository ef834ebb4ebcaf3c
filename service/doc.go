// Package service serves requests over NATS, and those of its own process: commands, queries
// and the contents of files are each a [Service] of their own.
//
// A request of the process, made with [Service.Do], takes the same way as one that arrives over
// NATS, from the limits of its tenant to its handler. Only the messages are left out, and what
// belongs to them: encoding and decoding, reply subjects, forwarding, and the counts of the micro
// service. The request and its answer are Go values of the caller's; the service looks into neither.
//
// An HTTP request that leads here has waited for its tenant's fair rate at the edge. It brings a
// [quota.Turn], with which its first request starts without waiting for that rate again.
//
// # What it promises
//
//   - A service is a NATS micro service in a queue group: several processes share
//     its requests, and "nats micro" lists, describes and counts it.
//   - A request that was accepted is answered, also while the service stops; see
//     [Service.Stop]. Only beyond the limit of its tenant may a refusal be lost.
//   - A tenant that asks too much is refused quickly, before anything is begun, and
//     keeps no other tenant from being answered; see [quota.Limits] and [quota.Fair].
//   - Requests that concern the same thing are answered by the same process as long as
//     all processes live and know each other: see [Forwarding]. One that comes or leaves
//     costs no request; one that dies, those that it had received or that were in flight
//     to it; one that hangs, those that others send it for some two seconds; a connection
//     that breaks, what was written to it.
//   - An answer that does not fit into a message is refused as such, and the reply
//     subject of a request is never one on which an answer would do harm.
//   - No log line contains what a caller sent, except valid names.
//
// # What it does not
//
// It does not know what a request means: a [Handler] does. Nor does it know who may send
// one: subjects carry the tenant, and the server's permissions say who may publish on
// them.
//
// # What may enter
//
// Code that every kind of request needs: endpoints, deadlines, refusals over a limit, and which of
// several processes answers. What a tenant may use is in [quota]. It knows neither the write side
// nor the read side, which use it without knowing each other.
package service
