package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/state"
)

// on runs f with the thread of one request.
func (s *site) on(f func(context.Context, *state.ThreadScope) error, headers ...string) answer {
	s.t.Helper()
	return s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		return f(r.Context(), state.Thread(r.Context()))
	}, headers...)
}

// What one request sets, the next one of the thread reads, and another visitor does not.
func TestThread_LastsAcrossRequests(t *testing.T) { // AG-3 AG-4 AG-17 AG-19 AG-20 AG-52 AG-80
	t.Parallel()
	s := open(t)
	first := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "name", "Ada") })
	for name, headers := range map[string][]string{"the same": first.next(), "another": nil} {
		a := s.on(func(ctx context.Context, th *state.ThreadScope) error {
			got, ok, err := state.Get[string](ctx, th, "name")
			if same := name == "the same"; ok != same || same && got != "Ada" || same != (first.id() == th.ID) {
				t.Errorf("%s thread %s has the name %q, %v", name, th.ID, got, ok)
			}
			if th != state.Session(ctx).Thread {
				t.Error("the session has another thread")
			}
			return err
		}, headers...)
		if !strings.HasPrefix(a.id(), "thrd_") || len(a.id()) != 37 {
			t.Errorf("a thread is %s", a.id())
		}
	}
}

// Every operation of the source, before and after the state is fetched: reads show pending
// writes, and the next request finds the same.
func TestThread_Operations(t *testing.T) { // AG-21 AG-22 AG-23 AG-24 AG-25 AG-26 AG-27 AG-28 AG-29 AG-30 AG-31 AG-36 AG-38
	t.Parallel()
	s := open(t)
	for _, loaded := range []bool{false, true} {
		first := s.on(func(ctx context.Context, th *state.ThreadScope) error {
			if has, err := th.Has(ctx, "messages"); has || err != nil {
				t.Errorf("before the first set: %v, %v", has, err)
			}
			return errors.Join(th.Set(ctx, "old", 1), th.Set(ctx, "kept", 2), th.Set(ctx, "list", []int{1, 2}))
		})
		check := func(ctx context.Context, th *state.ThreadScope) error {
			keys, err := th.Keys(ctx)
			size, err2 := th.Size(ctx)
			if got := fmt.Sprint(keys, size); got != "[kept list new] 3" {
				t.Errorf("loaded %v: the keys are %s", loaded, got)
			}
			list, ok, err3 := state.Get[[]int](ctx, th, "list")
			if fmt.Sprint(list, ok) != "[2 3 4] true" {
				t.Errorf("loaded %v: the list is %v", loaded, list)
			}
			old, ok, err4 := state.Get[*int](ctx, th, "old")
			if old != nil || ok {
				t.Errorf("loaded %v: a key that was deleted: %v", loaded, old)
			}
			values, err5 := state.Values[any](ctx, th)
			if fmt.Sprint(values) != "[2 [2 3 4] [true]]" {
				t.Errorf("loaded %v: the values are %v", loaded, values)
			}
			entries, err6 := state.Entries[any](ctx, th)
			if fmt.Sprint(entries) != "[{kept 2} {list [2 3 4]} {new [true]}]" {
				t.Errorf("loaded %v: the entries are %v", loaded, entries)
			}
			if _, _, err := state.Get[string](ctx, th, "list"); !refused(err, events.InvalidRequest) || !strings.Contains(err.Error(), "list") {
				t.Errorf("loaded %v: a list as a text: %v", loaded, err)
			}
			if got, err := state.Values[string](ctx, th); got != nil || !refused(err, events.InvalidRequest) {
				t.Errorf("loaded %v: all as texts: %v, %v", loaded, got, err)
			}
			return errors.Join(err, err2, err3, err4, err5, err6)
		}
		second := s.on(func(ctx context.Context, th *state.ThreadScope) error {
			if loaded {
				if _, err := th.Size(ctx); err != nil {
					return err
				}
			}
			err := errors.Join(th.Delete(ctx, "old"), th.Push(ctx, "list", 3, 3), th.Push(ctx, "list", 4, 3), th.Push(ctx, "new", true))
			if th.Loaded() != loaded || !th.Dirty() {
				t.Errorf("after writes it is loaded %v, dirty %v", th.Loaded(), th.Dirty())
			}
			return errors.Join(err, check(ctx, th))
		}, first.next()...)
		third := s.on(check, second.next()...)
		last := s.on(func(ctx context.Context, th *state.ThreadScope) error {
			return errors.Join(th.Set(ctx, "before", 1), th.Clear(ctx), th.Set(ctx, "after", nil))
		}, third.next()...)
		if got := s.values(last.id()); got != `{"after":null}` {
			t.Errorf("loaded %v: after clear: %s", loaded, got)
		}
	}
}

