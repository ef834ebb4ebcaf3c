package webhooks_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime/webhooks"
)

func TestHub_FiltersAndContents(t *testing.T) {
	w := start(t)
	w.deliver(webhooks.Config{})
	v := receive(t, func(d delivery, r *http.Request) int {
		mac := hmac.New(sha256.New, []byte("the-secret-of-a-webhook"))
		mac.Write([]byte(r.Header.Get("Skein-Timestamp") + "." + d.raw))
		if r.Header.Get("Skein-Signature") != "HOOK="+hex.EncodeToString(mac.Sum(nil)) || r.Header.Get("Content-Type") != "application/cloudevents+json" {
			t.Errorf("%v", r.Header)
		}
		return http.StatusOK
	})
	w.define(w.c, "all", v.URL, ``)
	w.define(w.c, "items", v.URL, `,"types":["item.*"],"contents":true,"description":"Items."`)
	w.define(w.c, "orders", v.URL, `,"keyPrefix":"order:"`)
	w.define(w.c, "clerks", v.URL, `,"agents":["clerk","boss"]`)
	key := "order:7"
	order, plain, clerk := w.thread(w.c, events.CreateThread{Key: key}), w.thread(w.c, events.CreateThread{}), w.thread(w.c, events.CreateThread{AgentID: "clerk"})
	other := w.client("globex")
	foreign := w.thread(other, events.CreateThread{AgentID: "clerk", Key: key})
	for _, thread := range []string{order, plain, clerk} {
		w.say(w.c, thread, "secret words")
	}
	w.say(other, foreign, "secret words")
	has := func(all []delivery, hook, thread, typ string) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.hook == hook && d.Thread == thread && d.Type == typ })
	}
	all := v.until(w, "everything", func(all []delivery) bool {
		for _, n := range [][2]string{{"all", order}, {"all", plain}, {"all", clerk}, {"items", order}, {"items", plain}, {"items", clerk}, {"orders", order}, {"clerks", clerk}} {
			if !has(all, n[0], n[1], "item.created") {
				return false
			}
		}
		return true
	})
	for _, d := range all {
		switch {
		case d.Thread == foreign:
			t.Errorf("an event of another tenant: %+v", d)
		case d.hook == "items" && (!strings.HasPrefix(d.Type, "item.") || !strings.Contains(string(d.Data), "secret words")),
			d.hook != "items" && (d.Data != nil || strings.Contains(d.raw, "secret words")):
			t.Errorf("%s", d.raw)
		case d.hook == "orders" && d.Thread != order, d.hook == "clerks" && d.Thread != clerk:
			t.Errorf("%s is not of %s", d.hook, d.Thread)
		}
	}
	if !has(all, "all", order, "thread.created") {
		t.Error("a thread begins without its first event")
	}
}

