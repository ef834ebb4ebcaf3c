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
	handle := func(_ context.Context, tenant, name string, body []byte, _ Meta) (any, error) {
		return answers[name](tenant, body)
	}
	s := serve(Endpoint{Time: time.Minute}, "query", handle)
	limited := serve(Endpoint{Tenants: quota.Limits{Rate: 0.001, Burst: 1}}, "cmd", func(context.Context, string, string, []byte, Meta) (any, error) {
		return Bytes(`{}`), nil
	})
	do := func(s *Service, tenant, name string, body []byte) (any, error) {
		return s.Do(t.Context(), Call{Tenant: tenant, Name: name, Size: len(body), Handle: func(ctx context.Context) (any, error) {
			return handle(ctx, tenant, name, body, Meta{})
		}})
	}
	for name := range answers {
		over := ask(t, nc, "skein.query.acme."+name)
		want := events.DecodeRefusal(over.Header.Get(events.HeaderErrorCode), over.Data)
		got, err := do(s, "acme", name, []byte(`{}`))
		body, raw := got.(Bytes)
		if !raw && err == nil { // a value is not encoded in the process
			body, err = Encode(got)
		}
		switch {
		case want == nil && (err != nil || string(body) != string(over.Data)):
			t.Errorf("%s: %s (%v) in the process, and %s over NATS", name, body, err, over.Data)
		case want != nil && !reflect.DeepEqual(events.AsError(err), want):
			t.Errorf("%s: refused with %#v in the process, and %#v over NATS", name, err, want)
		}
		if errors.Is(err, secret) {
			t.Errorf("%s: the cause of a refusal left the service", name)
		}
	}
	if _, err := do(s, "acme", "item.value", make([]byte, 65<<10)); !events.HasCode(err, events.PayloadTooLarge) {
		t.Errorf("a request that is no message over NATS: %v", err)
	}
	if _, err := do(s, "a.b", "item.value", nil); !events.HasCode(err, events.InvalidRequest) {
		t.Errorf("a tenant that is no token of a subject: %v", err)
	}
	// The rate is the tenant's, however its requests arrive.
	if m := ask(t, nc, "skein.cmd.acme.item.value"); m.Header.Get(events.HeaderErrorCode) != "" {
		t.Fatalf("the first request is over the limit: %s", m.Data)
	}
	if _, err := do(limited, "acme", "item.value", nil); !events.HasCode(err, events.QueueFull) {
		t.Errorf("the second request within the tenant's rate: %v", err)
	}
	if _, err := do(limited, "globex", "item.value", nil); err != nil {
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
	entered, release, done := make(chan struct{}, 1), make(chan struct{}), make(chan error, 2)
	s, err := Serve(nc, events.DefaultNames(), Endpoint{Name: "slow", Description: "Slow.", Kind: "cmd", Version: "1.0.0", InFlight: 10}, nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	call := Call{Tenant: "acme", Name: "item.create", Handle: func(ctx context.Context) (any, error) {
		entered <- struct{}{}
		<-release
		done <- ctx.Err()
		return Bytes(`{}`), nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, call)
		left <- err
	}()
	<-entered
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller's wait ended with %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := s.Do(t.Context(), call)
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
	if _, err := s.Do(t.Context(), call); !events.HasCode(err, events.Unavailable) {
		t.Errorf("a service that has stopped: %v", err)
	}
}

// The turn of a request that has waited at the edge is taken by the first request to the service.
func TestService_TakesTurnOnce(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	s, err := Serve(nc, events.DefaultNames(), Endpoint{Name: "fair", Description: "Fair.", Kind: "cmd", Version: "1.0.0", InFlight: 10}, nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	ctx, turn := quota.WithTurn(t.Context())
	turn.Grant("acme")
	for _, tenant := range []string{"globex", "acme"} {
		if _, err := s.Do(ctx, Call{Tenant: tenant, Name: "item.create", Handle: func(context.Context) (any, error) { return Bytes(`{}`), nil }}); err != nil {
			t.Fatal(err)
		}
	}
	if quota.TakeTurn(ctx, "acme") {
		t.Error("a second request would have a turn, too")
	}
}
