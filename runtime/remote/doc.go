// Package remote is the protocol by which any process, in any language, is a
// reactor, a tool or an effect: it answers on a NATS subject. The page
// docs/protocols.md has it field by field.
//
//	worker                                       process
//	  request on skein.reactor.{name} ------------> one of the queue group
//	  <------------------------------- heartbeat, chunk, chunk, heartbeat ...
//	  <------------------------------- result or error: the last one
//	  cancel on skein.cancel.{call} --------------> if it is no longer wanted
//
// # What it promises
//
//   - A process that is not there, or is silent for longer than the request says,
//     is a *runtime.RetryError that names the subject. So is a lost connection.
//   - An answer that is too large, no JSON, or not of its shape is a final error,
//     told as what is wrong with it.
//   - When a call ends for the worker, for whatever reason but a last message, the
//     process is told on the subject that the request names.
//   - A request is published only on a connection that is up, so that none is
//     delivered after its worker has given it up.
//   - A Go process that serves sends its heartbeats by itself, turns a panic into
//     an error, and finishes what is under way when it is closed.
//
// # What it does not
//
// It tries nothing again: the worker does, and records it. Nothing is stored: a
// message that is lost with its server ends in silence, and so in a RetryError.
// A process that cannot be told in time that a call is cancelled, or that was
// taken for dead, works on: what it does with the world may then happen twice,
// and the key of a tool's call is there to notice it. Errors that a process
// gives are shown as they are, but for their length: it must keep secrets out.
package remote
