// Package machine runs a program on a machine of its own whose disk a test can
// make slow and whose clock it can set, while the program runs and without the
// program knowing: the real programs, as they were built. Only tests use it.
//
// # What it promises
//
//   - A slow disk: every fsync and fdatasync of the program, and of what it starts,
//     takes at least as long as was said.
//   - A wrong clock: the program reads the true time of day plus what was added, in
//     whole seconds. The clock that timers and durations use
//     does not jump, as that of a real machine does not.
//   - Both last when the program ends and is started again, until they are mended.
//   - The program is the child that the caller started: a signal to it reaches it,
//     and on Linux it ends when the thread that started it does (Pdeathsig).
//
// # How
//
// The caller's own program is started in the place of the real one, and Begin, the
// first thing that its main does, puts a seccomp filter upon itself and becomes the
// real one. The filter shows each fsync to the caller, which lets it go on when it
// has taken long enough. Go reads the clock in the vDSO, without a system call: so
// the filter also shows the first system call of Go's start (sched_getaffinity),
// and at this moment the function clock_gettime of the program's vDSO is
// overwritten with one that asks the kernel and adds the value of a cell next to it.
//
// # What it does not
//
// It needs Linux 5.19, the clock also amd64 and a program made with Go. Elsewhere
// Check says so. Writes with O_SYNC are not slow, nor is reading. The times of
// files are the kernel's.
package machine
