package embedded

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock without waiting. It is of one byte far behind the file's end: a lock of
// Windows keeps others from reading what it covers, and they read who holds it.
func tryLock(file *os.File) error {
	const exclusiveAtOnce = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(file.Fd()), exclusiveAtOnce, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errLocked
	}
	return err
}
