package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lockName is the lock file in the store directory. Renaming it lets two
// versions of Skein open one store.
const lockName = "skein.lock"

// errLocked is the error of tryLock if another process has the lock.
var errLocked = errors.New("locked")

// storeLock is the exclusive right to a store directory. It belongs to the open
// file and not to the process, so it also binds two servers in one process.
type storeLock struct{ file *os.File }

// lockStore makes the directory, proves that it can be written, and locks it.
// The file stays after release: removing it would let two processes hold locks
// on two files of one name.
func lockStore(dir string) (*storeLock, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, &StoreUnusableError{Dir: dir, Err: err}
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, &StoreUnusableError{Dir: dir, Err: err}
	}
	if err := tryLock(file); err != nil {
		pid := readPID(file)
		file.Close()
		if errors.Is(err, errLocked) {
			return nil, &StoreInUseError{Dir: dir, PID: pid}
		}
		return nil, &StoreUnusableError{Dir: dir, Err: err}
	}
	if err := writePID(file); err != nil {
		file.Close()
		return nil, &StoreUnusableError{Dir: dir, Err: err}
	}
	return &storeLock{file: file}, nil
}

// LockFolder takes the lock on any folder, as Start does on its store: one
// process at a time has it. The error is a *StoreInUseError or a
// *StoreUnusableError.
func LockFolder(dir string) (release func(), err error) {
	lock, err := lockStore(dir)
	if err != nil {
		return nil, err
	}
	return lock.release, nil
}

// release unlocks the store; closing the file drops the lock.
func (l *storeLock) release() {
	// What is left is only a name for an error message, so a failure to clear
	// it does not matter.
	_ = l.file.Truncate(0)
	l.file.Close()
}

// writePID stores the id of the process that holds the lock, for the error of others.
func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	return err
}

// readPID returns 0 when the holder has not written its name yet.
func readPID(file *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
