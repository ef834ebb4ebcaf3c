// Package archive makes idle threads cost less: it removes their documents from the read models,
// and moves their commits from the log to the object store. Every reader still finds both.
//
// # How a thread is archived
//
//	the thread's commits are read and checked: chains, versions, that each can be read
//	the read models show the last of them
//	they are written into one object of the store thread_archive
//	the object is read back, and checked against its digest, chain by chain
//	the record, lifecycle.archived, is appended on condition of the last of them
//	the state at the record is kept as a snapshot
//	the timeline shows the record
//	the events before the record go from the timeline, the commits from the log,
//	backwards, and are overwritten on the server's disk
//
// # What it promises
//
//   - If it is killed at any moment, every commit is in the log or in an object
//     that was read back and that a record names; and every reader returns all of
//     them. Archiving the thread again completes what was left.
//   - A concurrent writer wins: the record is refused, and the object deleted.
//   - Of two archivers at once one writes the object, and one the record.
//   - What an archiver leaves that is killed before its record is removed when the thread is
//     archived or purged.
//   - A thread with in-flight or scheduled work is not archived: an execution,
//     including one that waits for approval, a queued message, a scheduled effect.
//   - Reading, deciding, time travel, rebuilds, export, audit and erasure need not
//     know: they read threads with eventlog.Log.Thread and Raw, which continue from
//     a record into its object.
//
// # What it does not
//
// It does not bring anything back: an archived thread that becomes active again continues
// after its record, and its old history stays in the object. If it is archived again, it has a
// second object, whose first commit is the record of the first.
//
// The server's index keeps one subject for the record.
//
// # How a thread becomes cold
//
// Before that, or without it, the documents of an idle thread leave the read models; package
// projections/query says what a cold thread is.
//
//	it has no in-flight or scheduled work, and its documents are what its log says
//	its own document is written again with a mark (buckets.Mark), if it has not changed
//	minutes later, when the mark is on the disk: the mark is written again, and
//	the documents that were stored before that are removed
//
// If it is killed at any moment, the thread is cold or not, and what is left of its documents is
// right. A concurrent writer wins: the mark is refused, or the runner brings the documents back.
package archive
