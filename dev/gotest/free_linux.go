package main

import (
	"errors"
	"os"
	"syscall"
)

// freeOf returns the bytes that are free in the file system of a folder.
func freeOf(dir string) (uint64, bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}

// lock takes a file for this process, unless another has it.
func lock(path string) (free func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return func() {}, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return func() {}, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // which frees it
}
