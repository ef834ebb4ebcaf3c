package commands

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// connectMutable connects to a server through a proxy that, once muted is set, drops
// what the server sends.
func connectMutable(t *testing.T, url string) (nc *nats.Conn, muted *atomic.Bool) {
	t.Helper()
	muted = &atomic.Bool{}
	way, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = way.Close() })
	go func() {
		for {
			near, err := way.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() {
				defer near.Close()
				for part := make([]byte, 32<<10); ; {
					n, err := far.Read(part)
					if err != nil {
						return
					}
					if !muted.Load() {
						_, _ = near.Write(part[:n])
					}
				}
			}()
		}
	}()
	return natstest.Dial(t, "nats://"+way.Addr().String()), muted
}

// A command whose acknowledgement is lost, and of which the log cannot be asked, may
// have been done: it says so, with the id under which its repeat finds out, and the
// repeat does it at most once.
func TestOutcomeIsUnknown(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	nc, muted := connectMutable(t, w.server.URL())
	log, err := eventlog.Open(nc, eventlog.Config{AckTimeout: 300 * time.Millisecond}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	d := newDispatcher(t, log, Config{})
	must(t, d, "item.create", with("c-before", id, hello)) // the thread is in memory
	muted.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = d.Do(ctx, tenant, "item.create", []byte(with("c-lost", id, hello)), Meta{})
	refusal := events.AsError(err)
	if err == nil || refusal.Code != events.Unavailable || refusal.Details == nil || refusal.Details.Outcome != "unknown" || refusal.Details.ID != "c-lost" {
		t.Errorf("%v: %+v", err, refusal)
	}
	if n := w.byCommand(id)["c-lost"]; n != 1 {
		t.Errorf("it is in the log %d times", n)
	}
	must(t, w.d, "item.create", with("c-lost", id, hello))
	if n := w.byCommand(id)["c-lost"]; n != 1 {
		t.Errorf("after its repeat it is in the log %d times", n)
	}
}
