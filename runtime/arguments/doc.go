// Package arguments says what a tool's calls may hold: it derives a JSON Schema
// from a Go struct, and holds the arguments of calls to a schema, whoever wrote
// it.
//
// # What it promises
//
//   - A refusal is one line that names each path and what is wrong there, so that
//     a model can mend its call, and it is the same line each time.
//   - No schema and no arguments cost more than a bounded amount of time and
//     memory, or make it panic. Nothing is ever fetched.
//   - No state at package level and no I/O; all of it may be shared by goroutines.
//
// # What it does not
//
// A schema is JSON Schema, 2020-12 where it does not name an older one. A pattern
// that Go's regular expressions do not know (a look-ahead) is not looked at, nor
// is format in 2020-12; $dynamicRef and a $ref to elsewhere are refused. The tool
// itself has the last word on its arguments.
package arguments
