package derived

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// inTime repeats an attempt with longer and longer leases until it reports nothing late:
// a loaded machine may stand still for longer than the shortest one.
func inTime(t *testing.T, attempt func(lasts time.Duration) (late string)) {
	t.Helper()
	late := ""
	for _, lasts := range []time.Duration{4 * time.Second, 16 * time.Second, 40 * time.Second} {
		if late = attempt(lasts); late == "" || t.Failed() {
			return
		}
		t.Logf("where a lease lasts %v: %s", lasts, late)
	}
	t.Error(late)
}

// standstill measures the longest time for which its goroutine has not run.
type standstill struct{ last, longest atomic.Int64 }

// watch observes until the test ends.
func watch(t *testing.T) *standstill {
	t.Helper()
	s := &standstill{}
	s.last.Store(time.Now().UnixNano())
	tick := time.NewTicker(10 * time.Millisecond)
	t.Cleanup(tick.Stop)
	go func() {
		for {
			select {
			case <-tick.C:
				s.observe()
			case <-t.Context().Done():
				return
			}
		}
	}()
	return s
}

func (s *standstill) observe() time.Duration {
	now := time.Now().UnixNano()
	gap := now - s.last.Swap(now)
	for {
		longest := s.longest.Load()
		if gap <= longest || s.longest.CompareAndSwap(longest, gap) {
			return time.Duration(max(gap, longest))
		}
	}
}

// connect returns the streams of a connection.
func connect(t *testing.T, nc *nats.Conn) *streams.Conn {
	t.Helper()
	names := events.DefaultNames()
	conn, err := streams.Open(nc, streams.Config{
		Names: names, API: streams.OwnAPI, Replicas: 1, Sample: names.Stream("LOG"), AckTimeout: 5 * time.Second, Floors: &streams.Floors{},
		Damage: func(string, uint64, uint64) error { return nil },
	})
	must(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// makeLeases creates the bucket of leases.
func makeLeases(t *testing.T, conn *streams.Conn, lasts time.Duration) {
	t.Helper()
	_, err := conn.JetStream().CreateOrUpdateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: LeaseBucket, TTL: lasts, Storage: jetstream.MemoryStorage})
	must(t, err)
}

// holder is a process that wants the lease, with a connection of its own.
type holder struct {
	conn  *streams.Conn
	proxy *natstest.Proxy
	begun chan context.Context // the context of each piece of work
	end   chan error           // ends the work
	quit  context.CancelFunc
	gone  chan struct{} // closed when Hold has returned
}

// hold starts a process that wants the lease. at counts the holders at work.
func hold(t *testing.T, url string, lasts time.Duration, at *atomic.Int64) *holder {
	t.Helper()
	machine := watch(t)
	p := natstest.NewProxy(t, url)
	conn := connect(t, p.Connect(t))
	makeLeases(t, conn, lasts)
	nop := zerolog.Nop()
	l := &Leases{conn: conn, logger: &nop, ttl: lasts}
	ctx, quit := context.WithCancel(context.Background())
	h := &holder{conn: conn, proxy: p, begun: make(chan context.Context, 100), end: make(chan error), quit: quit, gone: make(chan struct{})}
	go func() {
		defer close(h.gone)
		l.Hold(ctx, "work", func(ctx context.Context) error {
			// A holder that stood still learns of its loss as late as its successor does.
			if n := at.Add(1); n != 1 && machine.observe() < lasts/8 {
				t.Errorf("%d hold the lease", n)
			}
			defer at.Add(-1)
			h.begun <- ctx
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-h.end:
				return err
			}
		})
	}()
	t.Cleanup(func() {
		quit()
		natstest.Within(t, "Hold to return", h.gone)
	})
	return h
}

// next returns the holder that begins to work, and its context.
func next(t *testing.T, all ...*holder) (*holder, context.Context) {
	t.Helper()
	for deadline := time.Now().Add(natstest.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, h := range all {
			select {
			case ctx := <-h.begun:
				return h, ctx
			default:
			}
		}
	}
	t.Fatal("nobody takes the lease")
	return nil, nil
}

