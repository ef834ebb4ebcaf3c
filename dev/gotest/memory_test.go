package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestMemoryFor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no folder in memory outside Linux")
	}
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	enough := filepath.Join(t.TempDir(), "meminfo")
	if err := os.WriteFile(enough, []byte("MemTotal: 9 kB\nMemAvailable:       8 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir, info, limit string
		want             bool
	}{
		"no limit":                   {dir, enough, filepath.Join(dir, "gone"), true},
		"a limit that is not set":    {dir, enough, "max\n", true},
		"a limit of twice as much":   {dir, enough, "16384\n", true},
		"a limit of less than twice": {dir, enough, "16383\n", false},
		"too little memory":          {dir, "MemAvailable: 7 kB\n", "max\n", false},
		"an unknown amount":          {dir, "MemFree: 9 kB\n", "max\n", false},
		"no such folder":             {filepath.Join(dir, "gone"), enough, "max\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			info, limit := c.info, c.limit
			if info != enough {
				info = write(info)
			}
			if c.limit != filepath.Join(dir, "gone") {
				limit = filepath.Join(t.TempDir(), "limit")
				if err := os.WriteFile(limit, []byte(c.limit), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := memoryFor(c.dir, info, 8<<10, limit); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A folder that the caller chose stays.
func TestInMemory_KeepsTMPDIR(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if dir, _ := inMemory(); dir != "" {
		t.Errorf("chose %s", dir)
	}
}

// The folder has the same name in each run, and nothing of a run that was killed; runs at once
// have folders of their own, and none is what somebody else has made.
func TestOwnFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no folder in memory outside Linux")
	}
	in := t.TempDir()
	take := func() (string, func()) {
		t.Helper()
		dir, remove, err := ownFolder(in, "tests")
		if err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s has %v, %v", dir, left, err)
		}
		return dir, remove
	}
	first, removeFirst := take()
	second, removeSecond := take()
	if first != filepath.Join(in, "tests") || second == first {
		t.Errorf("two at once have %s and %s", first, second)
	}
	removeSecond()
	removeFirst()
	if err := os.MkdirAll(filepath.Join(first, "left"), 0o700); err != nil { // by one that was killed
		t.Fatal(err)
	}
	again, removeAgain := take()
	if again != first {
		t.Errorf("the next has %s", again)
	}
	removeAgain()
	if err := os.Symlink(t.TempDir(), first+".lock.new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(first+".lock.new", first+".lock"); err != nil {
		t.Fatal(err)
	}
	if other, remove := take(); other == first {
		t.Error("somebody else's lock was taken")
	} else {
		remove()
	}
}
