package service

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// ask sends a request and returns the reply.
func ask(t testing.TB, nc *nats.Conn, subject string) *nats.Msg {
	t.Helper()
	m, err := nc.Request(subject, []byte(`{}`), time.Minute)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	return m
}

// A request that is refused because all places are taken holds nothing: its tenant has
// its full share once there are places again.
func TestService_RefusedRequestsHoldNothing(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	entered, release := make(chan struct{}, 10), make(chan struct{})
	service, err := Serve(nc, events.DefaultNames(), Endpoint{
		Name: "small", Description: "Small.", Kind: "query", Version: "1.0.0", InFlight: 1, Tenants: quota.Limits{InFlight: 1},
	}, func(_ context.Context, tenant, _ string, _ []byte, _ Meta) (any, error) {
		if tenant == "acme" {
			entered <- struct{}{}
			<-release
		}
		return struct{}{}, nil
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Stop(context.Background()) })
	inbox := nc.NewInbox()
	if _, err := nc.SubscribeSync(inbox); err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("skein.query.acme.item.get", inbox, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	<-entered
	for range 5 {
		if e := events.DecodeError(ask(t, nc, "skein.query.globex.item.get").Data); e == nil || e.Code != events.Unavailable {
			t.Errorf("there is no place, and it was answered with %+v", e)
		}
	}
	close(release)
	var last *events.Error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if last = events.DecodeError(ask(t, nc, "skein.query.globex.item.get").Data); last == nil {
			return
		}
	}
	t.Errorf("there is a place again, and it is refused: %v", last)
}

// A reply that does not fit into a message is refused at once, so that the caller does
// not wait in vain.
func TestService_AnswerLargerThanAMessage(t *testing.T) {
	s := natstest.Start(t, natstest.MaxPayload(64<<10))
	nc := natstest.Connect(t, s)
	service, err := Serve(nc, events.DefaultNames(), Endpoint{Name: "large", Description: "Large.", Kind: "query", Version: "1.0.0", InFlight: 10},
		func(context.Context, string, string, []byte, Meta) (any, error) {
			return Bytes(make([]byte, 100<<10)), nil
		}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Stop(context.Background()) })
	m := ask(t, nc, "skein.query.acme.item.get")
	if e := events.DecodeError(m.Data); e == nil || e.Code != events.PayloadTooLarge || e.Details.Size != 100<<10 {
		t.Errorf("%.200s", m.Data)
	}
}
