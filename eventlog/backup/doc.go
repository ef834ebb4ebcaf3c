// Package backup copies what is not derived into a folder, and restores it.
//
// # What it promises
//
//   - A backup is a folder with a manifest; the manifest is written last, so that a
//     folder without one is no backup. Every file has its digest there, and is checked
//     before anything is restored.
//   - Sequences stay as they are: whatever names a commit by its sequence stays right.
//   - Skein may run while a backup is made. A stream is copied as JetStream's own
//     snapshot, and in an order in which what a commit refers to is in the copy.
//   - A restore refuses a server that has a stream of Skein's, and changes nothing there.
//
// # What it does not
//
// It does not copy what is derived: the next Skein to start rebuilds that. It does not
// make the streams of one backup agree on one moment: the log's copy is the later one.
//
// # What may enter
//
// What reads or writes a backup's folder. It knows streams, and no commits.
package backup
