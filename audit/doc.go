// Package audit verifies what Skein stores, independently of the server that wrote it.
//
// [Verify] reads the log thread by thread and checks each commit's chain, version, envelope,
// bytes, headers, state machine moves and links, and that each event satisfies its
// precondition; that keys and threads refer to one another; that every gap in the log's
// sequence is explained by a tombstone; that snapshots equal the fold of the log; that the
// timeline has the log's events, each once and in order, as far back as it keeps them; and
// that every document of every read model equals the fold of the log. What is outside the log,
// such as the contents of files, is verified by a [Check]. Damage is a finding, and the check
// continues.
//
// [Export] writes commits to a file as they are stored, [ReadFile] checks such a file, [Import]
// writes it to another Skein, and [Witness] compares it with a log: what the log held once, it
// must still hold. [Measure] reports the size of threads and tenants. [Trail] tells the history of one
// thread.
//
// # What it promises
//
//   - Only [Import] writes, through the log's appender: each commit on condition
//     of the previous one.
//   - All functions may run during writes. They read the log up to where it
//     ended when they started.
//   - Each finding names its place: thread and sequence, or bucket and key.
//   - Memory does not grow with the log. It holds one batch of messages (4 MB),
//     and of the current thread the ids and states of its entities (Verify, which
//     checks up to eight threads at a time and holds as much of each) or its
//     documents (the check of read models, which also keeps eight bytes of every
//     thread). The check of snapshots keeps the names of the threads that have one.
//   - A file is imported whole or not at all: Import reads it twice, and the first
//     time checks its digest, its signature, each chain, and each event.
//
// # What it does not
//
// It trusts the server to return what is stored, and does not know what was never stored. An
// attacker who rewrites all of a thread's commits with new chains, or removes the last ones,
// is detected only with a copy or a manifest that was kept elsewhere: see Witness, and
// docs/audit.md.
//
// # The trail of a thread
//
// [Trail] tells the history of a thread to people: who did what to it, when and why. [DiffThread] says
// what changed between two points of it. Both name the documents that changed, and in which fields
// ([CompareDocuments]).
//
//   - It reads the log alone, and may run during writes. What readers see is folded by the same
//     models as the stored documents.
//   - Memory does not grow with the log, but holds the documents of the thread.
//
// They verify nothing. A commit that cannot be decoded is an entry that says
// so, and changes nothing.
package audit