// sent returns how many messages the application sends while f runs. It repeats an f that took
// so long that the client may have sent a request again.
func (s *site) sent(f func()) uint64 {
	for {
		before, start := s.nc.Stats().OutMsgs, time.Now()
		f()
		if time.Since(start) < 5*time.Second {
			return s.nc.Stats().OutMsgs - before
		}
	}
}

// A request that uses no state sends nothing. Writes alone are one message, however many, and
// reads another one.
func TestThread_RoundTrips(t *testing.T) { // AG-16 AG-32 AG-33 AG-35
	t.Parallel()
	s := open(t)
	thread := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "old", 1) })
	write := func(ctx context.Context, th *state.ThreadScope) error {
		return errors.Join(th.Set(ctx, "a", 1), th.Push(ctx, "b", 2), th.Delete(ctx, "c"))
	}
	read := func(ctx context.Context, th *state.ThreadScope) error {
		_, _, err := state.Get[int](ctx, th, "a")
		_, err2 := th.Has(ctx, "b")
		_, err3 := th.Size(ctx)
		return errors.Join(err, err2, err3)
	}
	for name, c := range map[string]struct {
		use           []func(context.Context, *state.ThreadScope) error
		want          uint64
		loaded, dirty bool
	}{
		"nothing": {nil, 0, false, false},
		"writes":  {list(write), 1, false, true},
		"a clear": {list(func(ctx context.Context, th *state.ThreadScope) error {
			return errors.Join(th.Clear(ctx), th.Set(ctx, "a", 1))
		}), 1, false, true},
		"reads":          {list(read), 1, true, false},
		"read and write": {list(read, write), 2, true, true},
		"write and read": {list(write, read), 2, true, true},
		"own save":       {list(write, func(ctx context.Context, th *state.ThreadScope) error { return th.Save(ctx) }), 2, false, false}, // the session ends later
		"destroy":        {list(func(ctx context.Context, th *state.ThreadScope) error { return th.Destroy(ctx) }), 1, false, false},
	} {
		n := s.sent(func() {
			if name == "own save" {
				line := must(s.skein.Client("acme").Timeline(t.Context(), client.SubscribeOptions{From: client.Now(), Types: []string{"session.completed"}}))(t)
				defer line.Close()
				defer func() { must(line.Next(t.Context()))(t) }()
			}
			s.on(func(ctx context.Context, th *state.ThreadScope) error {
				for _, use := range c.use {
					if err := use(ctx, th); err != nil {
						return err
					}
				}
				if th.Loaded() != c.loaded || th.Dirty() != c.dirty {
					t.Errorf("%s: loaded %v, dirty %v", name, th.Loaded(), th.Dirty())
				}
				return nil
			}, thread.next()...)
		})
		if n != c.want {
			t.Errorf("%s: %d messages, want %d", name, n, c.want)
		}
	}
}

func list[T any](v ...T) []T { return v }

// Requests of one thread that run at the same time lose no push and no key.
func TestThread_ConcurrentRequests(t *testing.T) { // AG-36
	t.Parallel()
	s := open(t)
	first := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "kept", true) })
	const visitors = 16
	together := sync.WaitGroup{}
	together.Add(visitors)
	path := s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		ctx, th := r.Context(), state.Thread(r.Context())
		if _, err := th.Size(ctx); err != nil { // all have read the same
			return err
		}
		together.Done()
		together.Wait()
		n := r.Header.Get("n")
		return errors.Join(th.Push(ctx, "all", n), th.Set(ctx, n, n))
	})
	var done sync.WaitGroup
	for n := range visitors {
		r := s.request(path, append(first.next(), "n", fmt.Sprint(n))...)
		done.Go(func() {
			response, err := s.http.Do(r)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("visitor %d: %v, %v", n, response, err)
				return
			}
			_ = response.Body.Close()
		})
	}
	done.Wait()
	s.on(func(ctx context.Context, th *state.ThreadScope) error {
		all, _, err := state.Get[[]string](ctx, th, "all")
		size, err2 := th.Size(ctx)
		if len(all) != visitors || size != visitors+2 {
			t.Errorf("%d pushes and %d keys of %d visitors are left: %v", len(all), size, visitors, all)
		}
		return errors.Join(err, err2)
	}, first.next()...)
}

