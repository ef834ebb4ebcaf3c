// Package derived makes a process the only writer of a derived stream: with a fence,
// which guarantees it, and a lease, which keeps two processes from competing.
//
// # What it promises
//
//   - What is sent through a [Fence] is stored in order and without a gap, and nothing of
//     another writer stands between. A writer that was replaced is refused whatever it
//     still has in flight ([streams.FencedError]), also if it does not know it yet.
//   - Work under a lease ([Leases.Hold]) runs in one process at a time, as far as clocks and
//     connections allow; its context ends when the lease is lost.
//
// # What it does not
//
// A lease protects no data: two holders do no harm only because each writes through a
// fence. A fence does not say what a stream already holds: after an error, read where it
// ends and begin a new fence.
//
// # What may enter
//
// Mechanisms that keep one writer at a time. What is written, and where to resume,
// belongs to the writer: the relay in eventlog/timeline, the runner in projections.
package derived
