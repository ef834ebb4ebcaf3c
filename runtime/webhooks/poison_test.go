package webhooks_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime/webhooks"
)

// gate is an endpoint that accepts nothing until it is opened.
func gate(t *testing.T) (v *receiver, open func()) {
	t.Helper()
	var opened atomic.Bool
	return receive(t, func(delivery, *http.Request) int {
		if !opened.Load() {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}), func() { opened.Store(true) }
}

// A commit that cannot be read is passed over, also where it is the last one of its thread.
func TestHub_BrokenCommitIsPassedOver(t *testing.T) {
	w := start(t)
	w.deliver(webhooks.Config{})
	v, open := gate(t)
	w.define(w.c, "all", v.URL, ``)
	thread := w.thread(w.c, events.CreateThread{})
	w.say(w.c, thread, "before")
	nc := natstest.Dial(t, w.url)
	if _, err := nc.Request(w.log.Config().Names.Log("acme", thread), []byte("this is no commit"), 0x7fffffff); err != nil {
		t.Fatal(err)
	}
	open()
	v.until(w, "what can be read", func(all []delivery) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == thread && d.Type == "item.created" })
	})
	w.list("caught up", func(l map[string]events.Webhook) bool { return l["all"].Behind == 0 && l["all"].Failures == 0 })
}

// A thread whose events waited, and were erased with it, is behind no more, though the webhook
// is of none of those that are left.
func TestHub_ErasedEventsAreNotWaitedFor(t *testing.T) {
	w := start(t)
	w.deliver(webhooks.Config{})
	v, open := gate(t)
	w.define(w.c, "items", v.URL, `,"types":["item.*"]`)
	thread := w.thread(w.c, events.CreateThread{})
	w.say(w.c, thread, "forget this")
	w.list("behind", func(l map[string]events.Webhook) bool { return l["items"].Behind == 1 })
	if _, err := w.c.Send(w.ctx, thread, events.DeleteThread{Purge: true}); err != nil {
		t.Fatal(err)
	}
	erased := func() bool {
		for c, err := range w.log.Thread(w.ctx, "acme", thread, 1) {
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(c.Events, func(e events.Event) bool { return e.Type == events.ItemCreatedType }) {
				return false
			}
		}
		return true
	}
	for !erased() {
		if w.ctx.Err() != nil {
			t.Fatal("the thread was not erased")
		}
	}
	open()
	w.list("caught up", func(l map[string]events.Webhook) bool { return l["items"].Behind == 0 })
}

// A webhook whose stored definition this version cannot read is sent nothing, keeps its place,
// and continues when one that it can read is applied. Others are not affected.
func TestHub_UnreadableDefinitionKeepsItsPlace(t *testing.T) {
	w := start(t)
	stop := w.deliver(webhooks.Config{})
	v, open := gate(t)
	good := receive(t, nil)
	w.define(w.c, "bad", v.URL, ``)
	w.define(w.c, "good", good.URL, ``)
	behind := w.thread(w.c, events.CreateThread{})
	w.list("behind", func(l map[string]events.Webhook) bool { return l["bad"].Behind > 1 })
	stop()
	kv, err := w.log.JetStream().KeyValue(w.ctx, w.log.Config().Names.Bucket(webhooks.Bucket))
	if err != nil {
		t.Fatal(err)
	}
	entry, err := kv.Get(w.ctx, "acme."+events.DefinitionRef{Kind: events.WebhookKind, Name: "bad"}.Key())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(w.ctx, entry.Key(), []byte(strings.Replace(string(entry.Value()), `"http":{`, `"http":null,"was":{`, 1))); err != nil {
		t.Fatal(err)
	}
	w.deliver(webhooks.Config{})
	later := w.thread(w.c, events.CreateThread{})
	has := func(all []delivery, thread string) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == thread && d.Type == "thread.created" })
	}
	good.until(w, "another webhook's", func(all []delivery) bool { return has(all, later) })
	w.list("what is wrong", func(l map[string]events.Webhook) bool {
		return strings.Contains(l["bad"].LastError, "cannot be read") && l["bad"].Behind > 2
	})
	open()
	w.define(w.c, "bad", v.URL, `,"description":"As this version reads it."`)
	v.until(w, "what was behind", func(all []delivery) bool { return has(all, behind) && has(all, later) })
}

// A webhook that is changed in the middle of a thread sends what follows to its new URL.
func TestHub_ChangeCountsFromTheNextEvent(t *testing.T) {
	w := start(t)
	w.deliver(webhooks.Config{})
	arrived, release := make(chan struct{}), make(chan struct{})
	var said atomic.Bool
	old := receive(t, func(delivery, *http.Request) int {
		if !said.Load() {
			return http.StatusServiceUnavailable // until all are behind
		}
		select {
		case arrived <- struct{}{}:
			<-release
		default:
		}
		return http.StatusOK
	})
	next := receive(t, nil)
	w.define(w.c, "hook", old.URL, `,"types":["item.created"]`)
	thread := w.thread(w.c, events.CreateThread{})
	w.say(w.c, thread, "one", "two", "three")
	said.Store(true)
	<-arrived
	w.define(w.c, "hook", next.URL, `,"types":["item.created"],"keyPrefix":""`)
	kv, err := w.log.JetStream().KeyValue(w.ctx, w.log.Config().Names.Bucket(webhooks.Bucket))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := kv.Watch(w.ctx, "acme.>")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = changes.Stop() }()
	for entry := range changes.Updates() { // the change has arrived once it is stored
		if entry != nil && strings.Contains(string(entry.Value()), next.URL) {
			break
		}
	}
	close(release)
	got := next.until(w, "what follows", func(all []delivery) bool { return len(all) == 2 })
	old.mu.Lock()
	defer old.mu.Unlock()
	if len(old.all) != 1 || old.all[0].Version >= got[0].Version {
		t.Errorf("%+v went to the old URL", old.all)
	}
}

// A hub with nothing to do writes nothing.
func TestHub_IdleWritesNothing(t *testing.T) {
	w := start(t)
	saves := &saved{again: make(chan struct{})}
	w.deliver(webhooks.Config{Metrics: saves})
	v := receive(t, nil)
	w.define(w.c, "all", v.URL, ``)
	thread := w.thread(w.c, events.CreateThread{})
	v.until(w, "the event", func(all []delivery) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == thread })
	})
	last := func() uint64 {
		t.Helper()
		stream, err := w.log.JetStream().Stream(w.ctx, "KV_"+w.log.Config().Names.Bucket(webhooks.Bucket))
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.LastSeq
	}
	for before := last(); ; before = last() {
		for range 10 {
			<-saves.again
		}
		if last() == before {
			return
		}
		if w.ctx.Err() != nil {
			t.Fatal("it writes though nothing happens")
		}
	}
}

// saved tells of each time that the hub saves.
type saved struct {
	webhooks.NoMetrics
	again chan struct{}
}

func (s *saved) Webhooks(int, int) {
	select {
	case s.again <- struct{}{}:
	default:
	}
}