// Goroutines of one request use its state at the same time.
func TestThread_ConcurrentUse(t *testing.T) {
	t.Parallel()
	s := open(t)
	a := s.on(func(ctx context.Context, th *state.ThreadScope) error {
		var done sync.WaitGroup
		for n := range 8 {
			done.Go(func() {
				for range 10 {
					_, _, err := state.Get[[]int](ctx, th, "list")
					if err := errors.Join(err, th.Push(ctx, "list", n), th.Save(ctx)); err != nil {
						t.Error(err)
					}
					_, _ = th.Loaded(), th.Dirty()
					state.Logger(ctx).Info("pushed")
					if err := errors.Join(state.Request(ctx).Set("n", n), state.Session(ctx).State.Set("n", n)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		return nil
	})
	if got := strings.Count(s.values(a.id()), ","); got != 79 {
		t.Errorf("%d of 80 values are there: %s", got+1, s.values(a.id()))
	}
}

// AG-74, C-16: a state of 1,048,576 bytes of JSON is stored by one save, and read back, from an event
// and a document of that size; a byte more is refused, with the status of its code, and the visitor
// keeps the thread.
func TestThread_LargestState(t *testing.T) {
	t.Parallel()
	s := open(t)
	largest := strings.Repeat("x", events.MaxStateBytes-len(`{"a":""}`))
	a := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "a", largest) })
	if a.StatusCode != http.StatusOK {
		t.Fatalf("the largest state is answered with %d %.200s", a.StatusCode, a.body)
	}
	s.on(func(ctx context.Context, th *state.ThreadScope) error {
		if got, ok, err := state.Get[string](ctx, th, "a"); !ok || got != largest {
			t.Errorf("%d of %d bytes are read back: %v", len(got), len(largest), err)
		}
		return nil
	}, a.next()...)
	got := must(client.Read(t.Context(), must(s.client.UpToDate(t.Context()))(t), events.GetState{ThreadID: a.id()}))(t)
	if len(got.Values) != events.MaxStateBytes {
		t.Errorf("state.get returns %d bytes", len(got.Values))
	}
	over := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "a", largest+"x") })
	if over.StatusCode != http.StatusRequestEntityTooLarge || over.header() == "" || over.cookie() == nil {
		t.Errorf("a byte more is answered with %d %.200s, %v", over.StatusCode, over.body, over.Header)
	}
}

// A visitor who uploads before anything else has a thread, and the file is its.
func TestThread_FilesBeforeState(t *testing.T) {
	t.Parallel()
	s := open(t)
	upload := func(ctx context.Context, th *state.ThreadScope) error {
		files, err := th.Files(ctx)
		if err != nil {
			return err
		}
		_, err = files.WriteFile(ctx, "/photo.txt", []byte("a photo"), "", client.WriteFileOptions{})
		return err
	}
	a := s.on(upload)
	if a.StatusCode != http.StatusOK {
		t.Fatalf("the upload is answered with %d %.200s", a.StatusCode, a.body)
	}
	s.on(upload, a.next()...)
	if data := must(s.client.Files(a.id()).ReadFile(t.Context(), "/photo.txt"))(t); string(data) != "a photo" {
		t.Errorf("the file holds %q", data)
	}
	if got := s.values(a.id()); got != "{}" {
		t.Errorf("the state has %s", got)
	}
}

