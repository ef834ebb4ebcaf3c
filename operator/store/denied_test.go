//go:build linux

package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/operator/store"
)

// A block that this user may not read is not damaged, and a repair does not replace it.
func TestCheck_PermissionDenied(t *testing.T) {
	u := newUsed(t, jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log.*"}})
	u.publish("log.a", 1)
	cfg := u.killed()
	block := filepath.Join(messages(cfg, "LOG"), "1.blk")
	if err := os.Chmod(block, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // who may read everything, until another user is in effect
		for dir := filepath.Dir(cfg.Dir); strings.HasPrefix(dir, os.TempDir()); dir = filepath.Dir(dir) { // the way there
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
		}
		err := errors.Join(filepath.WalkDir(cfg.Dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && path != block {
				err = os.Chmod(path, 0o777)
			}
			return err
		}), syscall.Setreuid(-1, 65534))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := syscall.Setreuid(-1, 0); err != nil {
				t.Error(err)
			}
		})
	}
	var denied *store.DeniedError
	if _, err := store.Check(t.Context(), cfg); !errors.As(err, &denied) || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), block) {
		t.Errorf("a check says %v", err)
	}
	if _, err := store.Repair(t.Context(), store.RepairConfig{Config: cfg, AcceptLoss: true}); !errors.As(err, &denied) {
		t.Errorf("a repair says %v", err)
	}
	cfg.Derived = func(string) bool { return true }
	if _, err := store.Open(t.Context(), cfg); !errors.As(err, &denied) || !strings.Contains(err.Error(), block) {
		t.Errorf("a start with such a block of a derived stream says %v", err)
	}
}
