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
// # Where things are
//
// A file has the name of a noun, and holds its events, its commands and queries, its document and
// the rules of their fields.
//
//	the envelope and the log   event commit shared json scanner error log
//	the catalog of both        catalog declare request query
//	names and places           id subject time file_path part_names
//	state machines             machine timeline timeline_event
//	threads                    thread thread_document thread_document_message profile history
//	                           relationship share tenant tenant_role
//	conversations              context item message message_calls message_command content part edit
//	                           patch model fit queue
//	runs                       execution step run run_command run_list run_wait call approval chunk
//	                           effect
//	definitions                definition definition_agent definition_command definition_person
//	                           definition_policy definition_tool prompt skill
//	what a thread has besides  file file_view state session kv writer
//	live feeds                 live consumer_query
//
// # What it does not
//
// It does not decide what may happen: that is commands/thread. It does not talk to NATS: that
// is eventlog.
package events

// SpecVersion is the version of the Ekairos Thread specification that this
// package follows.
const SpecVersion = "1.0.0-draft"
