// Package schema validates what comes in: it decodes requests, and refuses those that do not
// follow the vocabulary.
//
// The Go types of package events and their tags are the one source. From them come the JSON
// Schemas in files/ (2020-12, written by dev/generate), and a [Validator] that decodes
// requests, commands and queries into those types.
//
// # What it promises
//
//   - The Validator accepts exactly what the JSON Schemas accept. A test compares
//     the two on random input.
//   - A refusal is an *events.Error of code invalid_request. Its path is the
//     JSON pointer of the fault, its message says what was expected.
//   - No input makes it panic. Nesting is bounded by [MaxDepth], and the cost of
//     a request by its length.
//   - No I/O, no clock, no state: a Validator is safe for concurrent use.
//
// # What null and "" mean
//
// An optional field that is null is absent. An optional string that is "" is absent too,
// unless the Go field is a pointer: then "" is a value, and clears the field. A required field
// may not be null. Where the type is any JSON (a context's content, a part), null is a value
// like any other. Documents and events, which Skein writes itself, omit absent fields and
// never use null for them.
//
// # What it does not
//
// It does not decide whether a command may run: that is commands/thread. It does not look into
// what belongs to the caller (metadata, content of unknown parts), except that it is JSON. It
// checks the form of a time; events.ParseTime finds out whether the date exists.
package schema
