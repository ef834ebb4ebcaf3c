package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skein-threads/skein/dev/cluster"
)

// A server whose disk is full leaves the cluster without harm, and rejoins when there is
// room, with the data that it has or a copy.
func TestFullDisk(t *testing.T) {
	long(t)
	if os.Geteuid() != 0 {
		t.Skip("only root mounts a small file system")
	}
	var full string
	w := beginWorld(t, func(w *world) [cluster.Servers]cluster.Place {
		full = filepath.Join(w.dir, "skein-cluster", "n1")
		must(t, os.MkdirAll(full, 0o700))
		if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=64m"); err != nil {
			t.Skipf("no small file system: %v", err)
		}
		t.Cleanup(func() {
			w.Servers[0].Kill()
			if err := syscall.Unmount(full, 0); err != nil {
				t.Error(err)
			}
		})
		return [cluster.Servers]cluster.Place{}
	})
	w.during(func(ctx context.Context) {
		filler := filepath.Join(full, "filler")
		t.Logf("%s: the disk of n1 is full", time.Now().Format("15:04:05.000"))
		must(t, fill(filler))
		sleep(ctx, 10*time.Second)
		must(t, os.Remove(filler))
		if said, err := os.ReadFile(w.Servers[0].Log()); err != nil || !strings.Contains(string(said), "no space left") {
			t.Errorf("n1 did not meet the full disk (%v)", err)
		}
		// A server that met a full disk stops JetStream, and has to be restarted.
		w.Servers[0].Stop(20 * time.Second)
		w.restart(0)
	})
}

// fill writes a file until the disk is full.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	if info, err := f.Stat(); err != nil || info.Size() < 1<<20 {
		return fmt.Errorf("the disk took %v (%w)", info, err)
	}
	return nil
}
