package main

import "syscall"

// freeOf returns the bytes that are free in the file system of a folder.
func freeOf(dir string) (uint64, bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
