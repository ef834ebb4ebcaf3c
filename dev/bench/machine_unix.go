//go:build unix

package bench

import (
	"runtime"
	"syscall"
	"time"
)

// flush writes pending data to disk.
func flush() { syscall.Sync() }

// processor returns the processor time that this process has used, user and system; 0
// if unknown.
func processor() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// peak returns the peak memory of this process, 0 if unknown.
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
