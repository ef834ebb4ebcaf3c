package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// turn is how many commits of a lane are delivered before others have a turn.
const turn = 64

// eventType is the media type of a delivery.
const eventType = "application/cloudevents+json"

// askedPause returns how long an endpoint asked to wait.
func askedPause(err error) time.Duration {
	var later *runtime.RetryError
	if errors.As(err, &later) {
		return later.After
	}
	return 0
}

// errLagging reports that a replica of the log does not show yet what it is known to have.
var errLagging = errors.New("a replica of the log lags")

// lagPause is how long a lane waits for a replica.
const lagPause = 50 * time.Millisecond

// deliver sends the events of a lane, in order, from where it stands to its head. It
// returns early after a number of commits, and when the webhook was changed.
func (h *hook) deliver(ctx context.Context, l *lane) error {
	h.mu.Lock()
	version, next, head, done := h.version, l.next, l.head, l.done
	from := source{h.def, h.push}
	h.mu.Unlock()
	to, err := h.endpoint(from)
	if err != nil {
		return err
	}
	count := 0
	for c, err := range h.run.hub.log.Thread(ctx, h.name.tenant, l.thread, next) {
		var broken *events.BrokenError
		switch {
		case errors.As(err, &broken): // it is counted and reported already
			next, done = min(broken.Seq, head)+1, 0
			h.passed(l, next)
			continue
		case err != nil:
			return err
		case c.Seq > head: // what was before it is purged
			h.passed(l, head+1)
			return nil
		case count == turn || h.definedAt() != version:
			return nil
		case c.Seq != next:
			done = 0
		}
		if err := h.deliverCommit(ctx, l, from, to, c, done); err != nil {
			return err
		}
		next, done = c.Seq+1, 0
		h.passed(l, next)
		count++
	}
	// A replica may lag, and what was purged is not there any more.
	missing, err := h.run.hub.log.After(ctx, h.name.tenant, l.thread, next-1)
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken) && broken.Seq > head:
	case err != nil:
		return err
	case missing != nil && missing.Seq <= head:
		return errLagging
	}
	h.passed(l, max(next, head+1))
	return nil
}

// source is what a hook sends: the events of a webhook, or the updates of a push.
type source struct {
	def  events.WebhookDefinition
	push *push
}

// endpoint returns where it is sent, if the operator allows it.
func (h *hook) endpoint(from source) (remote.Endpoint, error) {
	if from.push != nil {
		return h.run.hub.cfg.Push(&from.push.SetPush)
	}
	if from.def.HTTP == nil {
		return remote.Endpoint{}, errUnreadable
	}
	return h.run.hub.cfg.Endpoint(h.name.tenant, "the webhook "+h.name.hook, from.def.HTTP)
}

// takes reports whether something is sent of a commit.
func (s source) takes(c *events.Commit) bool {
	if s.push != nil {
		return s.push.takes(c)
	}
	return takes(s.def, c)
}

// deliverCommit sends the events of a commit, except the first ones, which were accepted.
func (h *hook) deliverCommit(ctx context.Context, l *lane, from source, to remote.Endpoint, c *events.Commit, done int) error {
	if !from.takes(c) {
		return nil
	}
	of, err := h.ofThread(ctx, from.def, c)
	if err != nil || !of {
		return err
	}
	for i := range c.Events {
		e := &c.Events[i]
		if i < done {
			continue
		}
		u, head, err := h.update(ctx, from, e, c.Seq)
		if err != nil {
			return err
		}
		if u.Body != nil {
			err := to.Notify(ctx, u.Type, head, u.Body, remote.Timing(h.run.hub.cfg.Timeout/2, h.run.hub.cfg.Timeout), remote.Logger(h.logger))
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			h.run.hub.cfg.Metrics.Delivery(err != nil)
			if err != nil {
				return err
			}
			h.succeeded(l, c.Seq, i+1)
		}
		if u.Last {
			h.endPush()
			return nil
		}
	}
	return nil
}

