// Package faults holds tests that break a cluster of separate processes while clients
// work on it, and then compare the log with what the clients were told.
//
// # What is broken
//
// nats-servers and Skeins are killed, stopped and continued, and restarted one after the
// other; streams change leaders; a server is cut off from the others, from its clients,
// or from both (network namespaces, where the tests may create them); a server's disk is
// full (a small file system of its own, where the tests may mount one), or slow; the
// clock of a server or of a Skein jumps by seconds or hours, in either direction, and
// stays wrong while other things happen (both by dev/machine, where that works).
//
// # What must hold
//
//   - The commits of a thread are linearizable with optimistic concurrency
//     (porcupine checks the history of every thread): a command that expected a
//     version was done at that version, a refusal as version_conflict named the
//     version that the thread had at that moment.
//   - No acknowledged command is lost or done twice, and the log has it where its
//     answer said. One that was refused wrote nothing. One whose outcome was
//     unknown is in the log once or not at all, and its repeat tells which.
//   - What was submitted and acknowledged is done once.
//   - The time of a thread never goes back.
//   - A key has one thread, for every process.
//   - A query with minSeq shows what was acknowledged.
//   - When all is well again, chains, timeline and every read model equal the log
//     (skein audit verify, skein replay --verify), and all copies of every stream
//     are the same on all servers.
//
// # How to run them
//
// `make test-faults` takes about 5 minutes, and is stopped after 15; a short run is part
// of `make test-race`, and one round of each test of `make test-long`. A seed, which a
// failure prints, decides what happens: SKEIN_SEED repeats the same commands and faults
// in the same order, but not at the same moments. SKEIN_FAULTS=N runs N rounds of faults.
// When a test fails, the folder of the processes' logs is kept, and named.
package faults
