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

// inMemory returns a folder in memory for the temporary files of the tests, and what removes it;
// or "" where the system offers none that will do, or TMPDIR names a folder. The tests create some
// hundred thousand small files, which costs on a disk as much as the rest of what they do.
//
// Its name is always the same: a test that has read TMPDIR is run again if that has changed.
func inMemory() (dir string, remove func()) {
	if os.Getenv("TMPDIR") != "" || !memoryFor(shared, "/proc/meminfo", freeMemory, "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes") {
		return "", func() {}
	}
	dir, remove, err := ownFolder(shared, "skein-tests-"+strconv.Itoa(os.Getuid()))
	if err != nil {
		return "", func() {}
	}
	if !runsPrograms(dir) {
		remove()
		return "", func() {}
	}
	return dir, remove
}

// ownFolder returns an empty folder of that name, without what a killed process left in it. While
// another process has it, or where somebody else has made it, the folder has another name.
func ownFolder(in, name string) (dir string, remove func(), err error) {
	dir = filepath.Join(in, name)
	free, err := lock(dir + ".lock")
	if err != nil || os.RemoveAll(dir) != nil || os.Mkdir(dir, 0o700) != nil {
		free()
		free = func() {}
		if dir, err = os.MkdirTemp(in, name+"-"); err != nil {
			return "", nil, err
		}
	}
	return dir, func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, "gotest: remove the folder of the temporary files:", err)
		}
		free()
	}, nil
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
