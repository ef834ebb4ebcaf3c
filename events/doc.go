// Package events is the vocabulary of Skein: what can happen to a thread, how
// it is written, and the words in which the world asks for it.
//
// It holds the catalog of events (one row an event, beside its Go type), the
// CloudEvents envelope, the commit (all events of one command on one thread,
// which is one message of the log), the chain that makes a commit tamper
// evident, the five state machines of EK 5 as tables, the check of a recorded
// timeline against them ([TimelineChecker]), the names of subjects, streams and
// headers, the documents of EK 4, and the requests, replies and errors of the
// command and query services.
//
// # What it promises
//
//   - Encoding is canonical: the same event gives the same bytes, on every
//     machine and in every run. The chain is computed over these bytes.
//   - Decoding takes what encoding made and any other JSON that says the same.
//     An event of an unknown type or version keeps its bytes ([Unknown]), so
//     that a reader may pass it on; it is never dropped in silence.
//   - An event of an older version is upcast on read and never rewritten.
//   - No I/O, no clock, no randomness. Ids and times come from the caller.
//
// # What it does not
//
// It does not say what may happen: that is commands/thread. It does not talk
// to NATS: that is eventlog.
package events

// SpecVersion is the version of the Ekairos Thread specification that this
// package follows.
const SpecVersion = "1.0.0-draft"