func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	inTime(t, func(shortly time.Duration) string {
		s := natstest.Start(t)
		var at atomic.Int64
		all := []*holder{hold(t, s.URL(), shortly, &at), hold(t, s.URL(), shortly, &at), hold(t, s.URL(), shortly, &at)}
		seen := map[*holder]bool{}
		for len(all) > 0 {
			h, ctx := next(t, all...)
			seen[h] = true
			if len(seen) == 1 { // it is renewed
				select {
				case <-ctx.Done():
					return fmt.Sprintf("the lease was lost: %v", context.Cause(ctx))
				case <-time.After(shortly * 3 / 2):
				}
			}
			began := time.Now()
			h.quit()
			natstest.Within(t, "Hold to return", h.gone)
			if took := time.Since(began); took > shortly {
				return fmt.Sprintf("it took %v to stop", took)
			}
			var rest []*holder
			for _, other := range all {
				if other != h {
					rest = append(rest, other)
				}
			}
			all = rest
		}
		if len(seen) != 3 {
			t.Errorf("%d have worked", len(seen))
		}
		return ""
	})
}

func TestLease_ReleasedAtOnce(t *testing.T) {
	t.Parallel()
	inTime(t, func(shortly time.Duration) string {
		s := natstest.Start(t)
		var at atomic.Int64
		a := hold(t, s.URL(), shortly, &at)
		next(t, a)
		b := hold(t, s.URL(), shortly, &at)
		began := time.Now()
		a.quit()
		next(t, b)
		if took := time.Since(began); took > shortly*2/3 {
			return fmt.Sprintf("it took %v to take over", took)
		}
		return ""
	})
}

func TestLease_EndsWithItsHolder(t *testing.T) {
	t.Parallel()
	const shortly = 4 * time.Second
	s := natstest.Start(t)
	var at atomic.Int64
	a := hold(t, s.URL(), shortly, &at)
	_, working := next(t, a)
	b := hold(t, s.URL(), shortly, &at)
	a.proxy.DropSent.Store(true) // to the server it has died, and it does not know
	a.proxy.DropReceived.Store(true)
	natstest.Within(t, "the work to be told", working.Done())
	if cause := context.Cause(working); cause == nil || errors.Is(cause, context.Canceled) {
		t.Errorf("the work was told %v", cause)
	}
	next(t, b)
	a.proxy.Cut() // it comes back, and waits
	natstest.Eventually(t, "the connection", a.conn.NATS().IsConnected)
	b.quit()
	next(t, a)
}

func TestLease_TakenByAnotherEndsTheWork(t *testing.T) {
	t.Parallel()
	inTime(t, func(shortly time.Duration) string {
		s := natstest.Start(t)
		var at atomic.Int64
		a := hold(t, s.URL(), shortly, &at)
		_, working := next(t, a)
		kv, err := a.conn.JetStream().KeyValue(t.Context(), LeaseBucket)
		must(t, err)
		began := time.Now()
		_, err = kv.PutString(t.Context(), "work", "somebody")
		must(t, err)
		natstest.Within(t, "the work to be told", working.Done())
		if took := time.Since(began); took > shortly*2/3 {
			return fmt.Sprintf("it took %v", took)
		}
		next(t, a) // the other process never renews it
		return ""
	})
}

// A server whose clock was set back keeps a lease for too long: a waiting process takes
// it over when its holder has not renewed it for its duration.
func TestLease_KeptTooLongByTheServer(t *testing.T) {
	t.Parallel()
	const shortly = 4 * time.Second
	s := natstest.Start(t)
	var at atomic.Int64
	a := hold(t, s.URL(), shortly, &at)
	_, working := next(t, a)
	stream, err := a.conn.JetStream().Stream(t.Context(), "KV_"+LeaseBucket)
	must(t, err)
	cfg := stream.CachedInfo().Config
	cfg.MaxAge = time.Hour
	_, err = a.conn.JetStream().UpdateStream(t.Context(), cfg)
	must(t, err)
	kv, err := a.conn.JetStream().KeyValue(t.Context(), LeaseBucket)
	must(t, err)
	dead := &lease{conn: a.conn, kv: kv, name: "work", owner: "dead", ttl: shortly}
	entry, err := kv.Get(t.Context(), "work")
	must(t, err)
	began := time.Now()
	_, err = kv.Update(t.Context(), "work", []byte(dead.owner), entry.Revision())
	must(t, err)
	natstest.Within(t, "the work to be told", working.Done())
	next(t, a)
	if took := time.Since(began); took < shortly {
		t.Errorf("it was taken after %v, and lasts %v", took, shortly)
	}
}

