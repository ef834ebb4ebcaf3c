// Package trail tells the history of a thread to people: [Of] says who did what to it, when and
// why, and [Diff] what changed between two points of it. Both name the documents that changed,
// and in which fields ([Compare]).
//
// # What it promises
//
//   - It reads the log alone, and may run during writes. What readers see is folded by the same
//     models as the stored documents.
//   - Memory does not grow with the log, but holds the documents of the thread.
//
// # What it does not
//
// It verifies nothing: that is package audit. A commit that cannot be decoded is an entry that says
// so, and changes nothing.
package trail
