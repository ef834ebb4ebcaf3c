package webhooks

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/remote"
)

// Update is a notification about a run for an endpoint.
type Update struct {
	Type string // of the body
	Body []byte // nil: nothing is sent
	Last bool   // nothing is sent after this
}

// push is what a hook sends instead of events: the updates of one run.
type push struct {
	events.SetPush
	thread string
}

// pushed are the types of events after which the state of a run may be another one.
func pushed(t events.Type) bool {
	return slices.Contains([]events.Type{
		events.RunClaimedType, events.RunParkedType, events.RunResumedType, events.ExecutionStatusChangedType, events.QueueRemovedType, events.LifecycleDeletedType,
	}, t)
}

// takes reports whether a commit may change the state of the run.
func (p *push) takes(c *events.Commit) bool {
	return c.Thread == p.thread && slices.ContainsFunc(c.Events, func(e events.Event) bool { return pushed(e.Type) })
}

// headers are the headers of an update, as A2A names them.
func (p *push) headers(event string) http.Header {
	h := http.Header{remote.IDHeader: {event}, "A2a-Version": {strings.TrimPrefix(string(p.Form), "a2a/")}}
	if p.Token != "" {
		h.Set("X-A2A-Notification-Token", p.Token)
	}
	if p.Scheme != "" {
		h.Set("Authorization", strings.TrimSpace(p.Scheme+" "+p.Credentials))
	}
	return h
}

// place is the thread of pushes.
type place struct{ tenant, thread string }

// followPushes adds the pushes that are stored, calls loaded, and then adds, changes and removes pushes
// as they are stored and deleted, until ctx ends.
func (r *running) followPushes(ctx context.Context, loaded func()) error {
	changes, err := r.store.pushes.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("the pushes: %w", err)
	}
	defer func() { _ = changes.Stop() }() // fails only if the connection is closed
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case one, open := <-changes.Updates():
			switch {
			case !open:
				return errors.New("the pushes are not followed any more")
			case one == nil: // all that were stored are known
				loaded()
			default:
				r.changePush(ctx, one)
			}
		}
	}
}

// changePush makes, changes or removes a push as it is stored.
func (r *running) changePush(ctx context.Context, stored jetstream.KeyValueEntry) {
	parts := strings.Split(stored.Key(), ".")
	if len(parts) != 3 {
		return
	}
	n, at := name{parts[0], parts[2]}, place{parts[0], parts[1]}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.pushes[at][n.hook]
	if stored.Operation() != jetstream.KeyValuePut {
		if h != nil {
			r.forget(at, h)
		}
		r.ended = append(r.ended, stored.Key()) // the marker is not needed any more
		return
	}
	var doc storedPush
	if err := json.Unmarshal(stored.Value(), &doc); err != nil {
		r.hub.logger.Error().Err(err).Str("tenant", n.tenant).Msg("a push cannot be read by this version; delete it, or set it again")
		return
	}
	if h != nil {
		h.replacePush(&doc, stored.Revision())
		return
	}
	h = newHook(r, n, max(r.seq, doc.Next-1))
	h.push, h.stored, h.changed, h.failures = &push{doc.SetPush, at.thread}, stored.Revision(), false, doc.Failures
	if doc.Next <= r.seq {
		l := &lane{thread: at.thread, next: max(1, doc.Next), head: r.seq, failures: doc.Failures}
		h.lanes[at.thread] = l
		heap.Push(&h.due, l)
	}
	if r.pushes[at] == nil {
		r.pushes[at] = map[string]*hook{}
	}
	r.pushes[at][n.hook] = h
	scheduling, stop := context.WithCancel(ctx)
	h.stop = stop
	r.work.Go(func() { h.schedule(scheduling) })
}

// replacePush takes a push that was set again; what failed with the old one is tried at once.
func (h *hook) replacePush(doc *storedPush, revision uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if revision <= h.stored { // this process stored it
		return
	}
	h.stored = revision
	if h.push.SetPush == doc.SetPush {
		return
	}
	h.push = &push{doc.SetPush, h.push.thread}
	h.version++
	h.retryAtOnce()
}

// forget removes a push from those that are followed. r.mu is locked.
func (r *running) forget(at place, h *hook) {
	if r.pushes[at][h.name.hook] != h {
		return
	}
	delete(r.pushes[at], h.name.hook)
	if len(r.pushes[at]) == 0 {
		delete(r.pushes, at)
	}
	h.stop()
}

// endPush removes a push whose run has ended, or whose endpoint accepts nothing.
func (h *hook) endPush() {
	h.run.mu.Lock()
	defer h.run.mu.Unlock()
	at := place{h.name.tenant, h.push.thread}
	h.run.forget(at, h)
	h.run.ended = append(h.run.ended, pushKey(at.tenant, at.thread, h.name.hook))
}

// savePushes stores how far pushes are, and removes those that have ended.
func (r *running) savePushes(ctx context.Context) error {
	r.mu.Lock()
	var all []*hook
	for _, list := range r.pushes {
		for _, h := range list {
			all = append(all, h)
		}
	}
	ended := r.ended
	r.ended = nil
	r.mu.Unlock()
	for _, h := range all {
		if err := within(ctx, func(ctx context.Context) error { return r.savePush(ctx, h) }); err != nil {
			return err
		}
	}
	for _, key := range ended {
		if err := within(ctx, func(ctx context.Context) error { return r.store.removePush(ctx, key) }); err != nil {
			return err
		}
	}
	return nil
}

// savePush stores how far a push is. One that was set again or deleted meanwhile is left as it is.
func (r *running) savePush(ctx context.Context, h *hook) error {
	doc, revision := h.pushState()
	if doc == nil {
		return nil
	}
	raw, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return err
	}
	stored, err := r.store.pushes.Update(ctx, pushKey(h.name.tenant, doc.thread, h.name.hook), raw, revision)
	if err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return fmt.Errorf("store how far a push is: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored = max(h.stored, stored)
	h.changed = h.changed || err != nil
	return nil
}

// pushState returns how far the push is, and the revision of what is stored; nil if nothing changed
// since it was asked last.
func (h *hook) pushState() (*storedPush, uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.changed {
		return nil, 0
	}
	h.changed = false
	doc := &storedPush{SetPush: h.push.SetPush, Next: h.seq + 1, Failures: h.failures, thread: h.push.thread}
	for _, l := range h.lanes {
		doc.Next, doc.Failures = l.next, l.failures
	}
	return doc, h.stored
}

// removePush removes a push, and the marker of one that was deleted.
func (s *store) removePush(ctx context.Context, key string) error {
	bucket := s.log.Bucket(PushBucket)
	stream, err := s.log.JetStream().Stream(ctx, bucket.Stream())
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(bucket.Subject(key)))
	}
	if err != nil {
		return fmt.Errorf("remove a push: %w", err)
	}
	return nil
}
