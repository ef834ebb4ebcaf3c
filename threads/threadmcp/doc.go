// Package threadmcp serves threads over the Model Context Protocol, so that coding agents can
// read, find and write them.
//
// # What it promises
//
//   - It acts through a client, with that client's credentials: it can do nothing that their
//     user may not.
//   - A refusal is a tool error, whose text tells the model what to do next. Only a request that
//     breaks the protocol is an error of the protocol, and it ends neither the server nor the
//     session.
//   - Answers are bounded, and pages lose nothing (see package threadtools).
//   - With a token (Handler) it answers requests of this machine only, which name this machine as
//     their host, come from no web page, and have the token. Package api/mcp serves those of others.
//   - A run that a client began goes on when the client has gone, and is waited for again by its id.
//   - A call that waits for a run tells its progress, if the client asks for that.
//   - It ends when its input ends or its context does, also if nobody reads its output.
//
// # What it does not
//
// Over HTTP it keeps no sessions: each request stands for itself, and the server sends nothing
// unasked; questions are asked with the answer to a call, for which a later call has the state. Lists are read when they are asked for; no client is told that they changed.
package threadmcp
