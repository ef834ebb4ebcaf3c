package skeintest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
)

// Server is the Skein of one test. Its methods fail the test on errors, so they must be
// called from the test's own goroutine.
type Server struct {
	*skein.Server
	Clock *Clock
	t     testing.TB
}

// Start starts a Skein that is stopped at the end of the test. Each option may change
// the options; the store, and the clock unless Now is set, belong to the test.
func Start(t testing.TB, options ...func(*skein.Options)) *Server {
	t.Helper()
	clock := &Clock{}
	o := skein.Options{
		Store: t.TempDir(), NATSListen: skein.None, HTTPListen: skein.None, Volatile: true,
		Logger: zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel), Now: clock.Now,
	}
	for _, set := range options {
		set(&o)
	}
	if o.NATS != "" { // then nothing is stored here
		o.Store, o.NATSListen, o.Volatile = "", skein.None, false
	}
	started, err := skein.Start(t.Context(), o)
	if err != nil {
		t.Fatalf("start Skein: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := started.Stop(ctx); err != nil {
			t.Errorf("stop Skein: %v", err)
		}
	})
	return &Server{Server: started, Clock: clock, t: t}
}

// Must fails the test if err is not nil.
func (s *Server) Must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Client returns a client of a tenant.
func (s *Server) Client(tenant string) *client.Client {
	s.t.Helper()
	c, err := s.Server.Client(tenant)
	s.Must(err)
	return c
}

// Advance moves the clock forward and starts the effects that are due then. WaitIdle
// waits for their end.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	s.Clock.Advance(d)
	ctx, cancel := s.patience()
	defer cancel()
	_, err := s.FireDue(ctx)
	s.Must(err)
}

// WaitIdle blocks until no work is left; see skein.Server.WaitIdle.
func (s *Server) WaitIdle() {
	s.t.Helper()
	ctx, cancel := s.patience()
	defer cancel()
	s.Must(s.Server.WaitIdle(ctx))
}

// patience returns a context that ends a little before the test's deadline.
func (s *Server) patience() (context.Context, context.CancelFunc) {
	ctx := s.t.Context()
	if t, ok := s.t.(*testing.T); ok {
		if end, ok := t.Deadline(); ok {
			return context.WithDeadline(ctx, end.Add(-time.Second))
		}
	}
	return context.WithTimeout(ctx, 5*time.Minute)
}

// Clock is a clock that is ahead of the machine's by the time it was advanced. The zero
// value shows the machine's time. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// Advance moves the clock forward. It panics for a negative duration: time does not go
// back.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("skeintest: a clock cannot go back: its threads have later times")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}
