// Package thread is the pure core of Skein: what a thread's history allows next. It holds the
// state that decisions need, [Decide], which turns a command into events or a refusal, and
// [Evolve], which turns an event into the next state.
//
// # What it promises
//
//   - No I/O, no clock, no randomness, no logging: the same state and command
//     always yield the same events, byte for byte. Time and ids are part of the
//     command.
//   - A refused command leaves the state unchanged.
//   - [Evolve] never validates: a stored fact stays true under later rules. The
//     same Evolve serves the write side, time travel and the audit.
//   - A state survives encoding: the state that [DecodeState] returns for the
//     output of [State.Encode] decides everything in the same way.
//
// # What it does not
//
// It keeps only what decisions need (statuses, links, the content of contexts, the commands of
// the last 24 hours), not what readers see; documents are the read models' work. It does not
// know NATS, and is not safe for concurrent use: the owner of a state holds its lock.
//
// # Memory
//
// A state grows with its thread, since each item, execution and step can still be referred to.
// Those that have ended are packed, in maps of package compact, so that a cache of states costs
// the garbage collector little, however many turns its threads have had.
//
// # Drafts
//
// A [Draft] is a layer over a state: it takes one command after another, each of which sees
// the effects of those before it, and the state below changes only when the draft is applied.
// So several waiting commands become one commit, a thread.commit is all or nothing, and a
// commit that the log refuses costs nothing.
package thread
