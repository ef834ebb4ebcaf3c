// Package events is the vocabulary of Skein: what can happen to a thread, how it is written,
// and the requests that change and read it.
//
// It holds the catalog of events (one row an event, next to its Go type), the CloudEvents
// envelope, the commit (all events of one command on one thread, which is one message of the
// log), the chain that makes a commit tamper evident, the five state machines as tables, the
// check of a recorded timeline against them ([TimelineChecker]), the names of subjects,
// streams and headers, the documents, and the requests, replies and errors of the command and
// query services.
//
// # What it promises
//
//   - Encoding is canonical: the same event has the same bytes, on every
//     machine and in every run. The chain is computed over these bytes.
//   - Decoding accepts what encoding produced, and any other JSON of the same
//     meaning. An event of an unknown type or version keeps its bytes
//     ([Unknown]), so that a reader can pass it on; it is never dropped silently.
//   - An event of an older version is upcast on read and never rewritten.
//   - No I/O, no clock, no randomness. Ids and times come from the caller.
//
// # What it does not
//
// It does not decide what may happen: that is commands/thread. It does not talk to NATS: that
// is eventlog.
package events

// SpecVersion is the version of the Ekairos Thread specification that this
// package follows.
const SpecVersion = "1.0.0-draft"
