// Package audit lets anyone check what Skein says of itself.
//
// [Verify] reads the log thread by thread and checks each commit's chain,
// version, envelope, bytes, headers, state machine moves and links, and that each
// event satisfies its precondition; that keys and threads know of one another;
// that nothing is missing from the log's sequence that no tombstone explains; that
// snapshots are what the log folds to; that the timeline is the log's events, each
// once and in order, as far back as it keeps them; and that every document of
// every read model is what the log says. What lies outside the log, such as the
// contents of files, joins as a [Check]. What is damaged is a finding, and the
// check goes on.
//
// [Trail] tells who did what to a thread, when and why. [Diff] tells what changed
// between two points of it. [Export] writes commits to a file as they are stored,
// [ReadFile] checks such a file, [Import] writes it to another Skein, and
// [Witness] holds it against a log: what the log held once, it must hold still.
//
// [Measure] says what threads and tenants take.
//
// # What it promises
//
//   - Only [Import] writes, and it goes through the log's appender: each commit
//     on condition of what stands before it.
//   - All may run while writes go on. They look at the log up to where it stood
//     when they began.
//   - Each finding names where it is: thread and sequence, or bucket and key.
//   - Memory does not grow with the log. What it holds is one batch of messages
//     (4 MB), and of the thread at hand the ids and states of its entities
//     (Verify, which checks up to eight threads at a time and holds so much of each) or
//     its documents (Trail, Diff, the check of read models). The check of
//     read models also keeps eight bytes of every thread, and that of snapshots the
//     names of the threads that have one.
//   - A file is whole and right, or nothing of it is written: Import reads it
//     twice, and the first time checks its digest, its signature, each chain, and
//     each event.
//
// # What it does not
//
// It trusts the server to give back what is stored, and knows nothing of what was
// never stored. Whoever rewrites all of a thread's commits with new chains, or
// cuts the last ones off, is found only by a copy or a manifest that was kept
// elsewhere: see Witness, and docs/audit.md.
package audit
