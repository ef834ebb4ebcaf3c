// Package arguments decides what a tool's calls may hold: it derives a JSON Schema from
// a Go struct, compiles schemas that others wrote, and checks arguments against them.
// Definitions of tools, contexts and answers are checked by the same code when they are
// defined and when they are used.
//
// # What it promises
//
//   - A refusal is one line that names each path and what is wrong there, so that
//     a model can correct its call, and it is the same line each time.
//   - No schema and no arguments cost more than a bounded amount of time and
//     memory, or make it panic. Nothing is ever fetched.
//   - No state at package level and no I/O. All of it may be shared by goroutines.
//
// # What it does not
//
// A schema is JSON Schema, 2020-12 where it does not name an older one. [Compile] ignores
// a pattern that Go's regular expressions do not know (a look-ahead);
// [CompileDefinition] refuses it. Format is not checked in 2020-12. A $dynamicRef and a
// $ref to elsewhere are refused. The tool itself has the last word on its arguments.
//
// What may enter is what judges arguments by a schema. What a definition says besides is
// checked by package schema, and calls are made by package runtime.
package arguments
