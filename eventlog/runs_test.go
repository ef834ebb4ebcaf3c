package eventlog

import (
	"context"
	"testing"
)

// A run is in the queue if the message there is of the version that last asked for
// it: one of an earlier version was acknowledged, and a server that was killed may
// have it again.
func TestHasRun(t *testing.T) {
	t.Parallel()
	l := start(t)
	thread := newAuthor(1).thread
	has := func(version int64) bool {
		t.Helper()
		there, err := l.HasRun(t.Context(), tenant, "exe_1", version)
		must(t, err)
		return there
	}
	if has(0) {
		t.Error("it is there before it was queued")
	}
	must(t, l.QueueRun(tenant, thread, 4, "exe_1", "agent"))
	eventually(t, "it is there", func() bool { return has(4) })
	if has(9) {
		t.Error("what version 4 asked for counts for version 9")
	}
	must(t, l.QueueRun(tenant, thread, 9, "exe_1", "agent"))
	eventually(t, "it is there anew", func() bool { return has(9) })
	if !has(4) {
		t.Error("what version 9 asked for does not count for version 4")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	queue, err := l.Runs(ctx)
	must(t, err)
	defer queue.Close()
	run, err := queue.Next(ctx, 1) // the newer message took the place of the older one
	must(t, err)
	if !has(9) {
		t.Error("in hand, it is not there")
	}
	must(t, run.Done())
	eventually(t, "it is gone", func() bool { return !has(0) })
}