// update returns what is sent of an event, and its headers.
func (h *hook) update(ctx context.Context, from source, e *events.Event, seq uint64) (*Update, http.Header, error) {
	switch {
	case from.push != nil && pushed(e.Type):
		u, err := h.run.hub.cfg.Update(ctx, &from.push.SetPush, e, seq)
		return u, from.push.headers(e.ID), err
	case from.push != nil || !from.def.Takes(e.Type):
		return &Update{}, nil, nil
	}
	body, err := h.body(ctx, from.def, e)
	return &Update{Type: eventType, Body: body}, headers(h.name, e.ID), err
}

// ofThread reports whether the webhook is of the commit's thread, as the thread is now.
func (h *hook) ofThread(ctx context.Context, def events.WebhookDefinition, c *events.Commit) (bool, error) {
	if len(def.Agents) == 0 && def.KeyPrefix == "" {
		return true, nil
	}
	if !events.IsThread(c.Thread) {
		return false, nil
	}
	thread, err := h.run.hub.cfg.Thread(ctx, h.name.tenant, c.Thread, c.Seq)
	if events.IsNotFound(err) {
		return false, nil // it was deleted: whose it was is not known any more
	}
	if err != nil {
		return false, fmt.Errorf("read the thread of an event: %w", err)
	}
	key := ""
	if thread.Key != nil {
		key = *thread.Key
	}
	return (len(def.Agents) == 0 || slices.Contains(def.Agents, thread.AgentID)) && strings.HasPrefix(key, def.KeyPrefix), nil
}

// body returns the CloudEvent that is sent: with its data only if the webhook asks for
// it, and the thread is not purged at this moment.
func (h *hook) body(ctx context.Context, def events.WebhookDefinition, e *events.Event) ([]byte, error) {
	raw, err := e.Append(nil)
	if err != nil {
		return nil, err
	}
	contents := def.Contents
	if contents {
		purged, err := h.purged(ctx, e.ThreadID)
		if err != nil {
			return nil, err
		}
		contents = !purged
	}
	if contents {
		return raw, nil
	}
	var envelope map[string]events.JSON
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return nil, err
	}
	delete(envelope, "data")
	return json.Marshal(envelope, json.Deterministic(true))
}

// purged reports whether the last commit of a thread erases what it held.
func (h *hook) purged(ctx context.Context, thread string) (bool, error) {
	last, err := h.run.hub.log.Newest(ctx, h.name.tenant, thread)
	if err != nil || last == nil {
		return true, err
	}
	return slices.ContainsFunc(last.Events, func(e events.Event) bool {
		d, ok := e.Data.(events.LifecycleDeleted)
		return ok && d.Purge
	}), nil
}

// scansNow reports whether the log is to be read for a webhook that stopped to note what is
// behind, and notes that it is.
func (h *hook) scansNow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.full || h.scans || len(h.lanes) > h.run.hub.cfg.MaxBehind/2 {
		return false
	}
	h.scans = true
	return true
}

// scan notes what is behind from the log itself, until it is at its end, or too many
// threads are behind again.
func (h *hook) scan(ctx context.Context) {
	defer func() {
		h.mu.Lock()
		h.scans = false
		h.mu.Unlock()
		h.rouse()
	}()
	log := h.run.hub.log
	h.mu.Lock()
	from := h.seq + 1
	h.mu.Unlock()
	for m, err := range log.Raw(ctx, log.Config().Names.Log(h.name.tenant, "*"), from) {
		if err != nil {
			if ctx.Err() == nil {
				h.logger.Warn().Err(err).Msg("the log cannot be read for a webhook that is behind; it is tried again")
				retry.Sleep(ctx, time.Second)
			}
			return
		}
		c, err := log.Decode(m)
		if err != nil {
			c = nil // it is counted and reported already
		}
		h.mu.Lock()
		noted := h.enqueue(m.Seq, c)
		h.mu.Unlock()
		if !noted {
			return
		}
	}
	// Nothing is dispatched while these are locked. If something was that the scan did not
	// see, the next one does.
	h.run.mu.Lock()
	defer h.run.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.skipped <= h.seq {
		h.seq, h.full, h.changed = max(h.seq, h.run.seq), false, true
	}
}
