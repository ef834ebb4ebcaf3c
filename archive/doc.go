// Package archive moves the commits of cold threads from the log to the object
// store, where they stay readable for all who read the thread.
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
//   - Killed at any moment, every commit is in the log or in an object that was read
//     back, and that a record names; and every reader gives all of them. Archiving the
//     thread again takes up what was left.
//   - Whoever writes meanwhile wins: the record is refused, and the object dropped.
//   - Of two archivers at once one writes the record. Both write the same object.
//   - A thread on which something is under way, or is to happen by itself, is not
//     archived: an execution, also one that waits for an approval, a queued message, a
//     scheduled effect.
//   - Reading, deciding, time travel, rebuilds, export, audit and erasure need not know:
//     they read threads by eventlog.Log.Thread and Raw, which go on from a record into
//     its object.
//
// # What it does not
//
// It does not bring anything back: an archived thread that is busy again goes on after
// its record, and its old history stays in the object. Archived once more, it has a
// second object, which begins with the record of the first.
//
// Its documents stay in the read models. The server's index keeps one subject for the
// record.
package archive
