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
//   - A copy has every message that its stream had when the copy began, but for those that
//     were removed from the stream meanwhile; otherwise there is no backup. A restored
//     stream has what its copy has.
//   - No Skein uses a server into which a restore did not end, see [Finish].
//   - A restore refuses a server that has a stream of Skein's, and changes nothing there.
//
// # What it does not
//
// Derived data is not copied: the next Skein to start rebuilds it. The streams of a
// backup are not of one moment: the log's copy is the latest.
//
// # What may enter
//
// Code that reads or writes a backup's folder. It knows streams, and no commits.
package backup
