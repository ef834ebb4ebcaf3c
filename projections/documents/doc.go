// Package documents holds the read models as declarations: which documents
// there are, which events change them, and how.
//
// A projection is a value: its name, its version, its bucket, and a pure function
// for each event that changes its documents. It ignores every event that it does
// not name; one test lists the events that no read model shows.
//
// # What it promises
//
//   - The same commits give the same documents, bytes and all, whether they are
//     folded live, anew, or up to a version of long ago: [Models.Apply] is the
//     only way in which a document changes.
//   - A document bears the sequence of the commit that last changed it. A commit
//     that it shows already leaves it alone, so a repeat changes nothing, and
//     documents of one thread may stand at different sequences when folding
//     begins again after a crash.
//   - No I/O, no clock, no randomness, no goroutines.
//
// # What it does not
//
// It does not validate: what is in the log is true. An event about a document
// that is not there (because the commit that made it cannot be read) changes
// nothing. It does not store anything; package projections does.
//
// # Counting exactly once
//
// Counters of items go down when items are hidden. What is hidden is read from
// the pages of the index, which may already show the event when the thread's
// document does not, or the other way round. So an entry of a page keeps the
// thread's version at which it was made and hidden, and an event at version v
// hides what was made before v and not hidden before v, whichever of the
// documents is ahead.
package documents
