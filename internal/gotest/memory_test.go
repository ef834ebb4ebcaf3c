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
