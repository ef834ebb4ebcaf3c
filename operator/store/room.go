package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// needRoom is what must be free on the disk of a store before a server starts on it:
// its indexes, the mark, the first blocks that are written.
const needRoom = 16 << 20

// What commands leave free on the disk of a store, so that a store that is full can be read,
// closed and started: the rest of what is derived from the last of them, and needRoom. A byte of
// a commit takes up to writtenTimes bytes, in the log and in all that is derived from it.
const (
	reserve      = 20 << 20
	writtenTimes = 4
	nothing      = 64 << 10 // less is no space
)

// FullError says that the disk of a store is full, up to what Skein needs to go on reading it.
type FullError struct {
	Dir  string
	Free uint64 // bytes
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%.1f MiB are free on the disk of %s, of which Skein needs %d MiB for itself: make room on that disk, and commands are taken again",
		float64(e.Free)/(1<<20), e.Dir, reserve>>20)
}

// Free returns the bytes that are free on the disk of a store. ok is false if the system does not say.
func Free(dir string) (bytes uint64, ok bool) { return freeOf(dir) }

// Full returns a *FullError if a commit of so many bytes does not fit on the disk of a store. A disk
// of which something else has taken everything is no full store: the server fails to write there,
// and has to be restarted.
func Full(dir string, bytes int) error {
	free, ok := freeOf(dir)
	if !ok || free < nothing || free >= reserve+uint64(max(bytes, 0))*writtenTimes {
		return nil
	}
	return &FullError{Dir: dir, Free: free}
}

// RoomError says that the disk of a store has no room for a server to start.
type RoomError struct {
	Dir   string
	Free  uint64 // bytes
	Aside bool   // there is something that a repair set aside
	Cause error  // what failed; nil: nothing was tried
}

func (e *RoomError) Error() string {
	text := fmt.Sprintf("the disk of the store %s has no room: %d MiB are free, and at least %d MiB are needed to start", e.Dir, e.Free>>20, needRoom>>20)
	if e.Cause != nil {
		text += fmt.Sprintf(" (%v)", e.Cause)
	}
	text += "; nothing is lost: make room on that disk, or copy the whole folder to a larger one, and start Skein again; "
	if e.Aside {
		return text + "in the folder itself only " + filepath.Join(e.Dir, asideDir) + " may be removed, which holds what skein store repair replaced"
	}
	return text + "in the folder itself nothing may be removed"
}

func (e *RoomError) Unwrap() error { return e.Cause }

// Room returns a *RoomError if the disk of a store, which may not be there yet, has no
// room for a server to start.
func Room(dir string) error {
	free, ok := freeOf(dir)
	if !ok || free >= needRoom {
		return nil
	}
	return roomError(dir, free, nil)
}

// Roomless makes a *RoomError of an error that says that a disk is full, and returns
// others as they are.
func Roomless(dir string, err error) error {
	var known *RoomError
	if errors.As(err, &known) || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	free, _ := freeOf(dir)
	return roomError(dir, free, err)
}

func roomError(dir string, free uint64, cause error) error {
	_, err := os.Stat(filepath.Join(dir, asideDir))
	return &RoomError{Dir: dir, Free: free, Aside: err == nil, Cause: cause}
}
