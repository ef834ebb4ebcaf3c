package service

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

func TestTenants_TokenBucket(t *testing.T) {
	l := newTenants(Limits{Rate: 10, Burst: 5})
	now := time.Unix(1000, 0)
	let := func(n int) (in int) {
		for range n {
			if leave, limit := l.enter("acme", now, 100); limit == "" {
				leave()
				in++
			}
		}
		return in
	}
	if got := let(20); got != 5 {
		t.Errorf("a burst of 5 let %d in", got)
	}
	if _, limit := l.enter("globex", now, 100); limit != "" {
		t.Errorf("another tenant was refused: %s", limit)
	}
	now = now.Add(300 * time.Millisecond)
	if got := let(20); got != 3 {
		t.Errorf("0.3 s at 10 a second let %d in", got)
	}
	now = now.Add(-time.Hour) // a clock that goes back neither adds nor removes tokens
	if got := let(20); got != 0 {
		t.Errorf("a clock that went back let %d in", got)
	}
	now = now.Add(2 * time.Hour)
	if got := let(20); got != 5 {
		t.Errorf("after a long pause %d came in, not the burst", got)
	}
}

func TestTenants_InFlight(t *testing.T) {
	l := newTenants(Limits{InFlight: 2})
	now := time.Unix(1000, 0)
	leave, _ := l.enter("acme", now, 100)
	l.enter("acme", now, 100)
	if _, limit := l.enter("acme", now, 100); limit != limitInFlight {
		t.Errorf("a third one came in: %q", limit)
	}
	if _, limit := l.enter("globex", now, 100); limit != "" {
		t.Errorf("another tenant was refused: %s", limit)
	}
	leave()
	if _, limit := l.enter("acme", now, 100); limit != "" {
		t.Errorf("there is room again, and it was refused: %s", limit)
	}
}

// A caller that invents tenants fills no memory.
func TestTenants_IdleAreForgotten(t *testing.T) {
	l := newTenants(Limits{Rate: 10, Burst: 2, InFlight: 2})
	now := time.Unix(1000, 0)
	l.enter("busy", now, 100)
	for i := range 10 * knownTenants {
		now = now.Add(time.Second)
		leave, limit := l.enter("t"+strconv.Itoa(i), now, 100)
		if limit != "" {
			t.Fatal(limit)
		}
		leave()
	}
	if n := len(l.known); n > knownTenants || l.known["busy"] == nil {
		t.Errorf("%d tenants are known; the one with work in progress is among them: %v", n, l.known["busy"] != nil)
	}
}

func TestLimits_InvalidAreRefused(t *testing.T) {
	for _, l := range []Limits{{Rate: -1}, {Burst: -1}, {InFlight: -1}} {
		if l.Validate() == nil {
			t.Errorf("%+v was taken", l)
		}
	}
}

// counted counts refusals by limit.
type counted struct{ rate, inFlight atomic.Int64 }

func (c *counted) Limited(_, limit string) {
	if limit == limitRate {
		c.rate.Add(1)
	} else {
		c.inFlight.Add(1)
	}
}

// A tenant that has all its places taken by work that does not end, and keeps sending, is
// refused at once, and another tenant is answered as before.
func TestService_NoisyTenantDoesNotStarveAnother(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	hold := make(chan struct{})
	var done atomic.Int64
	var refused counted
	s, err := Serve(nc, events.DefaultNames(), Endpoint{
		Name: "skein-test", Description: "A test.", Kind: "cmd", Version: "1.0.0", InFlight: 100,
		Tenants: Limits{InFlight: 20}, Metrics: &refused,
	}, func(ctx context.Context, tenant, _ string, _ []byte, _ Meta) (any, error) {
		if tenant == "noisy" {
			<-hold
			done.Add(1)
		}
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
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	const asked = 2000
	for range asked {
		if err := nc.PublishRequest("skein.cmd.noisy.thread.create", inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range asked - 20 { // refused while the others are held
		m, err := answers.NextMsg(time.Minute)
		if err != nil || m.Header.Get(events.HeaderErrorCode) != "503" {
			t.Fatalf("%v %v", err, m)
		}
	}
	for range 50 {
		if m, err := nc.Request("skein.cmd.quiet.thread.create", nil, time.Minute); err != nil || m.Header.Get(events.HeaderErrorCode) != "" {
			t.Fatalf("the quiet tenant: %v %v", err, m)
		}
	}
	close(hold)
	for range 20 { // the accepted requests are answered
		if m, err := answers.NextMsg(time.Minute); err != nil || m.Header.Get(events.HeaderErrorCode) != "" {
			t.Fatalf("%v %v", err, m)
		}
	}
	if done.Load() != 20 || refused.inFlight.Load() != asked-20 {
		t.Errorf("%d were done, %d refused", done.Load(), refused.inFlight.Load())
	}
}
