package service

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// While another tenant is active, a tenant has its share of requests in progress; alone
// it has all. Requests that wait are answered in the end.
func TestService_FairWhileOthersAreActive(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	var mu sync.Mutex
	running, most := 0, 0
	hold := make(chan struct{}, 1000)
	s, err := Serve(nc, events.DefaultNames(), Endpoint{
		Name: "skein-test", Description: "A test.", Kind: "cmd", Version: "1.0.0", InFlight: 100, Fair: quota.Fair{Running: 3},
	}, func(_ context.Context, tenant, _ string, _ []byte, _ Meta) (any, error) {
		if tenant != "hog" {
			return struct{}{}, nil
		}
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-hold
		mu.Lock()
		running--
		mu.Unlock()
		return struct{}{}, nil
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	now := func() (int, int) {
		mu.Lock()
		defer mu.Unlock()
		return running, most
	}
	quiet := func() {
		t.Helper()
		if m, err := nc.Request("skein.cmd.quiet.thread.create", nil, time.Minute); err != nil || m.Header.Get(events.HeaderErrorCode) != "" {
			t.Fatalf("the quiet tenant: %v %v", err, m)
		}
	}
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	quiet()
	const asked = 20
	for range asked {
		if err := nc.PublishRequest("skein.cmd.hog.thread.create", inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n, _ := now(); n < 3; n, _ = now() { // its share of them begins
		quiet()
	}
	for range asked {
		quiet()
		hold <- struct{}{}
		if m, err := answers.NextMsg(time.Minute); err != nil || m.Header.Get(events.HeaderErrorCode) != "" {
			t.Fatalf("%v %v", err, m)
		}
	}
	if _, most := now(); most != 3 {
		t.Errorf("%d at the same time, want 3", most)
	}
	for range asked { // alone, once the other has been away for a while
		if err := nc.PublishRequest("skein.cmd.hog.thread.create", inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(time.Minute)
	for n, _ := now(); n < asked && time.Now().Before(deadline); n, _ = now() {
		hold <- struct{}{} // when one ends, others begin
		if err := nc.PublishRequest("skein.cmd.hog.thread.create", inbox, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n, _ := now(); n < asked {
		t.Errorf("alone, %d run at the same time, want %d", n, asked)
	}
	close(hold)
}

// Neither a client that does not read its refusals, nor a connection for refusals that takes no
// more, while a flood brings more of them than may wait, delays a reply to another tenant.
func TestService_FloodOfRefusalsDelaysNoOther(t *testing.T) {
	server := natstest.Start(t)
	unable := newStalling()
	refusals := natstest.Dial(t, server.URL(), nats.SetCustomDialer(unable.dialer()))
	nc, answers, flood, quiet := natstest.Connect(t, server), natstest.Connect(t, server), natstest.Connect(t, server), natstest.Connect(t, server)
	var refused atomic.Int64
	// The flood sends as fast as its requests are admitted, and always has so many ahead of
	// those of the quiet tenant: fewer than the service drops.
	ahead := make(chan struct{}, pendingRequests/8)
	s, err := Serve(nc, events.DefaultNames(), Endpoint{
		Name: "skein-test", Description: "A test.", Kind: "cmd", Version: "1.0.0", InFlight: 1000, Tenants: quota.Limits{Rate: 10, Burst: 20},
		Metrics: limitedFunc(func() { refused.Add(1); <-ahead }), Answers: answers, Refusals: refusals,
	}, func(_ context.Context, tenant, _ string, _ []byte, _ Meta) (any, error) {
		if tenant == "hog" {
			<-ahead
		}
		return struct{}{}, nil
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var flooding sync.WaitGroup
	defer func() {
		close(stop)
		flooding.Wait()
		close(unable.release)
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if _, err := flood.SubscribeSync("flooded.>"); err != nil {
		t.Fatal(err)
	}
	flooding.Go(func() {
		for {
			select {
			case <-stop:
				return
			case ahead <- struct{}{}:
				if err := flood.PublishRequest("skein.cmd.hog.thread.create", "flooded.x", nil); err != nil {
					t.Errorf("the flood: %v", err)
					return
				}
			}
		}
	})
	ask := func(when string) {
		t.Helper()
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			m, err := quiet.RequestWithContext(ctx, "skein.cmd.quiet.thread.create", nil)
			cancel()
			if err != nil {
				t.Fatalf("the quiet tenant, %s: %v", when, err)
			}
			if code := m.Header.Get(events.HeaderErrorCode); code != "" {
				t.Fatalf("the quiet tenant, %s: %s %s", when, code, m.Data)
			}
		}
	}
	reach := func(n int64) {
		t.Helper()
		for end := time.Now().Add(natstest.Patience); refused.Load() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d requests were refused, want %d", refused.Load(), n)
			}
		}
	}
	reach(1)
	ask("while refusals are not read")
	close(unable.stall)
	reach(refused.Load() + 4*refusalsAhead)
	ask("while no refusal can be sent")
}

// limitedFunc is called for each refusal.
type limitedFunc func()

func (f limitedFunc) Limited(string, string) { f() }
