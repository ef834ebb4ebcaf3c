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
package api
