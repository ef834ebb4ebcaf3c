// Package audit lets anyone check what Skein says of itself.
//
// [Verify] reads the log thread by thread and checks each commit's chain,
// version, envelope, data, state machine moves and links; that nothing is
// missing from the log's sequence that no tombstone explains; that the timeline
// is the log's events, each once and in order; that the content of every file
// that the log names is in the store, byte for byte; and that every document of
// every read model is what the log says.
//
// [Measure] says what threads and tenants take.
//
// # What it promises
//
//   - It changes nothing, and may run while writes go on.
//   - Each finding names where it is: thread and sequence, or bucket and key.
//   - Memory holds one thread at a time, and the lists of threads and of contents.
//
// # What it does not
//
// It trusts the server to give back what is stored: whoever rewrites all of a
// thread's commits with new chains is found only by a copy kept elsewhere.
package audit
