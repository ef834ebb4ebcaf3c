package main_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// freezeLoad freezes threads and removes their documents again and again, while others write to
// them, which brings them back, until the server is killed: once it has acknowledged so many
// writes. It adds what was acknowledged to written, by thread.
func (s *server) freezeLoad(t *testing.T, ids []string, written []atomic.Int64, enough int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	nc, err := nats.Connect(s.NATS, nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	log, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var frozen, acknowledged atomic.Int64
	var working sync.WaitGroup
	working.Go(func() {
		a := archive.New(log, archive.Config{Settle: -1, Patience: time.Minute}, zerolog.Nop())
		for ctx.Err() == nil && nc.IsConnected() {
			_ = a.Freeze(ctx, "acme", ids, archive.Options{}, func(r archive.Result) {
				if r.Outcome == archive.Frozen {
					frozen.Add(1)
				}
			}, func(string, error) {})
			_, _ = a.Strip(ctx, "acme", ids, false)
		}
	})
	for worker := range 2 {
		working.Go(func() {
			c, err := client.New(nc, client.Options{Tenant: "acme", Timeout: 30 * time.Second})
			if err != nil {
				t.Error(err)
				return
			}
			for n := worker; ; n += 2 {
				at := n % len(ids)
				_, err := c.CreateItem(ctx, ids[at], events.CreateItem{Item: events.NewItem{
					Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hello"}]`),
				}})
				if err != nil {
					return // the server was killed
				}
				written[at].Add(1)
				if acknowledged.Add(1) >= enough && frozen.Load() > 0 {
					_ = s.cmd.Process.Kill()
				}
			}
		})
	}
	working.Wait()
}

// connect returns a client of the server.
func (s *server) connect() *client.Client {
	s.t.Helper()
	c, err := client.Connect(s.NATS, client.Options{Tenant: "acme", Actor: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// A server that is killed while threads are frozen, while their documents are removed and while
// writes bring them back, shows all that it has acknowledged, and the audit finds nothing.
func TestServe_KilledWhileFreezing(t *testing.T) {
	store := t.TempDir()
	s := start(t, store)
	ids := make([]string, 12)
	written := make([]atomic.Int64, len(ids))
	c := s.connect()
	for i := range ids {
		made, err := c.CreateThread(t.Context(), events.CreateThread{})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = made.ThreadID
	}
	c.Close()
	for round := range int64(3) {
		s.freezeLoad(t, ids, written, 20+40*round)
		_ = s.cmd.Wait()
		s = start(t, store)
		if o := run(t, s.env, "", "audit", "verify", "--all-tenants"); o.code != 0 {
			t.Fatalf("after %d kills: exit %d: %s%s", round+1, o.code, o.out, o.err)
		}
		c := s.connect()
		for i, id := range ids {
			list, err := c.ListItems(t.Context(), events.ListItems{ThreadID: id, Limit: new(int64(1))})
			if err != nil || list.Total < written[i].Load() {
				t.Errorf("after %d kills %s has %d items, and %d were acknowledged: %v", round+1, id, list.Total, written[i].Load(), err)
			}
		}
		c.Close()
	}
	s.stop()
}
