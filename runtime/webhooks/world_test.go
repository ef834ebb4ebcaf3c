package webhooks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/runtime/webhooks"
	"github.com/skein-threads/skein/server"
)

// world is a server without workers, whose events a hub of the test delivers.
type world struct {
	t   *testing.T
	ctx context.Context
	url string
	c   *client.Client
	log *eventlog.Log
}

func start(t *testing.T) *world {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true, Workers: -1}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, url: s.Addresses().NATS}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	w.c = w.client("acme")
	nc := natstest.Dial(t, w.url)
	if w.log, err = eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), eventlog.NoMetrics{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.log.Close)
	return w
}

func (w *world) client(tenant string) *client.Client {
	w.t.Helper()
	c, err := client.Connect(w.url, client.Options{Tenant: tenant, Timeout: 5 * time.Minute})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// deliver runs a hub until the function that it returns is called, or the test ends.
func (w *world) deliver(cfg webhooks.Config) (stop func()) {
	w.t.Helper()
	policy, err := egress.Parse(egress.Loopback())
	if err != nil {
		w.t.Fatal(err)
	}
	way := remote.NewClient(policy.Transport())
	cfg.Endpoint = func(tenant, what string, to *events.HTTPEndpoint) (remote.Endpoint, error) {
		return remote.Endpoint{URL: to.URL, Client: way, Keys: []remote.Key{{ID: to.SecretEnv[0], Secret: []byte("the-secret-of-a-webhook")}}}, nil
	}
	cfg.Thread = func(ctx context.Context, tenant, thread string, seq uint64) (*events.Thread, error) {
		least := int64(seq)
		return client.Read(ctx, w.client(tenant), events.GetThread{ThreadID: thread, Fresh: events.Fresh{MinSeq: &least}})
	}
	if cfg.Backoff.First == 0 {
		cfg.Backoff = retry.Policy{First: time.Millisecond, Max: 20 * time.Millisecond}
	}
	if cfg.Probe.First == 0 {
		cfg.Probe = retry.Policy{First: time.Millisecond, Max: 20 * time.Millisecond}
	}
	if cfg.SaveEvery == 0 {
		cfg.SaveEvery = 5 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- webhooks.New(w.log, cfg, zerolog.Nop()).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; ctx.Err() == nil || err == nil {
			w.t.Errorf("the hub ended with %v", err)
		}
		way.CloseIdleConnections()
	})
	w.t.Cleanup(stop)
	return stop
}

// define applies a webhook of a tenant.
func (w *world) define(c *client.Client, name, url, more string) {
	w.t.Helper()
	_, err := c.Send(w.ctx, "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.WebhookKind, Definition: events.JSON(`{"name":"` + name + `","http":{"url":"` + url + `","secretEnv":["HOOK"]}` + more + `}`)},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) thread(c *client.Client, d events.CreateThread) string {
	w.t.Helper()
	reply, err := c.Send(w.ctx, "", d)
	if err != nil {
		w.t.Fatal(err)
	}
	return reply.ThreadID
}

// say adds messages to a thread.
func (w *world) say(c *client.Client, thread string, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if _, err := c.Send(w.ctx, thread, events.AddMessage{Role: events.FromUser, Content: &text}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// delivery is an event as a receiver sees it.
type delivery struct {
	ID      string      `json:"id"`
	Type    string      `json:"type"`
	Thread  string      `json:"threadid"`
	Version int64       `json:"threadversion"`
	Data    events.JSON `json:"data"`

	hook string
	raw  string
}

// receiver is an endpoint of webhooks.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	all  []delivery    // that it accepted
	more chan struct{} // holds something after each
}

// receive returns an endpoint that answers with a status, which it decides for each event
// (nil: it accepts all).
func receive(t *testing.T, status func(d delivery, r *http.Request) int) *receiver {
	t.Helper()
	v := &receiver{more: make(chan struct{}, 1)}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		d := delivery{hook: r.Header.Get("Skein-Webhook"), raw: string(body)}
		if err := json.Unmarshal(body, &d); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		if status != nil {
			if code := status(d, r); code != http.StatusOK {
				w.WriteHeader(code)
				return
			}
		}
		v.mu.Lock()
		v.all = append(v.all, d)
		v.mu.Unlock()
		select {
		case v.more <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(func() {
		v.CloseClientConnections()
		v.Close()
	})
	return v
}

// until waits until what was accepted satisfies a condition, and returns it.
func (v *receiver) until(w *world, what string, holds func(all []delivery) bool) []delivery {
	w.t.Helper()
	for {
		v.mu.Lock()
		all := append([]delivery(nil), v.all...)
		v.mu.Unlock()
		if holds(all) {
			return all
		}
		select {
		case <-v.more:
		case <-w.ctx.Done():
			w.t.Fatalf("%s: %d deliveries: %+v", what, len(all), all)
		}
	}
}

// inOrder expects that the events of each thread were accepted in order: what came again
// aside, versions only grow, and none is left out.
func inOrder(t *testing.T, all []delivery) {
	t.Helper()
	last := map[string]int64{}
	for _, d := range all {
		if key := d.hook + " " + d.Thread; d.Version > last[key]+1 {
			t.Errorf("%s: version %d after %d", key, d.Version, last[key])
		} else {
			last[key] = max(last[key], d.Version)
		}
	}
}

// list returns how far the tenant's webhooks are, once it satisfies a condition.
func (w *world) list(what string, holds func(map[string]events.Webhook) bool) map[string]events.Webhook {
	w.t.Helper()
	for {
		list, err := client.Read(w.ctx, w.c, events.ListWebhooks{})
		if err != nil {
			w.t.Fatalf("%s: %v", what, err)
		}
		byName := map[string]events.Webhook{}
		for _, one := range list.Webhooks {
			byName[one.Name] = one
		}
		if holds(byName) {
			return byName
		}
		if !retry.Sleep(w.ctx, 5*time.Millisecond) {
			w.t.Fatalf("%s: %s", what, fmt.Sprint(byName))
		}
	}
}
