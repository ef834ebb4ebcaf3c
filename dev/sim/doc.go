// Package sim runs the log, the write side and the read side against a simulated
// server, in simulated time, as a seed has it: what arrives when, what is lost,
// who dies. It is for tests, and the one place where nats-server is replaced.
//
// # What is real, and what is not
//
// Real: everything in eventlog that appends, looks up, reads, relays and fences;
// the whole of commands below the NATS service (door, queue, draft, keys, cache,
// snapshots), commands/thread; the runner of projections with its batches,
// checkpoints and ends of threads, and projections/documents. They run on an
// [streams.Wire] and the few methods of JetStream that they use.
//
// Not real: nats-server ([Server]), the connection and nats.go ([Conn]), who
// holds the lease of the relay and the runner (the run says who leads, and lets
// two do at once), the clients, and time (testing/synctest). Not there at all:
// queries, submitted commands, the runtime, files, purging deletions.
//
// # The rules of the server
//
// Those of nats-server 2.15 as the tests of eventlog measured them, for streams
// as Skein makes them. A test does the same random operations on both and
// compares every answer.
//
//   - A stream stores messages under consecutive sequences. A bucket keeps the
//     last of each subject, and a message that says so (Nats-Rollup: sub) replaces
//     what its subject had. A purge and a replaced message leave their sequence
//     behind.
//   - Nats-Expected-Last-Subject-Sequence and Nats-Expected-Last-Sequence that do
//     not hold: 10071, nothing is stored. Nats-Expected-Last-Msg-Id: 10070.
//   - A Nats-Msg-Id that was stored within the window is acknowledged as a
//     duplicate, after those checks on one copy, before them on several.
//   - A batch is checked whole and stored whole: nothing comes between its
//     messages. A gap: 10176, and the batch is forgotten. A second check of a
//     subject that it writes: 10164. A known id: 10201. Only its last message is
//     answered with a sequence.
//   - A direct get sees a prefix of the stream: on several copies one that may
//     lag, each time another. The leader's answers (STREAM.MSG.GET, info) never
//     lag. A direct get of last messages tells how far its copy had got.
//   - Where there are several copies, 10164 may also mean that another proposal
//     was in flight, and it may come to nothing; or that the one before was
//     acknowledged only just now.
//   - On one copy, what is derived is stored without waiting for the disk: when
//     the power fails, such a stream is again what it was some messages ago. The
//     log loses nothing that it acknowledged.
//   - Messages on one connection to one stream arrive in order; nothing else is
//     in order. When a connection is lost, the rest of what was in flight is lost
//     from anywhere on, every answer is, and what was sent before may still
//     arrive after the connection is re-established. What is sent meanwhile is kept
//     and sent then.
//
// # Faults
//
// A seed plans up to five, each at a step of the run, so that over many seeds
// they hit every place where the code waits: a process dies (and comes back), a
// connection is lost, the power fails, another process takes the lead while the
// first goes on, a reader is interrupted; and to a single message: it is held
// back, lost (of a batch: one part), arrives twice, its answer is lost or late,
// often for longer than anybody waits.
//
// # What must hold
//
// When all clients are done and all faults have ended:
//
//   - an acknowledged command is in the log once, where and with the events that
//     the answer said, not before it was asked for nor after it was answered; a
//     refused one is not there; of an unknown one a repeat with the same
//     commandId gets the same answer, from any process, also of one that
//     names its thread by a key which has gone to another thread since;
//   - each thread's versions are consecutive, its chain holds, its events are in
//     an order that the state machines allow;
//   - deciding each command again on the state before it makes the same events:
//     with the bounds in time above, commits of a thread are linearizable;
//   - each refusal follows from the thread's state (or the key's holder) at some
//     moment between question and answer;
//   - a command over several threads is on all of them, stored in one step, or on
//     none; a relationship is recorded by both its threads after each commit,
//     unless one is deleted; a fork has the items that its parent's read model
//     had, once each and in order;
//   - a key has one thread at a time, and changes together with it;
//   - the timeline has each event once, in order; every document is the fold of
//     the log, and there is no other;
//   - all of it ends within a bounded number of steps.
//
// # Determinism
//
// All goroutines wait whenever something is chosen ([Run.step]), and one at a
// time runs in between (GOMAXPROCS is 1). What is sent in the same moment is put
// in order before it counts. A test runs seeds three times and compares all that
// happened. Under the race detector a seed does not repeat exactly.
package sim
