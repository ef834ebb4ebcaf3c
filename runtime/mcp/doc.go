// Package mcp makes the tools of MCP servers tools of Skein: of programs that speak the
// protocol on stdin and stdout, and of servers on streamable HTTP.
//
// # What it promises
//
//   - One session per server: started on first use, shared by all calls, ended after a
//     while without one, and restarted with backoff when it breaks. The number of
//     concurrent sessions is bounded, and idle ones are ended first.
//   - A call ends with its context or its timeout, whatever the server does: if it
//     hangs, dies, or answers too much or invalid data. The error says which, in a few
//     words.
//   - A call that was certainly not made is repeated on a new session, or returns a
//     *runtime.RetryError. One that may have been made returns a *runtime.RetryError if
//     its tool is idempotent, and otherwise an error that says so.
//   - The call's key is sent in _meta, as skein/idempotency-key.
//   - A program receives PATH, HOME and the variables that its definition names,
//     nothing else. Headers take their values from variables too, so that a definition
//     contains no secret. No error contains these values; in a server's own messages
//     they are masked.
//
// # What it does not
//
// It trusts what a server declares about its tools: readOnlyHint and idempotentHint are
// used as they are, so define only trusted servers. A definition starts a program and
// names variables of this process: accept definitions from the operator of the process,
// never from a tenant. Prompts, resources, sampling, roots, elicitation and progress
// are not used.
package mcp
