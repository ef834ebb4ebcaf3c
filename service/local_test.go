package service

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// A request of the process has the answer that it has over NATS, and the same limits.
func TestService_AnswersInProcessAsOverNATS(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t, natstest.MaxPayload(64<<10)))
	secret := errors.New("disk 7 is broken")
	serve := func(e Endpoint, kind string, handler Handler) *Service {
		e.Name, e.Description, e.Kind, e.Version, e.InFlight = kind, "Of a test.", kind, "1.0.0", 10
		s, err := Serve(nc, events.DefaultNames(), e, handler, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop(context.Background()) })
		return s
	}
	answers := map[string]func(tenant string, body []byte) (any, error){
		"item.value":   func(tenant string, body []byte) (any, error) { return map[string]string{tenant: string(body)}, nil },
		"item.bytes":   func(string, []byte) (any, error) { return Bytes(`{"b":1}`), nil },
		"item.refused": func(string, []byte) (any, error) { return nil, events.Missing("item", "1") },
		"item.fails":   func(string, []byte) (any, error) { return nil, secret },
		"item.large":   func(string, []byte) (any, error) { return Bytes(strings.Repeat("1", 100<<10)), nil },
	}
	s := serve(Endpoint{Time: time.Minute}, "query", func(_ context.Context, tenant, name string, body []byte, _ Meta) (any, error) {
		return answers[name](tenant, body)
	})
	limited := serve(Endpoint{Tenants: quota.Limits{Rate: 0.001, Burst: 1}}, "cmd", func(context.Context, string, string, []byte, Meta) (any, error) {
		return Bytes(`{}`), nil
	})
	for name := range answers {
		over := ask(t, nc, "skein.query.acme."+name)
		want := events.DecodeRefusal(over.Header.Get(events.HeaderErrorCode), over.Data)
		got, err := s.Do(t.Context(), "acme", name, []byte(`{}`), "")
		switch {
		case want == nil && (err != nil || string(got) != string(over.Data)):
			t.Errorf("%s: %s (%v) in the process, and %s over NATS", name, got, err, over.Data)
		case want != nil && !reflect.DeepEqual(events.AsError(err), want):
			t.Errorf("%s: refused with %#v in the process, and %#v over NATS", name, err, want)
		}
		if errors.Is(err, secret) {
			t.Errorf("%s: the cause of a refusal left the service", name)
		}
	}
	if _, err := s.Do(t.Context(), "acme", "item.value", make([]byte, 65<<10), ""); !events.HasCode(err, events.PayloadTooLarge) {
		t.Errorf("a request that is no message over NATS: %v", err)
	}
	if _, err := s.Do(t.Context(), "a.b", "item.value", nil, ""); !events.HasCode(err, events.InvalidRequest) {
		t.Errorf("a tenant that is no token of a subject: %v", err)
	}
	// The rate is the tenant's, however its requests arrive.
	if m := ask(t, nc, "skein.cmd.acme.item.value"); m.Header.Get(events.HeaderErrorCode) != "" {
		t.Fatalf("the first request is over the limit: %s", m.Data)
	}
	if _, err := limited.Do(t.Context(), "acme", "item.value", nil, ""); !events.HasCode(err, events.QueueFull) {
		t.Errorf("the second request within the tenant's rate: %v", err)
	}
	if _, err := limited.Do(t.Context(), "globex", "item.value", nil, ""); err != nil {
		t.Errorf("another tenant's first request: %v", err)
	}
	if m := ask(t, nc, "skein.cmd.globex.item.value"); m.Header.Get(events.HeaderErrorCode) != "429" {
		t.Errorf("another tenant's second request, over NATS: %s", m.Data)
	}
}

// A caller that no longer waits interrupts no request, a service that stops answers what it has
// accepted, and then accepts no more.
func TestService_InProcessRequestIsCompleted(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	entered, release, done := make(chan Meta, 1), make(chan struct{}), make(chan error, 2)
	s, err := Serve(nc, events.DefaultNames(), Endpoint{Name: "slow", Description: "Slow.", Kind: "cmd", Version: "1.0.0", InFlight: 10},
		func(ctx context.Context, _, _ string, _ []byte, meta Meta) (any, error) {
			entered <- meta
			<-release
			done <- ctx.Err()
			return Bytes(`{}`), nil
		}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, "acme", "item.create", nil, trace)
		left <- err
	}()
	if meta := <-entered; meta.TraceParent != trace {
		t.Errorf("the trace is %q", meta.TraceParent)
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller's wait ended with %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := s.Do(t.Context(), "acme", "item.create", nil, "")
		waited <- err
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(t.Context()) }()
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Errorf("a request in flight was interrupted: %v", err)
		}
	}
	if err := errors.Join(<-waited, <-stopped); err != nil {
		t.Error(err)
	}
	if _, err := s.Do(t.Context(), "acme", "item.create", nil, ""); !events.HasCode(err, events.Unavailable) {
		t.Errorf("a service that has stopped: %v", err)
	}
}
