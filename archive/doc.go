// Package archive moves the commits of cold threads from the log to the object store, where
// every reader of the thread still finds them.
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
//   - Of two archivers at once one writes the record. Both write the same object.
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
// Its documents stay in the read models. The server's index keeps one subject for the record.
package archive
