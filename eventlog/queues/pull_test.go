package queues_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// long is how long a message may stay with a receiver: no test waits for that.
const long = time.Hour

func ten() int { return 10 }

// onItsWay opens a request with next, which returns when its context ends, calls put, and returns
// when the server has sent what was put to the receiver, which has not got it. It arrives
// once the receiver is being closed.
func onItsWay(t *testing.T, l *eventlog.Log, p *natstest.Proxy, stream, consumer string, next func(context.Context), put func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		next(ctx)
	}()
	info := func() (waiting, taken int) {
		c, err := l.JetStream().Consumer(t.Context(), stream, consumer)
		logtest.Must(t, err)
		return c.CachedInfo().NumWaiting, c.CachedInfo().NumAckPending
	}
	natstest.Eventually(t, "the receiver has asked", func() bool { waiting, _ := info(); return waiting == 1 })
	cancel()
	natstest.Within(t, "the receiver to stop waiting", asked)
	p.Held.Lock()
	put()
	natstest.Eventually(t, "the message is sent", func() bool { _, taken := info(); return taken == 1 })
}

// stop closes a receiver whose connection p holds back, until it has begun to end its request.
func stop(t *testing.T, nc *nats.Conn, p *natstest.Proxy, closing func()) {
	t.Helper()
	sent, closed := nc.Stats().OutMsgs, make(chan struct{})
	go func() {
		defer close(closed)
		closing()
	}()
	natstest.Eventually(t, "it ends", func() bool {
		select {
		case <-closed: // without what is on its way
			return true
		default:
			return nc.Stats().OutMsgs > sent
		}
	})
	p.Held.Unlock()
	natstest.Within(t, "the receiver to close", closed)
}

// held returns a log whose connection can be held back, and another one on the same server.
func held(t *testing.T) (*eventlog.Log, *natstest.Proxy, *eventlog.Log) {
	t.Helper()
	s := natstest.Start(t)
	p := natstest.NewProxy(t, s.URL())
	return logtest.Open(t, p.Connect(t), eventlog.Config{}), p, logtest.Open(t, natstest.Connect(t, s), eventlog.Config{})
}

// A due message that is on its way to a receiver when that is closed goes to another one at once.
func TestDueReceiver_ClosedWithAMessageOnItsWay(t *testing.T) {
	t.Parallel()
	near, p, l := held(t)
	q, err := queues.TimersOf(near).Receive(t.Context(), long)
	logtest.Must(t, err)
	onItsWay(t, l, p, "SKEIN_TIMERS", "skein-due", func(ctx context.Context) { _, _ = q.Next(ctx, ten) }, func() {
		logtest.Must(t, queues.TimersOf(l).Put(t.Context(), queues.Timer{Tenant: "acme", Thread: "T-1", ID: "a", Data: []byte("a")}))
	})
	stop(t, near.Conn(), p, q.Close)
	if m := due(t, receiver(t, l, long)); m.ID != "a" {
		t.Errorf("due is %+v", m)
	}
}

// A run that is on its way to a worker that stops goes to another one; if a worker has begun it,
// to that one, although it was delivered elsewhere.
func TestReceiver_ClosedWithARunOnItsWay(t *testing.T) {
	t.Parallel()
	near, p, l := held(t)
	thread := logtest.NewAuthor(1).Thread
	handed := make(chan *queues.Run, 1)
	inbox, unsubscribe, err := queues.RunsOf(l).Handed(func(r *queues.Run) bool { handed <- r; return true })
	logtest.Must(t, err)
	defer unsubscribe()
	for _, keeper := range []string{"", inbox, l.Conn().NewInbox()} {
		q, err := queues.RunsOf(near).Receive(t.Context())
		logtest.Must(t, err)
		onItsWay(t, l, p, "SKEIN_RUNS", "skein-workers", func(ctx context.Context) { _, _ = q.Next(ctx, 10) }, func() {
			logtest.Must(t, queues.RunsOf(l).PutBegun(queues.RunsOf(l).Begin(logtest.Tenant, thread, 1, "exe_1", "agent", keeper)))
		})
		stop(t, near.Conn(), p, q.Close)
		var r *queues.Run
		if keeper == inbox {
			r = natstest.Within(t, "the worker that has begun the run to get it", handed)
		} else {
			other, err := queues.RunsOf(l).Receive(t.Context())
			logtest.Must(t, err)
			r, err = other.Next(t.Context(), 1)
			logtest.Must(t, err)
			other.Close()
		}
		if r.Execution != "exe_1" {
			t.Errorf("with the keeper %q came %q", keeper, r.Execution)
		}
		logtest.Must(t, r.Done())
		natstest.Eventually(t, "the run is gone", func() bool {
			there, err := queues.RunsOf(l).Has(t.Context(), logtest.Tenant, thread, "exe_1", 0)
			return err == nil && !there
		})
	}
}

// Receivers whose server does not lead the queue lose nothing either when they are closed.
func TestDueReceiver_ClosedInCluster(t *testing.T) {
	t.Parallel()
	c := natstest.StartCluster(t)
	connect := func(i int) *nats.Conn { return natstest.Dial(t, c.Servers[i].ClientURL()) }
	l := logtest.Open(t, connect(0), eventlog.Config{Replicas: natstest.ClusterSize})
	receiver(t, l, long)
	var leader string
	natstest.Eventually(t, "the queue has a leader", func() bool {
		info, err := l.JetStream().Consumer(t.Context(), l.Config().Names.Stream(assets.TimerStream), "skein-due")
		if err != nil || info.CachedInfo().Cluster == nil {
			return false
		}
		leader = info.CachedInfo().Cluster.Leader
		return leader != ""
	})
	away := 0
	for leader == c.Name(away) {
		away++
	}
	far := logtest.Open(t, connect(away), eventlog.Config{Replicas: natstest.ClusterSize})
	const messages, rounds = 4000, 10
	put := make(chan error, 1)
	go func() {
		for i := range messages {
			at := queues.Timer{Tenant: "acme", Thread: "T-1", ID: fmt.Sprint("e", i)}
			if err := queues.TimersOf(l).Put(t.Context(), at); err != nil {
				put <- err
				return
			}
		}
		put <- nil
	}()
	got := map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	take := func(q *queues.DueReceiver, n int) {
		for range n {
			m, err := q.Next(ctx, func() int { return 500 })
			logtest.Must(t, err)
			got[m.ID] = true
			logtest.Must(t, m.Done())
		}
	}
	for range rounds {
		q, err := queues.TimersOf(far).Receive(t.Context(), long)
		logtest.Must(t, err)
		take(q, 20) // of 500 that were requested
		q.Close()
	}
	last := receiver(t, far, long)
	for len(got) < messages {
		take(last, 1)
	}
	logtest.Must(t, natstest.Within(t, "all to be put", put))
}
