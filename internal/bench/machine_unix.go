//go:build unix

package bench

import (
	"syscall"
	"time"
)

// flush puts to disk what was left to be written.
func flush() { syscall.Sync() }

// processor gives the processor time that this process has used, its own and
// the system's for it; 0 if that cannot be told.
func processor() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
