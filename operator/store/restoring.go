package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// restoringName is the file that says that a backup is being restored into a store. Renaming
// it lets a store be used that an interrupted restore left to an earlier version.
const restoringName = "skein.restoring"

// UnfinishedError says that a restore into a store did not end, so that it has only a part of
// the backup. Nothing was changed, and no server was started.
type UnfinishedError struct{ Dir string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("a restore into the store %s did not end, says %s in it: what it holds is incomplete; "+
		"remove the folder and restore the backup again with skein restore --store %s", e.Dir, restoringName, e.Dir)
}

// Restored returns an *UnfinishedError if a restore into a store did not end.
func Restored(dir string) error {
	_, err := os.Lstat(filepath.Join(dir, restoringName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return &UnfinishedError{Dir: dir}
}

// BeginRestore marks a store as one into which a backup is being restored: until
// [FinishRestore], [Open], [Check] and [Repair] refuse it. The mark is on the disk when it
// returns. The caller holds the store's lock.
func BeginRestore(dir string) error {
	err := writeSynced(filepath.Join(dir, restoringName), nil)
	if errors.Is(err, fs.ErrExist) {
		return &UnfinishedError{Dir: dir}
	}
	if err != nil {
		return err
	}
	return syncFile(dir)
}

// FinishRestore removes the mark of [BeginRestore], once everything in the store is on the
// disk. No server uses the store any more: it ended, and the store counts as closed cleanly.
func FinishRestore(cfg Config) error {
	dir := cfg.Dir
	if err := cfg.markClosed(&mark{Format: markFormat, Streams: map[string]uint64{}}); err != nil {
		return err
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncFile(path)
	})
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, restoringName)); err != nil {
		return err
	}
	return syncFile(dir)
}

// syncFile waits until a file, or the names in a folder, are on the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
