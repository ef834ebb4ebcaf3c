//go:build darwin || linux

package store

import (
	"path/filepath"
	"syscall"
)

// freeOf returns the bytes that are free for this user on the disk of a folder, or of
// the first folder above it that is there.
func freeOf(dir string) (uint64, bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0, false
	}
	for {
		var s syscall.Statfs_t
		if syscall.Statfs(dir, &s) == nil {
			return s.Bavail * uint64(s.Bsize), true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return 0, false
		}
		dir = above
	}
}
