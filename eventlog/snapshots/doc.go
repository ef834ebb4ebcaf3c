// Package snapshots keeps encoded states of threads in an object store, so that a long thread
// is loaded without reading all of its commits.
//
// # What it promises
//
//   - [Store.Save] replaces the snapshot of a thread, and [Store.Drop] removes it. The server
//     overwrites what either removes.
//   - A snapshot that is damaged is never returned: its digest and its compression are checked.
//
// # What it does not
//
// A snapshot is derived. It may be missing, damaged or old; the thread's commits decide. What
// the bytes mean, and whether they are still valid, is for the caller to say.
//
// # What may enter
//
// What reads or writes the object store of snapshots. It knows names and bytes, and neither
// states nor commits.
package snapshots