// Under failures of one attempt in five, and across restarts, every event arrives, in the
// order of its thread.
func TestHub_OrderUnderFailuresAndRestarts(t *testing.T) {
	w := start(t)
	var attempts atomic.Int64
	v := receive(t, func(delivery, *http.Request) int {
		attempts.Add(1)
		if rand.IntN(5) == 0 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	stop := w.deliver(webhooks.Config{})
	w.define(w.c, "all", v.URL, ``)
	const threads, messages = 8, 12
	ids := make([]string, threads)
	for i := range ids {
		ids[i] = w.thread(w.c, events.CreateThread{})
	}
	for n := range messages {
		for _, id := range ids {
			w.say(w.c, id, fmt.Sprint(n))
		}
		if n%4 == 3 {
			stop()
			stop = w.deliver(webhooks.Config{})
		}
	}
	all := v.until(w, "every message", func(all []delivery) bool {
		seen := map[string]bool{}
		for _, d := range all {
			if d.Type == "item.created" {
				seen[d.ID] = true
			}
		}
		return len(seen) == threads*messages
	})
	inOrder(t, all)
	if int(attempts.Load()) == len(all) {
		t.Error("nothing failed")
	}
	w.list("caught up", func(l map[string]events.Webhook) bool {
		return l["all"].Behind == 0 && l["all"].Failures == 0 && l["all"].Delivered >= int64(threads*messages)
	})
}

// An event that is never accepted delays its thread alone; it is shown, and arrives when it
// is accepted.
func TestHub_RefusedEventDelaysItsThreadAlone(t *testing.T) {
	w := start(t)
	w.deliver(webhooks.Config{})
	var sick sync.Map
	v := receive(t, func(d delivery, _ *http.Request) int {
		if _, refused := sick.Load(d.Thread); refused {
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	w.define(w.c, "all", v.URL, ``)
	bad := w.thread(w.c, events.CreateThread{})
	v.until(w, "the first event", func(all []delivery) bool { return len(all) > 0 })
	sick.Store(bad, true)
	w.say(w.c, bad, "one", "two")
	for range 3 {
		good := w.thread(w.c, events.CreateThread{})
		w.say(w.c, good, "hello")
		v.until(w, "another thread", func(all []delivery) bool {
			return slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == good && d.Type == "item.created" })
		})
	}
	w.list("one thread behind", func(l map[string]events.Webhook) bool {
		return l["all"].Behind == 1 && l["all"].Failures > 0 && l["all"].FailingSince != "" && strings.Contains(l["all"].LastError, "has status 400")
	})
	sick.Delete(bad)
	inOrder(t, v.until(w, "the thread", func(all []delivery) bool {
		n := 0
		for _, d := range all {
			if d.Thread == bad && d.Type == "item.created" {
				n++
			}
		}
		return n == 2
	}))
}

// An endpoint that never answers, or is not there, delays no other webhook and no other
// tenant, and gets one attempt at a time.
func TestHub_DeadEndpointsDelayNoOther(t *testing.T) {
	w := start(t)
	var inFlight, most atomic.Int64
	release := make(chan struct{})
	slow := receive(t, func(_ delivery, r *http.Request) int {
		most.Store(max(most.Load(), inFlight.Add(1)))
		defer inFlight.Add(-1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return http.StatusOK
	})
	v := receive(t, nil)
	w.deliver(webhooks.Config{Timeout: time.Minute, PerHook: 2})
	w.define(w.c, "slow", slow.URL, ``)
	w.define(w.c, "closed", "http://127.0.0.1:1", ``)
	w.define(w.c, "good", v.URL, ``)
	other := w.client("globex")
	w.define(other, "good", v.URL, ``)
	for range 10 {
		w.thread(w.c, events.CreateThread{})
		w.thread(other, events.CreateThread{})
	}
	v.until(w, "what is well", func(all []delivery) bool {
		created := 0
		for _, d := range all {
			if d.Type == "thread.created" {
				created++
			}
		}
		return created == 20
	})
	// The tenant's own events are behind, too: the definition of what followed.
	w.list("the closed one", func(l map[string]events.Webhook) bool {
		return l["closed"].Behind == 11 && l["closed"].Failures >= 5 && strings.Contains(l["closed"].LastError, "cannot be reached")
	})
	if n := most.Load(); n > 2 {
		t.Errorf("%d requests of a webhook were in flight", n)
	}
	close(release)
	slow.until(w, "the slow one", func(all []delivery) bool {
		threads := map[string]bool{}
		for _, d := range all {
			threads[d.Thread] = true
		}
		return len(threads) == 11
	})
}

// When too many threads are behind, events wait in the log, and none is left out, also
// across a restart.
func TestHub_TooManyThreadsBehind(t *testing.T) {
	w := start(t)
	var down atomic.Bool
	down.Store(true)
	v := receive(t, func(delivery, *http.Request) int {
		if down.Load() {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	cfg := webhooks.Config{MaxBehind: 4, Probe: retry.Policy{First: 10 * time.Millisecond, Max: 10 * time.Millisecond}}
	stop := w.deliver(cfg)
	w.define(w.c, "all", v.URL, ``)
	want := map[string]bool{}
	for range 20 {
		want[w.thread(w.c, events.CreateThread{})] = true
	}
	w.list("full", func(l map[string]events.Webhook) bool { return l["all"].Full && l["all"].Behind == 4 })
	stop()
	stop = w.deliver(cfg)
	for range 5 {
		want[w.thread(w.c, events.CreateThread{})] = true
	}
	down.Store(false)
	done := func(all []delivery) bool {
		seen := map[string]bool{}
		for _, d := range all {
			seen[d.Thread] = seen[d.Thread] || want[d.Thread]
		}
		return len(seen) >= len(want)
	}
	inOrder(t, v.until(w, "every thread", done))
	w.list("not full", func(l map[string]events.Webhook) bool { return !l["all"].Full && l["all"].Behind == 0 })
	last := w.thread(w.c, events.CreateThread{})
	v.until(w, "what follows", func(all []delivery) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == last })
	})
	stop()
}

// Of a purged thread no contents are sent, though its events wait.
func TestHub_PurgedThreadHasNoContents(t *testing.T) {
	w := start(t)
	var down atomic.Bool
	down.Store(true)
	v := receive(t, func(d delivery, _ *http.Request) int {
		if down.Load() {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	w.deliver(webhooks.Config{})
	w.define(w.c, "all", v.URL, `,"contents":true`)
	thread, other := w.thread(w.c, events.CreateThread{}), w.thread(w.c, events.CreateThread{})
	w.say(w.c, thread, "forget this")
	w.say(w.c, other, "keep this")
	if _, err := w.c.Send(w.ctx, thread, events.DeleteThread{Purge: true}); err != nil {
		t.Fatal(err)
	}
	down.Store(false)
	all := v.until(w, "the end of the thread", func(all []delivery) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == thread && d.Type == "lifecycle.deleted" }) &&
			slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == other && strings.Contains(d.raw, "keep this") })
	})
	for _, d := range all {
		early := d.Version == 1 // its delivery may have begun before the purge; the others follow it
		if d.Thread == thread && d.Data != nil && !early || strings.Contains(d.raw, "forget this") {
			t.Errorf("contents of a purged thread: %s", d.raw)
		}
	}
}

// A webhook that is changed sends to its new URL what is behind; one that is removed sends
// nothing more, and one of its name begins again.
func TestHub_ChangedAndRemoved(t *testing.T) {
	w := start(t)
	wrong, right := receive(t, func(delivery, *http.Request) int { return http.StatusGone }), receive(t, nil)
	w.deliver(webhooks.Config{Backoff: retry.Policy{First: time.Hour}, Probe: retry.Policy{First: time.Hour}})
	w.define(w.c, "hook", wrong.URL, ``)
	thread := w.thread(w.c, events.CreateThread{})
	w.list("failing", func(l map[string]events.Webhook) bool { return l["hook"].Failures > 0 })
	w.define(w.c, "hook", right.URL, ``)
	right.until(w, "what was behind", func(all []delivery) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == thread && d.Type == "thread.created" })
	})
	if _, err := w.c.Send(w.ctx, "", events.ApplyDefinitions{Remove: []events.DefinitionRef{{Kind: events.WebhookKind, Name: "hook"}}}); err != nil {
		t.Fatal(err)
	}
	unseen := w.thread(w.c, events.CreateThread{})
	w.list("none", func(l map[string]events.Webhook) bool { return len(l) == 0 })
	w.define(w.c, "hook", right.URL, ``)
	last := w.thread(w.c, events.CreateThread{})
	for _, d := range right.until(w, "what follows", func(all []delivery) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == last })
	}) {
		if d.Thread == unseen {
			t.Errorf("an event of when there was no webhook: %s", d.raw)
		}
	}
}

// A pause that the endpoint asks for is respected.
func TestHub_RetryAfter(t *testing.T) {
	w := start(t)
	var first atomic.Int64
	v := receive(t, nil)
	v.Config.Handler = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if first.CompareAndSwap(0, time.Now().UnixMilli()) {
				rw.Header().Set("Retry-After", "2")
				rw.WriteHeader(http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(rw, r)
		})
	}(v.Config.Handler)
	w.deliver(webhooks.Config{})
	w.define(w.c, "all", v.URL, `,"types":["thread.created"]`)
	w.thread(w.c, events.CreateThread{})
	v.until(w, "the event", func(all []delivery) bool { return len(all) == 1 })
	if waited := time.Now().UnixMilli() - first.Load(); waited < 2000 {
		t.Errorf("it was sent again after %d ms", waited)
	}
}
