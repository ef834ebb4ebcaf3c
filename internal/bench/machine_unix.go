//go:build unix

package bench

import (
	"runtime"
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

// peak returns the most memory that this process has taken, 0 if it is not known.
func peak() int64 {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return use.Maxrss
	}
	return use.Maxrss << 10
}
