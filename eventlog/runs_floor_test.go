package eventlog

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/natstest"
)

// A server that is killed may forget that it took an acknowledged run out of the
// queue. The message is there again and comes to nobody: whoever looks for lost
// runs must not take it for one that waits.
func TestAcknowledgedRunComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := natstest.Start(t, natstest.StoreDir(dir))
	l := openLog(t, natstest.Connect(t, s), Config{}, nil)
	thread := newAuthor(1).thread
	must(t, l.QueueRun(tenant, thread, "exe_1", "agent"))
	queue, err := l.Runs(t.Context())
	must(t, err)
	run, err := queue.Next(t.Context(), 1)
	must(t, err)
	if floor, err := l.RunFloor(t.Context()); err != nil || floor != 0 {
		t.Fatalf("in hand, the floor is %d: %v", floor, err)
	}
	msgs := filepath.Join(dir, "jetstream", "$G", "streams", l.cfg.Names.Stream(RunStream), "msgs")
	block := filepath.Join(msgs, "1.blk")
	var before []byte
	eventually(t, "the message is on the disk", func() bool {
		before, err = os.ReadFile(block)
		return err == nil && bytes.Contains(before, []byte("exe_1"))
	})
	must(t, run.Done())
	eventually(t, "the run is out of the queue", func() bool {
		there, err := l.HasRun(t.Context(), tenant, "exe_1", 0)
		return err == nil && !there
	})
	queue.Close()
	l.Close()
	s.Shutdown()
	entries, err := os.ReadDir(msgs)
	must(t, err)
	for _, e := range entries {
		must(t, os.RemoveAll(filepath.Join(msgs, e.Name())))
	}
	must(t, os.WriteFile(block, before, 0o600)) // the queue is as it was before, the consumer is not

	s = natstest.Start(t, natstest.StoreDir(dir))
	l, err = Open(natstest.Connect(t, s), Config{}, zerolog.Nop(), nil)
	must(t, err)
	t.Cleanup(l.Close)
	if there, err := l.HasRun(t.Context(), tenant, "exe_1", 0); err != nil || !there {
		t.Fatalf("this shows nothing: the message is there: %v, %v", there, err)
	}
	floor, err := l.RunFloor(t.Context())
	must(t, err)
	if there, err := l.HasRun(t.Context(), tenant, "exe_1", floor); err != nil || there {
		t.Errorf("above the floor %d it is there: %v, %v", floor, there, err)
	}
	must(t, l.QueueRun(tenant, thread, "exe_1", "agent"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if queue, err = l.Runs(ctx); err == nil {
		run, err = queue.Next(ctx, 1)
	}
	if err != nil || run.Execution != "exe_1" {
		t.Errorf("queued anew, it comes as %v: %v", run, err)
	}
	queue.Close()
}
