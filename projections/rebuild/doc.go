// Package rebuild folds the log again, next to the live documents, and compares:
// [Verify] reports every difference, [Repair] also repairs it, and [Progress.Rewrite] also
// writes again what does not differ.
//
// # What it promises
//
//   - It works while the runner and the queries go on, and without a runner; readers
//     see no gap.
//   - No write in between makes a false difference: documents belong to one thread, so
//     the log is folded thread by thread, and a live document at sequence s is compared
//     with the fold up to s.
//   - A repair is conditional on the key's own last message, so that it never replaces
//     anything but what was compared. The running runner notices foreign writes by its
//     fence, and starts again from its checkpoints.
//   - A [Verification] reports what Verify reports, and reads the documents of a thread by
//     themselves only if their digest is not that of the thread's fold.
//   - It holds one thread at a time in memory for each of its workers, the documents of
//     some, and a few bytes of every thread.
//
// # What it does not
//
// It does not fold commits that are appended meanwhile: that is the runner's work. It
// moves no checkpoint.
//
// # What may enter
//
// Code that compares the read models with the log and corrects them. It imports
// projections/buckets and what is below it, and not the runner, which calls it for read
// models of another version.
package rebuild
