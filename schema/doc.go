// Package schema is the door of Skein: what comes in is read here, and refused
// here if it is not what the vocabulary says.
//
// The Go types of package events and their tags are the one source. From them
// come the JSON Schemas in files/ (2020-12, written by internal/generate), and
// a [Validator] that reads requests, commands and queries into those types.
//
// # What it promises
//
//   - The Validator takes exactly what the JSON Schemas take. A test with
//     random input holds the two together.
//   - A refusal is an *events.Error of code invalid_request. Its path is the
//     JSON pointer of what is wrong, its message says what was expected.
//   - No input makes it panic. Nesting is bounded by [MaxDepth], and the cost of
//     a request by its length.
//   - No I/O, no clock, no state: a Validator may be shared by all goroutines.
//
// # What nothing means
//
// An optional field that is null is absent. An optional text that is "" is
// absent too, unless the Go field is a pointer: then "" is a value, and clears
// what it names. A required field may not be null. Where any JSON is asked for
// (a context's content, a part), null is a value like any other. Documents and
// events, which Skein writes itself, leave out what is absent and never say null
// for it.
//
// # What it does not
//
// It does not say whether a command may be done: that is commands/thread. It
// does not look into what belongs to the caller (metadata, content of unknown
// parts), beyond that it is JSON. A time is checked by its form; whether there is
// such a day is seen by who reads it with events.ParseTime.
package schema
