// Package documents holds the read models as declarations: which documents
// there are, which events change them, and how.
//
// A projection is a value: its name, its version, its bucket, and a pure function
// for each event that changes its documents. It ignores every event that it does
// not name; one test lists the events that no read model shows.
//
// # What it promises
//
//   - The same commits yield the same documents, byte for byte, whether they are
//     folded live, rebuilt, or folded up to an old version: [Models.Apply] is the
//     only way in which a document changes.
//   - A document has the sequence of the commit that last changed it. A commit
//     that it already shows does not change it, so repeating one has no effect,
//     and documents of one thread may be at different sequences when folding
//     resumes after a crash.
//   - No I/O, no clock, no randomness, no goroutines.
//
// # What it does not
//
// It does not validate: what is in the log is true. An event about a document that does not
// exist (because the commit that created it cannot be decoded) changes nothing. It does not
// store anything; package projections does.
//
// # Counting exactly once
//
// Counters of items decrease when items are hidden. Which items are hidden is read from the
// pages of the index, which may already show the event when the thread's document does not, or
// the other way round. So an entry of a page has the thread's versions at which it was created
// and hidden, and an event at version v hides what was created before v and not hidden before
// v, whichever of the documents is ahead.
package documents
