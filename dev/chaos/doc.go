// Package chaos tests that executions survive failures. It has tests only. They kill and
// stop real processes on a real nats-server, and compare the threads with those of an
// undisturbed run.
//
// # What it shows
//
//   - Turns of real conversations with tools all end, each as in a run that
//     nobody disturbed, however often workers are killed with SIGKILL; each tool
//     did its work once, or more than once only if it is declared idempotent.
//   - A whole Skein may be stopped or killed with the store in it: what had begun
//     goes on when it is back, and what waited for an approval still waits.
//   - A worker that stood still for longer than its run was kept for it writes
//     nothing any more.
//   - What comes in while a run ends is answered once, or refused.
//   - A reactor or tool in another process that fails, hangs, dies, or talks
//     nonsense ends its run as EK says, and the thread is usable again.
//
// # How
//
// The test's own program is the process that is killed, see TestMain. Tools keep
// a ledger: a file to which each attempt at a call is written before and after
// its work, so that the test knows what was done, whatever the log says. The
// clock that kills ticks with the events of the log, and its random numbers come
// from a seed that is printed.
//
//	SKEIN_CHAOS_SEED=n    the same random numbers again
//	SKEIN_CHAOS_TURNS=n   so many turns; 200 by default, 40 with -short
//	SKEIN_CHAOS_LOG=1     what the processes log goes to standard error
//
// # What it does not
//
// Disks and networks do not fail here, and clocks do not jump: see dev/faults.
package chaos
