// Package mcp makes the tools of MCP servers tools of Skein: of programs that
// speak the protocol on stdin and stdout, and of servers on streamable HTTP.
//
// # What it promises
//
//   - One session a server: started on first use, shared by all calls, ended after
//     a while without one, started again, with growing waits, when it broke. The
//     number of sessions at a time is bounded, and programs of those over it are
//     ended first.
//   - A call ends with its context or its timeout, whatever the server does: hangs,
//     dies, answers too much or nonsense. The error says which, in a few words.
//   - A call that was surely not made is made on a new session, or is a
//     *runtime.RetryError. One that may have been made is a *runtime.RetryError if
//     its tool is idempotent, and otherwise an error that says so.
//   - The call's key goes with it, in _meta, as skein/idempotency-key.
//   - A program gets PATH, HOME and the variables that its definition names,
//     nothing else. Headers take their values from variables too, so that a
//     definition holds no secret. These values stand in no error; what a server
//     says of itself is masked.
//
// # What it does not
//
// It does not judge what a server says of its tools: readOnlyHint and
// idempotentHint are taken as they are, so that only servers that are trusted may
// be defined. A definition runs a program and names variables of this process:
// take definitions from who runs the process, never from a tenant. Prompts,
// resources, sampling, roots, elicitation and progress are not used.
package mcp
