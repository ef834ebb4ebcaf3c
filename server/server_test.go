package server_test

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

func free(t testing.TB) server.Config {
	return server.Config{Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true}
}

func run(t testing.TB, cfg server.Config) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t testing.TB, s *server.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestConfig_ReportsAllErrors(t *testing.T) {
	t.Parallel()
	err := server.Config{HTTPListen: "0.0.0.0:80", NATSListen: "10.0.0.1:4222", Replicas: 2, ThreadCache: -1}.Validate()
	var http *api.NotLoopbackError
	var nats *embedded.NotLoopbackError
	if !errors.As(err, &http) || !errors.As(err, &nats) || !strings.Contains(err.Error(), "replicas") || !strings.Contains(err.Error(), "--thread-cache") {
		t.Errorf("%v", err)
	}
	err = server.Config{TenantRate: math.NaN(), TenantFairRate: math.Inf(1), TenantEffectRate: math.Inf(-1)}.Validate()
	for _, want := range []string{"--tenant-rate: NaN", "--tenant-fair-rate: +Inf", "--tenant-effect-rate: -Inf"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := (server.Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

// Requests in flight during a stop are answered, and what was answered is there
// afterwards.
func TestStop_AnswersRequestsInFlight(t *testing.T) {
	t.Parallel()
	cfg := free(t)
	s := run(t, cfg)
	c, err := client.Connect(s.Addresses().NATS, client.Options{Tenant: "acme", Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	var mu sync.Mutex
	done := map[string]bool{}
	some := make(chan struct{})
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for {
				r, err := c.Send(t.Context(), "", events.CreateThread{})
				if err != nil {
					return
				}
				mu.Lock()
				done[r.ThreadID] = true
				if len(done) == 100 {
					close(some)
				}
				mu.Unlock()
			}
		})
	}
	select { // it stops amid what is asked
	case <-some:
	case <-time.After(5 * time.Minute):
		t.Fatal("nothing is done")
	}
	stop(t, s)
	stop(t, s) // twice does no harm
	if err := s.Ready(t.Context()); err == nil {
		t.Error("it is stopped, and says that it is ready")
	}
	writers.Wait()
	s = run(t, cfg)
	again, err := client.Connect(s.Addresses().NATS, client.Options{Tenant: "acme", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	line, err := again.Timeline(t.Context(), client.SubscribeOptions{Types: []string{"thread.created"}, History: true})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	for e, err := range line.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		delete(done, e.ThreadID)
	}
	if len(done) > 0 {
		t.Errorf("%d threads that were answered for are not there", len(done))
	}
}

// Two Skeins on one server share the work, and one continues when the other stops.
func TestServers_ShareWork(t *testing.T) {
	t.Parallel()
	url := natstest.Start(t).URL()
	cfg := server.Config{NATS: url, HTTPListen: "127.0.0.1:0"}
	one, _ := run(t, cfg), run(t, cfg)
	c, err := client.Connect(url, client.Options{Tenant: "acme", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	made, err := c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if i == 10 {
			stop(t, one)
		}
		r, err := c.Send(t.Context(), made.ThreadID, events.UpdateThread{Title: new("t")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(t.Context(), c.WithMinSeq(r.Seq), events.GetThread{ThreadID: made.ThreadID}); err != nil {
			t.Fatal(err)
		}
	}
}

// A failed start leaves nothing running and nothing locked.
func TestStart_FailureLeavesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	before := runtime.NumGoroutine()
	cfg := free(t)
	for _, change := range []func(*server.Config){
		func(c *server.Config) { c.HTTPListen = taken.Addr().String() },
		func(c *server.Config) { c.NATSListen = taken.Addr().String() },
		func(c *server.Config) { c.NATS = "nats://127.0.0.1:1" },
		func(c *server.Config) {
			c.Store = filepath.Join(c.Store, "file", "below")
			_ = os.WriteFile(filepath.Dir(c.Store), nil, 0o600)
		},
	} {
		bad := cfg
		change(&bad)
		if s, err := server.Start(t.Context(), bad, zerolog.Nop()); err == nil {
			stop(t, s)
			t.Errorf("%+v started", bad)
		}
	}
	stop(t, run(t, cfg))
	for deadline := time.Now().Add(5 * time.Minute); runtime.NumGoroutine() > before+2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// The cache of thread states has the configured limit.
func TestThreadCache_IsLimited(t *testing.T) {
	t.Parallel()
	cfg := free(t)
	cfg.ThreadCache = 1
	s := run(t, cfg)
	nc := natstest.Dial(t, s.Addresses().NATS)
	for end, kept := time.Now().Add(5*time.Minute), 1; kept > 0; kept = metric(t, s, "skein_cache_threads") {
		if time.Now().After(end) {
			t.Fatalf("the cache keeps %d threads", kept)
		}
		if _, err := nc.Request("skein.cmd.acme.thread.create", []byte(`{"data":{}}`), 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
}
