package service

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// counted counts refusals by limit.
type counted struct{ rate, inFlight atomic.Int64 }

func (c *counted) Limited(_, limit string) {
	if limit == "rate" {
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
		Tenants: quota.Limits{InFlight: 20}, Metrics: &refused,
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
