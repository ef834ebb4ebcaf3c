package service

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// waitServer serves a handler that works until its context ends. It reports how much time
// the handler has when it begins, and when it ends.
func waitServer(t *testing.T, most time.Duration) (nc *nats.Conn, began chan time.Duration, ended chan struct{}) {
	t.Helper()
	nc = natstest.Connect(t, natstest.Start(t))
	began, ended = make(chan time.Duration, 8), make(chan struct{}, 8)
	s, err := Serve(nc, events.DefaultNames(), Endpoint{Name: "slow", Kind: "query", Version: "0.0.0", InFlight: 8, Time: most},
		func(ctx context.Context, _, _ string, _ []byte, _ Meta) (any, error) {
			end, _ := ctx.Deadline()
			began <- time.Until(end)
			<-ctx.Done()
			ended <- struct{}{}
			return nil, ctx.Err()
		}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // abandons requests that hang
		_ = s.Stop(ctx)
	})
	return nc, began, ended
}

// A request without a limit of its own ends by the service's.
func TestService_RequestHasADeadline(t *testing.T) {
	nc, _, ended := waitServer(t, 50*time.Millisecond)
	m, err := nc.Request("skein.query.acme.thread.get", []byte(`{}`), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if e := events.DecodeError(m.Data); e == nil || e.Code != events.Unavailable || !strings.Contains(e.Message, "within 50ms") {
		t.Errorf("%s", m.Data)
	}
	<-ended
}

// A request ends when its sender stops waiting, as its header says. A header beyond the
// service's limit, or without a number, changes nothing.
func TestService_RequestEndsWithItsSender(t *testing.T) {
	nc, began, ended := waitServer(t, time.Hour)
	send := func(wait string) time.Duration {
		m := nats.NewMsg("skein.query.acme.thread.get")
		m.Reply = nc.NewInbox()
		m.Header.Set(events.HeaderWait, wait)
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
		return <-began
	}
	if left := send("20"); left > 20*time.Millisecond {
		t.Errorf("it may work for %s", left)
	}
	<-ended
	for _, wait := range []string{"", "-1", "0", "soon", "99999999999999999999", "7200000"} {
		if left := send(wait); left < 50*time.Minute {
			t.Errorf("with %q it may work for %s", wait, left)
		}
	}
}

// What a handler says of itself when the time is over is the answer.
func TestService_LateRefusalKeepsItsCode(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	s, err := Serve(nc, events.DefaultNames(), Endpoint{Name: "slow", Kind: "query", Version: "0.0.0", InFlight: 8, Time: 20 * time.Millisecond},
		func(ctx context.Context, _, _ string, _ []byte, _ Meta) (any, error) {
			<-ctx.Done()
			return nil, events.Errorf(events.ProjectionBehind, "up to 3, not yet 4")
		}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	m, err := nc.Request("skein.query.acme.thread.get", []byte(`{}`), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if e := events.DecodeError(m.Data); e == nil || e.Code != events.ProjectionBehind || e.Message != "up to 3, not yet 4" {
		t.Errorf("%s", m.Data)
	}
}

// A request whose sender is gone by the time that it is its turn is not handled.
func TestService_SenderGoneWhileQueued(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	handled := make(chan struct{}, 8)
	s, err := Serve(nc, events.DefaultNames(), Endpoint{Name: "slow", Kind: "query", Version: "0.0.0", InFlight: 8, Time: time.Hour},
		func(context.Context, string, string, []byte, Meta) (any, error) {
			handled <- struct{}{}
			return struct{}{}, nil
		}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	own := &localRequest{Call: Call{Tenant: "acme", Handle: func(context.Context) (any, error) {
		handled <- struct{}{}
		return nil, nil
	}}, wait: time.Second, done: make(chan localAnswer, 1)}
	s.accept(request{local: own, tenant: "acme"}, time.Now().Add(-time.Minute))
	if a := <-own.done; a.refusal == nil || a.refusal.Code != events.Unavailable || len(handled) != 0 {
		t.Errorf("%+v, handled %d times", a, len(handled))
	}
}
