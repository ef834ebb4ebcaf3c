package queues_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// A run is in the queue if its message is of the version that last requested it: one of
// an earlier version was acknowledged, and may be there again after a kill of the server.
func TestHasRun(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	thread := logtest.NewAuthor(1).Thread
	has := func(version int64) bool {
		t.Helper()
		there, err := queues.RunsOf(l).Has(t.Context(), logtest.Tenant, thread, "exe_1", version)
		logtest.Must(t, err)
		return there
	}
	if has(0) {
		t.Error("it is there before it was queued")
	}
	logtest.Must(t, queues.RunsOf(l).Put(logtest.Tenant, thread, 4, "exe_1", "agent"))
	natstest.Eventually(t, "it is there", func() bool { return has(4) })
	if has(9) {
		t.Error("what version 4 asked for counts for version 9")
	}
	logtest.Must(t, queues.RunsOf(l).Put(logtest.Tenant, thread, 9, "exe_1", "agent"))
	natstest.Eventually(t, "it is there again", func() bool { return has(9) })
	if !has(4) {
		t.Error("what version 9 asked for does not count for version 4")
	}
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	queue, err := queues.RunsOf(l).Receive(ctx)
	logtest.Must(t, err)
	defer queue.Close()
	run, err := queue.Next(ctx, 1) // the newer message replaced the older one
	logtest.Must(t, err)
	if !has(9) {
		t.Error("in hand, it is not there")
	}
	logtest.Must(t, run.Done())
	natstest.Eventually(t, "it is gone", func() bool { return !has(0) })
}

// Two threads have an execution of the same id. The message of one is not that of the other, and is
// not erased with it.
func TestRuns_SameIDInTwoThreads(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	queue := queues.RunsOf(l)
	has := func(thread string) bool {
		t.Helper()
		there, err := queue.Has(t.Context(), logtest.Tenant, thread, "exe_1", 4)
		logtest.Must(t, err)
		return there
	}
	logtest.Must(t, queue.Put(logtest.Tenant, "T-1", 4, "exe_1", "agent"))
	natstest.Eventually(t, "the first is there", func() bool { return has("T-1") })
	logtest.Must(t, queue.Put(logtest.Tenant, "T-2", 9, "exe_1", "agent"))
	natstest.Eventually(t, "the second is there", func() bool { return has("T-2") })
	if has("T-1") {
		t.Error("the message of another thread counts")
	}
	logtest.Must(t, queue.Erase(t.Context(), logtest.Tenant, "T-1", []string{"exe_1"}))
	if !has("T-2") {
		t.Error("the message of another thread was erased")
	}
	logtest.Must(t, queue.Erase(t.Context(), logtest.Tenant, "T-2", []string{"exe_1"}))
	if has("T-2") {
		t.Error("it was not erased")
	}
}

// Runs that were handed to a process which stops are answered: a worker that gets no answer leaves the
// run in the queue until it is redelivered.
func TestHanded_StopAnswersWhatHasArrived(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	nc := l.Conn()
	begun, release := make(chan string, 1000), make(chan struct{})
	inbox, stop, err := queues.RunsOf(l).Handed(func(r *queues.Run) bool {
		begun <- r.Execution
		<-release
		return false
	})
	logtest.Must(t, err)
	answers, err := nc.SubscribeSync(nc.NewInbox())
	logtest.Must(t, err)
	for range 2 {
		logtest.Must(t, nc.PublishRequest(inbox, answers.Subject, []byte(logtest.Tenant+".exe_1")))
	}
	logtest.Must(t, nc.Flush()) // both have arrived
	<-begun                     // and the second waits for the first
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	natstest.Eventually(t, "no more are accepted", func() bool {
		_, err := nc.Request(inbox, []byte(logtest.Tenant+".exe_2"), 50*time.Millisecond)
		return errors.Is(err, nats.ErrNoResponders)
	})
	close(release)
	natstest.Within(t, "the inbox to end", stopped)
	logtest.Must(t, nc.Flush())
	if n, _, err := answers.Pending(); n != 2 || err != nil {
		t.Errorf("%d of 2 are answered: %v", n, err)
	}
}