// What is too large or no JSON is refused whole: nothing is truncated or dropped, where the
// source does both.
func TestThread_LimitsAreRefusedWhole(t *testing.T) { // AG-74 C-16 C-17, and AG-75 and AG-76 as these settle them
	t.Parallel()
	s := open(t)
	half := strings.Repeat("x", 400_000)
	cycle := map[string]any{}
	cycle["self"] = cycle
	a := s.on(func(ctx context.Context, th *state.ThreadScope) error {
		for name, value := range map[string]any{"a function": func() {}, "a channel": make(chan int), "a cycle": cycle, "not a number": math.NaN(), "no UTF-8": "\xff"} {
			if err := th.Set(ctx, "bad", value); !refused(err, events.InvalidRequest) || !strings.Contains(err.Error(), "bad") {
				t.Errorf("%s: %v", name, err)
			}
			if err := th.Push(ctx, "bad", value); !refused(err, events.InvalidRequest) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, key := range []string{"", strings.Repeat("k", 1025), "\xff"} {
			if err := th.Set(ctx, key, 1); !refused(err, events.InvalidRequest) {
				t.Errorf("the key %.10q: %v", key, err)
			}
		}
		for _, most := range [][]int{{0}, {-1}, {1_000_001}, {1, 2}} {
			if err := th.Push(ctx, "list", 1, most...); !refused(err, events.InvalidRequest) {
				t.Errorf("a window of %v: %v", most, err)
			}
		}
		if err := th.Set(ctx, "a", half); err != nil {
			return err
		}
		if err := th.Set(ctx, "b", strings.Repeat("x", 720_000)); !refused(err, events.PayloadTooLarge) || !strings.Contains(err.Error(), "Save") {
			t.Errorf("more than one save: %v", err)
		}
		if err := th.Set(ctx, "a", half); err != nil { // overwrites what was not saved
			t.Errorf("the same again: %v", err)
		}
		return errors.Join(th.Save(ctx), th.Set(ctx, "b", half))
	})
	s.on(func(ctx context.Context, th *state.ThreadScope) error {
		for n := range 20_000 { // the same keys again and again are few writes
			if err := th.Set(ctx, fmt.Sprint(n%10), n); err != nil {
				return err
			}
		}
		for n := range 9_990 {
			if err := th.Push(ctx, "list", n, 1); err != nil {
				return err
			}
		}
		if err := th.Push(ctx, "list", 0); !refused(err, events.PayloadTooLarge) {
			t.Errorf("too many writes: %v", err)
		}
		if err := th.Set(ctx, "0", 0); err != nil { // instead of another one
			t.Errorf("a key that was set before: %v", err)
		}
		return th.Save(ctx)
	})
	before := s.values(a.id())
	s.on(func(ctx context.Context, th *state.ThreadScope) error { // not fetched: the server refuses
		if err := th.Set(ctx, "c", half); err != nil {
			return err
		}
		if err := th.Save(ctx); !refused(err, events.PayloadTooLarge) || !th.Dirty() {
			t.Errorf("over the limit: %v, dirty %v", err, th.Dirty())
		}
		return th.Delete(ctx, "c") // correct it
	}, a.next()...)
	s.on(func(ctx context.Context, th *state.ThreadScope) error { // fetched: it is known
		if _, err := th.Size(ctx); err != nil {
			return err
		}
		if err := th.Set(ctx, "c", half); !refused(err, events.PayloadTooLarge) || th.Dirty() {
			t.Errorf("over the limit: %v, dirty %v", err, th.Dirty())
		}
		if has, err := th.Has(ctx, "c"); has || err != nil {
			t.Errorf("what was refused is there: %v, %v", has, err)
		}
		for range 5 { // a window keeps it small: no push is refused for what it replaces
			if err := th.Push(ctx, "w", half[:200_000], 1); err != nil {
				return err
			}
			if err := th.Save(ctx); err != nil {
				return err
			}
		}
		return th.Delete(ctx, "w")
	}, a.next()...)
	if after := s.values(a.id()); after != before {
		t.Errorf("the state had %d bytes, and has %d", len(before), len(after))
	}
}

// A push to a value that is no list is an error, at once if the state is fetched, and can be
// corrected.
func TestThread_PushToNoList(t *testing.T) { // AG-26
	t.Parallel()
	s := open(t)
	a := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "text", "Hello") })
	s.on(func(ctx context.Context, th *state.ThreadScope) error {
		if err := th.Push(ctx, "text", 1); err != nil {
			return err
		}
		if _, err := th.Size(ctx); !refused(err, events.InvalidRequest) || th.Loaded() {
			t.Errorf("a read after it: %v", err)
		}
		if err := th.Save(ctx); !refused(err, events.InvalidRequest) {
			t.Errorf("a save after it: %v", err)
		}
		if err := th.Set(ctx, "text", []int{0}); err != nil {
			return err
		}
		if got, _, err := state.Get[[]int](ctx, th, "text"); len(got) != 1 || err != nil {
			t.Errorf("after it was set: %v, %v", got, err)
		}
		if err := errors.Join(th.Set(ctx, "no list", 1), th.Push(ctx, "no list", 2)); !refused(err, events.InvalidRequest) {
			t.Errorf("a push to what is known to be no list: %v", err)
		}
		return th.Delete(ctx, "no list")
	}, a.next()...)
	if got := s.values(a.id()); got != `{"text":[0]}` {
		t.Errorf("the state is %s", got)
	}
}

