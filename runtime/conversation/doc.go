// Package conversation folds the commits of a thread into what a run needs of it: a [View] has the
// items as reactors are shown them, and the progress of the current run. A [Cache] keeps the views of
// a process, so that a run reads from the log only what others wrote.
package conversation