// A renewal whose reply was lost counts.
func TestLease_RenewalWithLostReply(t *testing.T) {
	t.Parallel()
	conn := connect(t, natstest.Connect(t, natstest.Start(t)))
	makeLeases(t, conn, time.Minute)
	kv, err := conn.JetStream().KeyValue(t.Context(), LeaseBucket)
	must(t, err)
	mine := &lease{conn: conn, kv: kv, name: "work", owner: "me", ttl: time.Minute}
	must(t, mine.acquire(t.Context()))
	_, err = kv.Update(t.Context(), "work", []byte("me"), mine.revision)
	must(t, err)
	if err := mine.renew(t.Context()); err == nil || errors.Is(err, ErrTaken) {
		t.Errorf("got %v", err)
	}
	must(t, mine.renew(t.Context()))
	yours := &lease{conn: conn, kv: kv, name: "work", owner: "you", ttl: time.Minute}
	if yours.acquire(t.Context()) == nil {
		t.Error("two have it")
	}
	mine.release(t.Context())
	must(t, yours.acquire(t.Context()))
	if err := mine.renew(t.Context()); !errors.Is(err, ErrTaken) {
		t.Errorf("got %v", err)
	}
	mine.release(t.Context())
	if entry, err := kv.Get(t.Context(), "work"); err != nil || string(entry.Value()) != "you" {
		t.Errorf("a release of what was taken: %v", err)
	}
}

// A lease is its holder's at once if only the answer was lost: of a request that waited for a connection
// until nobody waited for it, or that a server took long to answer after its start.
func TestLease_AcquiredWithLostReply(t *testing.T) {
	t.Parallel()
	conn := connect(t, natstest.Connect(t, natstest.Start(t)))
	makeLeases(t, conn, time.Minute)
	kv, err := conn.JetStream().KeyValue(t.Context(), LeaseBucket)
	must(t, err)
	_, err = kv.Create(t.Context(), "work", []byte("me"))
	must(t, err)
	mine := &lease{conn: conn, kv: kv, name: "work", owner: "me", ttl: time.Minute}
	yours := &lease{conn: conn, kv: kv, name: "work", owner: "you", ttl: time.Minute}
	if err := yours.acquire(t.Context()); !errors.Is(err, ErrTaken) {
		t.Errorf("another one got %v", err)
	}
	must(t, mine.acquire(t.Context()))
	if !mine.safe() {
		t.Error("it does not last")
	}
	must(t, mine.renew(t.Context()))
}

func TestWorkThatEndsBeginsAgainAfterAPause(t *testing.T) {
	t.Parallel()
	inTime(t, func(shortly time.Duration) string {
		s := natstest.Start(t)
		var at atomic.Int64
		a := hold(t, s.URL(), shortly, &at)
		for _, err := range []error{nil, errors.New("broken"), nil} {
			next(t, a)
			began := time.Now()
			a.end <- err
			next(t, a)
			if took := time.Since(began); took < shortly/10 || took > shortly {
				return fmt.Sprintf("after %v it began again after %v", err, took)
			}
			a.begun <- nil // it is at work already
		}
		return ""
	})
}

func TestHoldReturnsWithoutABucket(t *testing.T) {
	t.Parallel()
	nop := zerolog.Nop()
	l := LeasesOn(connect(t, natstest.Connect(t, natstest.Start(t))), &nop)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Hold(ctx, "work", func(context.Context) error {
			t.Error("there is nothing to hold")
			return nil
		})
	}()
	natstest.Within(t, "Hold to return", done)
}
