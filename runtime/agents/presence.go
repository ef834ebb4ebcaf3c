package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime"
)

// Bucket holds the names of the reactors that processes have served, without its
// prefix.
const Bucket = "thread_workers"

// Presence knows which reactors processes serve on NATS, or have ever served. It is
// safe for concurrent use.
type Presence struct {
	nc    *nats.Conn
	names events.Names
	kv    jetstream.KeyValue

	mu   sync.Mutex // guards the fields below
	seen map[string]struct{}
}

// maxSeen bounds the names that are cached. Others are read again.
const maxSeen = 10_000

// NewPresence creates the bucket of names unless it exists.
func NewPresence(ctx context.Context, log *eventlog.Log) (*Presence, error) {
	if err := assets.EnsureBucket(ctx, log.Streams(), Bucket); err != nil {
		return nil, err
	}
	names := log.Config().Names
	kv, err := log.JetStream().KeyValue(ctx, names.Bucket(Bucket))
	if err != nil {
		return nil, fmt.Errorf("the bucket of reactors: %w", err)
	}
	return &Presence{nc: log.Conn(), names: names, kv: kv, seen: map[string]struct{}{}}, nil
}

// remembers reports whether the reactor is cached as served, without a request.
func (p *Presence) remembers(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.seen[name]
	return ok
}

func (p *Presence) remember(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) >= maxSeen {
		clear(p.seen)
	}
	p.seen[name] = struct{}{}
}

// Seen reports whether a process serves the reactor now, or one ever has. An invalid
// name was never served.
func (p *Presence) Seen(ctx context.Context, name string) (bool, error) {
	if p.remembers(name) {
		return true, nil
	}
	subject, err := p.names.Reactor(name)
	if err != nil {
		return false, nil //nolint:nilerr // an invalid name is never served
	}
	key := "reactor." + name
	switch _, err := p.kv.Get(ctx, key); {
	case err == nil:
		p.remember(name)
		return true, nil
	case !errors.Is(err, jetstream.ErrKeyNotFound):
		return false, fmt.Errorf("the bucket of reactors: %w", err)
	}
	served, err := p.served(ctx, subject)
	if err != nil || !served {
		return false, err
	}
	if _, err := p.kv.Put(ctx, key, nil); err != nil {
		return false, fmt.Errorf("the bucket of reactors: %w", err)
	}
	p.remember(name)
	return true, nil
}

// Announce lets other processes know which Go tools this one has, until ctx ends: also those
// that are registered later.
func (p *Presence) Announce(ctx context.Context, registry *runtime.Registry) {
	announced := map[string]*nats.Subscription{}
	defer func() {
		for _, sub := range announced {
			_ = sub.Unsubscribe() // fails only if the connection is closed
		}
	}()
	for ; ctx.Err() == nil; retry.Sleep(ctx, runtime.WakeEvery) {
		for _, name := range registry.Tools() {
			if announced[name] != nil {
				continue
			}
			subject, err := p.names.GoTool(name)
			if err != nil {
				continue
			}
			if sub, err := p.nc.Subscribe(subject, func(*nats.Msg) {}); err == nil {
				announced[name] = sub
			}
		}
	}
}

// Served reports whether a process serves the reactor or tool now, or has it, of a Go tool.
func (p *Presence) Served(ctx context.Context, worker events.WaitFor) (bool, error) {
	of, name := p.names.Reactor, worker.Name
	if worker.Kind == events.ToolWorker {
		of = p.names.Tool
		if own, ok := strings.CutPrefix(name, events.GoToolPrefix); ok {
			of, name = p.names.GoTool, own
		}
	}
	subject, err := of(name)
	if err != nil {
		return false, nil //nolint:nilerr // an invalid name is never served
	}
	return p.served(ctx, subject)
}

// traceWait is how long the server may take to trace a message.
const traceWait = 2 * time.Second

// served reports whether a subject has subscribers, without sending them anything: the
// server traces a message and does not deliver it.
func (p *Presence) served(ctx context.Context, subject string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, traceWait)
	defer cancel()
	inbox := p.nc.NewInbox()
	sub, err := p.nc.SubscribeSync(inbox)
	if err != nil {
		return false, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	m := nats.NewMsg(subject)
	m.Header.Set("Nats-Trace-Dest", inbox)
	m.Header.Set("Nats-Trace-Only", "true")
	if err := p.nc.PublishMsg(m); err != nil {
		return false, err
	}
	answer, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return false, fmt.Errorf("ask the NATS server who serves %s: %w", subject, err)
	}
	var trace struct {
		Events []struct {
			Type string `json:"type"`
		} `json:"events"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(answer.Data), &trace); err != nil {
		return false, fmt.Errorf("ask the NATS server who serves %s: %w", subject, err)
	}
	for _, e := range trace.Events {
		if e.Type == "eg" { // it would be delivered to a subscriber
			return true, nil
		}
	}
	return false, nil
}
