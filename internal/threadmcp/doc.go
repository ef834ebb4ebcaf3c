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
//   - Over HTTP it answers requests of this machine only, which name this machine as their host,
//     come from no web page, and have the token.
//   - It ends when its input ends or its context does, also if nobody reads its output.
//
// # What it does not
//
// Over HTTP it keeps no sessions: each request stands for itself, and the server sends nothing
// unasked. Lists are read when they are asked for; no client is told that they changed.
package threadmcp
