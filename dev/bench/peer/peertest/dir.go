// Package peertest has what tests of Skein's peers share.
package peertest

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns a folder that the user of Postgres can reach, also where the tests run as root.
func Dir(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return t.TempDir()
	}
	for _, base := range []string{os.TempDir(), "/dev/shm", "/tmp"} {
		dir, err := os.MkdirTemp(base, "skein-peer-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		open := true
		for at := dir; open && at != filepath.Dir(at); at = filepath.Dir(at) {
			info, err := os.Stat(at)
			open = err == nil && info.Mode()&0o001 != 0
		}
		if open {
			return dir
		}
	}
	t.Skip("root has no temporary folder that another user can reach")
	return ""
}
