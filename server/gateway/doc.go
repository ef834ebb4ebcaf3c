// Package gateway is `skein gateway`: Skein's HTTP in a process of its own, next to as many
// others as one likes, for a Skein that runs elsewhere.
//
// # What it promises
//
//   - It serves what `skein serve` serves at --http-listen, with the same code. It stores
//     nothing: a stream that began at one gateway continues at another.
//   - API keys are those of the Skein that it serves: it asks for each that it is shown, and
//     what a revoked key does here ends within a second.
//   - A ticket or a session of one gateway is taken by the others as long as that one runs.
//
// # What it does not
//
// It runs nothing and decides nothing. What it may do is decided by its NATS credentials, of the
// role gateway, and for each request by package edge.
package gateway
