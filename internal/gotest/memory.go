package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	shared = "/dev/shm"
	// freeMemory is what must be free for the files of the tests, which take less than
	// 1 GiB at any moment, and for the tests.
	freeMemory = 8 << 30
)

// inMemory returns a new folder in memory for the temporary files of the tests, and
// what removes it; or "" where the system offers none that will do, or TMPDIR names
// a folder. The tests create some hundred thousand small files, which costs on a disk
// as much as the rest of what they do.
func inMemory() (dir string, remove func()) {
	if os.Getenv("TMPDIR") != "" || !memoryFor(shared, "/proc/meminfo", freeMemory, "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes") {
		return "", func() {}
	}
	dir, err := os.MkdirTemp(shared, "skein-tests-")
	if err != nil {
		return "", func() {}
	}
	remove = func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, "gotest: remove the folder of the temporary files:", err)
		}
	}
	if !runsPrograms(dir) {
		remove()
		return "", func() {}
	}
	return dir, remove
}

// memoryFor reports whether a folder in memory has space for so many bytes, the system as
// much memory available, and no limit of a container is below twice of it.
func memoryFor(dir, info string, bytes uint64, limits ...string) bool {
	if free, ok := freeOf(dir); !ok || free < bytes {
		return false
	}
	text, err := os.ReadFile(info)
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(text), "MemAvailable:")
	var available uint64 // in KiB
	if _, err := fmt.Sscan(after, &available); err != nil || available<<10 < bytes {
		return false
	}
	for _, limit := range limits {
		text, err := os.ReadFile(limit)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && n < 2*bytes {
			return false // "max" is none
		}
	}
	return true
}

// runsPrograms reports whether programs may be run in a folder: containers often
// forbid it in shared memory, and go test runs there what it builds.
func runsPrograms(dir string) bool {
	path := filepath.Join(dir, "probe")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		return false
	}
	defer os.Remove(path)
	return exec.Command(path).Run() == nil
}
