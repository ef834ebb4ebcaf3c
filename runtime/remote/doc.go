// Package remote is the protocol by which any process, in any language, is a reactor, a
// tool or an effect: it answers on a NATS subject or, a reactor or a tool, behind a URL.
// The pages docs/protocols.md and docs/http-workers.md describe each field.
//
//	worker                                       process
//	  request on skein.reactor.{name} ------------> one of the queue group
//	  <------------------------------- heartbeat, chunk, chunk, heartbeat ...
//	  <------------------------------- result or error: the last one
//	  cancel on skein.cancel.{call} --------------> if it is no longer wanted
//
// Over HTTP the request is the body of a signed POST, the messages are its answer, and
// closing the connection is the cancel.
//
// # What it promises
//
//   - If no process answers, or it is silent for longer than the request says, the
//     error is a *runtime.RetryError that names the subject. So it is for a lost
//     connection.
//   - An answer that is too large, not JSON, or of the wrong shape is a final error,
//     which says what is wrong. Arguments of a call that no tool could use are not: that
//     call fails alone.
//   - A reaction that ends after it has begun to stream, without a final error of its
//     process, is a *runtime.BrokenOffError as well: what was streamed of it is kept.
//   - If a call ends for the worker before its last message, for any reason, the
//     process is notified on the subject that the request names.
//   - A request is published only on a connected connection, so that none is delivered
//     after its worker has given it up.
//   - A request over HTTP goes only where the endpoint's client connects to, and is not
//     repeated here: whether it was made for sure is in the *runtime.RetryError.
//   - A Go process that serves sends heartbeats automatically, returns a panic as an
//     error, and finishes the calls in flight when it is closed.
//
// # What it does not
//
// It does not retry: the worker does, and records it. Nothing is stored: a message that
// is lost with its server, or that a server drops because the worker lags 48 MB behind,
// is missing from the stream if it is a chunk; if it is the result, the call ends in
// silence, and so in a RetryError. A process that does not learn in time that its call
// was cancelled, or that was considered dead, continues to work: its effects may then
// happen twice, and the key of a tool's call is there to detect it. Errors of a process
// are shown unchanged except for their length: it must keep secrets out of them.
package remote