// Destroy clears the state at once, and the thread goes on with a new one.
func TestThread_Destroy(t *testing.T) { // AG-34 AG-90
	t.Parallel()
	s := open(t)
	a := s.on(func(ctx context.Context, th *state.ThreadScope) error {
		return errors.Join(th.Destroy(ctx), th.Set(ctx, "a", 1)) // without state it does nothing
	})
	b := s.on(func(ctx context.Context, th *state.ThreadScope) error {
		if err := errors.Join(th.Set(ctx, "b", 1), th.Destroy(ctx)); err != nil {
			return err
		}
		if size, err := th.Size(ctx); size != 0 || err != nil {
			t.Errorf("after destroy there are %d keys: %v", size, err)
		}
		return th.Set(ctx, "c", 1)
	}, a.next()...)
	v := must(client.Read(t.Context(), s.client, events.GetState{ThreadID: a.id()}))(t)
	if string(v.Values) != `{"c":1}` || v.Life != 2 || b.id() != a.id() {
		t.Errorf("the state is %s, life %d, of %s and %s", v.Values, v.Life, a.id(), b.id())
	}
}

// The state ends after an idle hour. Reads and writes are activity; a read moves the end in the
// background, at most once a minute.
func TestThread_ExpiresWhenIdle(t *testing.T) { // AG-3 AG-18
	t.Parallel()
	s := open(t)
	thread := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "a", 1) })
	has := func() (has bool) {
		s.on(func(ctx context.Context, th *state.ThreadScope) (err error) {
			has, err = th.Has(ctx, "a")
			return err
		}, thread.next()...)
		return has
	}
	for range 3 { // alive by reads alone, for more than two hours
		s.skein.Advance(50 * time.Minute)
		if !has() {
			t.Fatal("the state has ended while it was read")
		}
		s.settle()
	}
	if n := s.sent(func() { has(); s.settle() }); n != 1 {
		t.Errorf("a read soon after another one sends %d messages", n)
	}
	s.skein.Advance(63 * time.Minute)
	if has() {
		t.Error("the state outlives an idle hour")
	}
}

// A visitor finds the state again when the application has restarted; only what is of the
// request is gone.
func TestThread_SurvivesRestart(t *testing.T) { // AG-40 C-5
	t.Parallel()
	s := open(t)
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		ctx := r.Context()
		return errors.Join(state.Thread(ctx).Set(ctx, "a", 1), state.Request(ctx).Set("a", 1), state.Session(ctx).State.Set("a", 1))
	})
	s.drain()
	restarted := must(state.New(t.Context(), state.Options{Client: s.skein.Client("acme"), Keys: [][]byte{[]byte(key)}}))(t)
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.AddCookie(a.cookie())
	state.Middleware(restarted)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		got, ok, err := state.Get[int](ctx, state.Thread(ctx), "a")
		if got != 1 || !ok || err != nil || state.Request(ctx).Has("a") || state.Session(ctx).State.Has("a") {
			t.Errorf("after the restart: %d, %v, %v, with %v and %v", got, ok, err, state.Request(ctx).Keys(), state.Session(ctx).State.Keys())
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
}

