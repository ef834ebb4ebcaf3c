// Package api is Skein over HTTP: one handler for every protocol that Skein speaks to programs
// and browsers that do not speak NATS. Package edge has what all routes share; the other
// packages of the room have the routes.
//
// # What it promises
//
//   - The edge is a client. It runs inside `skein serve` and in processes of its own, and
//     holds nothing that is not in the log: any process continues what another one began.
//   - Every route is called with a principal that the request's credential alone determines.
//
// # What it does not
//
// It listens on no address. Health and metrics are its caller's.
//
// # Thread endpoints
//
// The package serves the thread endpoints of Standard Agents: handlers of HTTP requests
// about one thread, at /threads/{threadId}/{endpoint}.
//
//   - The thread is looked up before the handler is called, for each request, as of everything
//     that was committed by then. The handler receives its state, which can do only what the
//     principal of the request may do.
//   - A thread that does not exist, or is another tenant's, is a 404 with the body
//     {"error":"Thread not found: ID"}; a path without an id is a 400 with the body
//     {"error":"Thread ID required"}.
//   - A handler that writes no answer is a 500, not an empty 200. An answer that fails in its
//     middle ends the connection, so that the client does not take it for complete.
//
// It limits neither methods nor bodies of a program's own endpoints: the edge does.
package api