// An application says how long its states last.
func TestThread_IdleTime(t *testing.T) { // AG-18
	t.Parallel()
	s := open(t, func(o *state.Options) { o.Idle = 10 * time.Hour })
	a := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "a", 1) })
	s.skein.Advance(9 * time.Hour)
	if got := s.values(a.id()); got != `{"a":1}` {
		t.Errorf("before its time the state is %s", got)
	}
	s.skein.Advance(2 * time.Hour)
	if got := s.values(a.id()); got != `{}` {
		t.Errorf("after its time the state is %s", got)
	}
}

// A thread that was deleted is gone: the visitor is told, and gets another one.
func TestThread_Deleted(t *testing.T) {
	t.Parallel()
	s := open(t)
	write := func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "a", 1) }
	a := s.on(write)
	must(s.client.Send(t.Context(), a.id(), events.DeleteThread{}))(t)
	gone := s.on(write, "Cookie", "atid="+a.cookie().Value)
	if c := gone.cookie(); gone.StatusCode != http.StatusGone || c == nil || c.MaxAge >= 0 || gone.header() != "" {
		t.Errorf("the answer is %d %s with %v", gone.StatusCode, gone.body, gone.Header)
	}
	if b := s.on(write); b.StatusCode != http.StatusOK || b.id() == a.id() {
		t.Errorf("without the cookie: %d, %s", b.StatusCode, b.id())
	}
}

// A save whose answer is lost is sent again: the push is made once, whether it was stored or not.
func TestSave_RepeatsWithoutPushingTwice(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, stored := range map[string]bool{"/stored": true, "/not": false} {
		relay := &relay{s: s, stored: stored, lost: make(chan struct{}, 1)}
		prefix := strings.TrimPrefix(name, "/")
		for _, subject := range []string{"cmd.acme.state.merge", "query.acme.state.get"} {
			sub := must(s.nc.Subscribe(prefix+"."+subject, func(m *nats.Msg) { relay.forward(m, "skein."+subject) }))(t)
			t.Cleanup(func() { _ = sub.Unsubscribe() })
		}
		c := must(client.New(s.nc, client.Options{Tenant: "acme", Names: events.Names{Prefix: prefix}}))(t)
		app := must(state.New(t.Context(), state.Options{Client: c, Development: true}))(t)
		id := ""
		s.handlers[name] = state.Middleware(app)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			th := state.Thread(r.Context())
			id = th.ID
			ctx, cancel := context.WithCancel(r.Context())
			go func() { <-relay.lost; cancel() }()
			if err := th.Push(ctx, "list", 1); err != nil {
				t.Error(err)
			}
			if err := th.Save(ctx); !refused(err, events.Unavailable) || !th.Dirty() {
				t.Errorf("%s: the answer was lost: %v", name, err)
			}
			if err := th.Push(r.Context(), "list", 2); err != nil {
				t.Error(err)
			}
			if got, _, err := state.Get[[]int](r.Context(), th, "list"); fmt.Sprint(got) != "[1 2]" || err != nil {
				t.Errorf("%s: a read after it: %v, %v", name, got, err)
			}
		})).ServeHTTP
		s.get(name)
		if got, sent := s.values(id), relay.merges(); got != `{"list":[1,2]}` || len(sent) != 3 || !bytes.Equal(sent[0], sent[1]) {
			t.Errorf("%s: the state is %s after %d commands", name, got, len(sent))
		}
	}
}

// relay forwards requests to Skein, and loses the answer to the first command.
type relay struct {
	s      *site
	stored bool // the first command is forwarded
	lost   chan struct{}

	mu   sync.Mutex // guards sent
	sent [][]byte   // the commands
}

func (r *relay) merges() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent
}

func (r *relay) forward(m *nats.Msg, to string) {
	first := false
	if strings.HasSuffix(to, "merge") {
		r.mu.Lock()
		first, r.sent = len(r.sent) == 0, append(r.sent, m.Data)
		r.mu.Unlock()
	}
	if first && !r.stored {
		r.lost <- struct{}{}
		return
	}
	answer, err := r.s.nc.RequestWithContext(r.s.t.Context(), to, m.Data)
	switch {
	case err != nil:
		r.s.t.Error(err)
	case first:
		r.lost <- struct{}{}
	default:
		_ = m.RespondMsg(&nats.Msg{Header: answer.Header, Data: answer.Data})
	}
}
