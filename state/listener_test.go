package state_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/state"
)

// happened returns events of a thread.
func (s *site) happened(id string, types ...events.Type) []events.Event {
	s.t.Helper()
	c := must(s.client.UpToDate(s.t.Context()))(s.t)
	q := events.ListEvents{ThreadID: id}
	for _, typ := range types {
		q.Types = append(q.Types, string(typ))
	}
	list := must(client.Read(s.t.Context(), c, q))(s.t)
	var out []events.Event
	for _, raw := range list.Events {
		out = append(out, must(events.DecodeEvent(raw))(s.t))
	}
	return out
}

// listens runs the listeners of an application until the test ends, or stop is called.
func listens(t *testing.T, app *state.App) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Listen(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "shut down") {
			t.Errorf("Listen returned %v", err)
		}
		done <- context.Canceled
	}
	t.Cleanup(stop)
	return stop
}

// cleared blocks until the first life of a thread's state is cleared.
func (s *site) cleared(id string) {
	s.t.Helper()
	line := must(s.client.Timeline(s.t.Context(), client.SubscribeOptions{Thread: id, Types: []string{string(events.StateClosedType)}}))(s.t)
	defer line.Close()
	must(line.Next(s.t.Context()))(s.t)
}

// consumers returns the consumers of listeners.
func (s *site) consumers() []string {
	s.t.Helper()
	timeline := must(must(jetstream.New(s.nc))(s.t).Stream(s.t.Context(), "SKEIN_TIMELINE"))(s.t)
	var names []string
	list := timeline.ConsumerNames(s.t.Context())
	for name := range list.Name() {
		if strings.HasPrefix(name, "acme=listener-") {
			names = append(names, name)
		}
	}
	if err := list.Err(); err != nil {
		s.t.Fatal(err)
	}
	return names
}

func listener(name string, event state.EventType, run func(context.Context, state.Event) error) func(*state.Options) {
	return func(o *state.Options) {
		o.Name = "shop"
		o.Listeners = append(o.Listeners, state.Listener{Name: name, Event: event, Run: run})
	}
}

func onRequest(o *state.Options) { o.Listeners[len(o.Listeners)-1].OnRequest = true }

type archive struct {
	Messages []string `json:"messages"`
	EndedAt  string   `json:"endedAt"`
}

// AG-45, AG-46, AG-47, AG-48, AG-51, AG-87: a listener that three requests registered runs once
// when the state has expired, although no process listened then. It reads the values, which are
// cleared after it.
func TestListener_ArchivesBeforeTheStateIsCleared(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	s := open(t, listener("archive", state.ThreadDestroyed, func(ctx context.Context, e state.Event) error {
		runs.Add(1)
		messages, _, err := state.Get[[]string](ctx, e.Thread, "messages")
		if err != nil {
			return err
		}
		if e.Reason != "expired" || e.Type != "destroyed" || e.Key != e.Thread.ID+"/1/shop/archive" {
			t.Errorf("it is told %+v", e)
		}
		if err := e.Thread.Set(ctx, "late", 1); !refused(err, events.IllegalTransition) {
			t.Errorf("a value was set after the end: %v", err)
		}
		return state.KV(ctx).Set(ctx, "archives", e.Thread.ID, archive{messages, time.Now().UTC().Format(time.RFC3339)}, state.TTLSeconds(604_800))
	}), onRequest)
	chat := s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		ctx := r.Context()
		return errors.Join(state.Thread(ctx).AddEventListener(ctx, state.ThreadDestroyed, "archive"), state.Thread(ctx).Push(ctx, "messages", "hello"))
	})
	first := s.get(chat)
	for range 2 {
		s.get(chat, first.next()...)
	}
	quiet := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		return state.Thread(r.Context()).Push(r.Context(), "messages", "x")
	})
	if v := must(client.Read(t.Context(), s.client, events.GetState{ThreadID: quiet.id()}))(t); len(v.Listeners) > 0 {
		t.Errorf("%v listen to a thread for which no request registered them", v.Listeners)
	}
	s.skein.Advance(2 * time.Hour)
	if v := must(client.Read(t.Context(), s.client, events.GetState{ThreadID: first.id(), Life: 1}))(t); !v.Ended {
		t.Fatalf("the state has not ended: %+v", v)
	}
	listens(t, s.app)
	s.cleared(first.id())
	var kept archive
	s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		e, err := state.GetKV[archive](r.Context(), state.KV(r.Context()), "archives", first.id())
		kept = e.Data
		return err
	})
	if _, err := time.Parse(time.RFC3339, kept.EndedAt); err != nil || !slices.Equal(kept.Messages, []string{"hello", "hello", "hello"}) {
		t.Errorf("the archive has %+v: %v", kept, err)
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the listener ran %d times", n)
	}
}

// AG-34, AG-87: Destroy has listeners too. One that keeps failing, also by a panic, is given up, and its error is
// recorded; the values are cleared all the same.
func TestListener_GivenUpIsRecorded(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	s := open(t, listener("broken", state.ThreadDestroyed, func(context.Context, state.Event) error {
		if runs.Add(1) == 2 {
			panic("no memory")
		}
		return errors.New("the archive is full")
	}))
	listens(t, s.app)
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		ctx := r.Context()
		return errors.Join(state.Thread(ctx).Set(ctx, "a", 1), state.Thread(ctx).Destroy(ctx))
	})
	s.cleared(a.id())
	released := s.happened(a.id(), events.StateReleasedType)
	if len(released) != 1 || released[0].Data.(events.StateReleased).ErrorText != "the archive is full" || runs.Load() != 5 {
		t.Errorf("after %d runs it was released by %+v", runs.Load(), released)
	}
	if !strings.Contains(s.log.String(), "no memory") {
		t.Error("the panic is not logged")
	}
}

// AG-87: a process that stops in the middle of a listener leaves it to another one, which is told the same key.
func TestListener_AnotherProcessTakesOver(t *testing.T) {
	t.Parallel()
	begun, keys := make(chan struct{}), make(chan string, 2)
	var stuck atomic.Bool
	run := func(ctx context.Context, e state.Event) error {
		keys <- e.Key
		if stuck.CompareAndSwap(false, true) {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	s := open(t, listener("archive", state.ThreadDestroyed, run))
	stop := listens(t, s.app)
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		ctx := r.Context()
		return errors.Join(state.Thread(ctx).Set(ctx, "a", 1), state.Thread(ctx).Destroy(ctx))
	})
	<-begun
	stop()
	o := state.Options{Client: s.client, Keys: [][]byte{[]byte(key)}}
	listener("archive", state.ThreadDestroyed, run)(&o)
	listens(t, must(state.New(t.Context(), o))(t))
	s.cleared(a.id())
	if first, second := <-keys, <-keys; first != second {
		t.Errorf("the keys are %s and %s", first, second)
	}
	if d := s.happened(a.id(), events.StateReleasedType)[0].Data.(events.StateReleased); d.ErrorText != "" {
		t.Errorf("it was released with the error %s", d.ErrorText)
	}
}

// destroyed returns a visit whose state has been destroyed.
func (s *site) destroyed() answer {
	s.t.Helper()
	return s.on(func(ctx context.Context, th *state.ThreadScope) error {
		return errors.Join(th.Set(ctx, "a", 1), th.Destroy(ctx))
	})
}

// AG-87: a process that is killed in the middle of a listener leaves it to another one, which is
// told the same key, finds what the first run did elsewhere, and still reads the values.
func TestListener_ProcessIsKilled(t *testing.T) {
	t.Parallel()
	const variable = "SKEIN_LISTENER_NATS"
	half := func(ctx context.Context, e state.Event) error {
		return state.KV(ctx).Set(ctx, "archives", e.Thread.ID, archive{EndedAt: e.Key})
	}
	if url := os.Getenv(variable); url != "" { // the process that is killed
		nc := natstest.Dial(t, url)
		o := state.Options{Client: must(client.New(nc, client.Options{Tenant: "acme", Timeout: 5 * time.Minute}))(t), Keys: [][]byte{[]byte(key)}}
		listener("archive", state.ThreadDestroyed, func(ctx context.Context, e state.Event) error {
			if err := half(ctx, e); err != nil {
				return err
			}
			fmt.Println("half done")
			select {}
		})(&o)
		t.Fatal(must(state.New(t.Context(), o))(t).Listen(t.Context()))
	}
	ran := make(chan archive, 1)
	s := open(t, listener("archive", state.ThreadDestroyed, func(ctx context.Context, e state.Event) error {
		first, err := state.GetKV[archive](ctx, state.KV(ctx), "archives", e.Thread.ID)
		if err != nil {
			return err
		}
		if a, _, err := state.Get[int](ctx, e.Thread, "a"); a != 1 || err != nil {
			t.Errorf("the values are gone: %d, %v", a, err)
		}
		if first.Data.EndedAt != e.Key {
			t.Errorf("the first run had the key %q, and the second %q", first.Data.EndedAt, e.Key)
		}
		ran <- first.Data
		return nil
	}))
	a := s.destroyed()
	child := exec.CommandContext(t.Context(), must(os.Executable())(t), "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"="+s.skein.Addresses().NATS)
	out := bufio.NewScanner(must(child.StdoutPipe())(t))
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for out.Scan() && out.Text() != "half done" {
		t.Log(out.Text())
	}
	if err := child.Process.Kill(); err != nil { // kill -9
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	listens(t, s.app)
	// Its event is delivered again after 30 seconds, which need not be waited for here.
	timeline := must(must(jetstream.New(s.nc))(t).Stream(t.Context(), "SKEIN_TIMELINE"))(t)
	for {
		cfg := must(timeline.Consumer(t.Context(), s.consumers()[0]))(t).CachedInfo().Config
		cfg.AckWait = time.Second
		must(timeline.UpdateConsumer(t.Context(), cfg))(t)
		select {
		case <-ran:
			s.cleared(a.id())
			return
		case <-time.After(time.Second):
		}
		if len(s.happened(a.id(), events.StateClosedType)) > 0 && len(ran) == 0 {
			t.Fatal("the values are cleared, and no listener has run to its end")
		}
	}
}

// AG-87: of two processes that listen, one runs the listener for a state, and each state is released once.
func TestListener_TwoProcesses(t *testing.T) {
	t.Parallel()
	keys := make(chan string, 64)
	s := open(t, listener("archive", state.ThreadDestroyed, func(_ context.Context, e state.Event) error {
		keys <- e.Key
		return nil
	}))
	listens(t, s.app)
	listens(t, must(state.New(t.Context(), s.opts))(t))
	want := map[string]bool{}
	for range 8 {
		a := s.destroyed()
		s.cleared(a.id())
		want[a.id()+"/1/shop/archive"] = true
		if n := len(s.happened(a.id(), events.StateReleasedType)); n != 1 {
			t.Errorf("it was released %d times", n)
		}
	}
	for len(want) > 0 {
		delete(want, <-keys)
	}
}

// AG-87: a listener that has released a state does not run for it again, also if its consumer is
// lost and it sees all events again while another listener holds the values.
func TestListener_RunsOnceForALife(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	goOn := make(chan struct{})
	s := open(t, listener("archive", state.ThreadDestroyed, func(context.Context, state.Event) error {
		runs.Add(1)
		return nil
	}), listener("slow", state.ThreadDestroyed, func(ctx context.Context, _ state.Event) error {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return ctx.Err()
	}))
	stop := listens(t, s.app)
	a := s.destroyed()
	for len(s.happened(a.id(), events.StateReleasedType)) < 1 {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	timeline := must(must(jetstream.New(s.nc))(t).Stream(t.Context(), "SKEIN_TIMELINE"))(t)
	for _, name := range s.consumers() {
		if err := timeline.DeleteConsumer(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	listens(t, s.app)
	s.cleared(a.id())
	for _, name := range s.consumers() {
		for {
			info := must(must(timeline.Consumer(t.Context(), name))(t).Info(t.Context()))(t)
			if info.NumPending == 0 && info.NumAckPending == 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// A listener that does not end has failed when its time is over.
func TestListener_HasATimeout(t *testing.T) {
	t.Parallel()
	s := open(t, listener("slow", state.ThreadDestroyed, func(ctx context.Context, _ state.Event) error {
		<-ctx.Done()
		return ctx.Err()
	}), func(o *state.Options) { o.Listeners[0].Timeout = time.Millisecond })
	listens(t, s.app)
	a := s.destroyed()
	s.cleared(a.id())
	if d := s.happened(a.id(), events.StateReleasedType)[0].Data.(events.StateReleased); !strings.Contains(d.ErrorText, "has not returned after 1ms") {
		t.Errorf("it was released with the error %q", d.ErrorText)
	}
}

// An application that shuts down runs no more listeners, and its Listen ends. Another process
// runs them.
func TestListener_AfterShutdown(t *testing.T) {
	t.Parallel()
	ran, goOn := make(chan struct{}, 8), make(chan struct{})
	s := open(t, listener("archive", state.ThreadDestroyed, func(context.Context, state.Event) error {
		ran <- struct{}{}
		return nil
	}))
	listening, closing := make(chan error, 1), make(chan error, 1)
	go func() { listening <- s.app.Listen(t.Context()) }()
	s.on(func(ctx context.Context, _ *state.ThreadScope) error {
		return state.WaitUntil(ctx, func(context.Context) error { <-goOn; return nil })
	})
	go func() { closing <- s.app.Shutdown(t.Context()) }()
	for s.get(s.handle(nothing)).StatusCode != http.StatusServiceUnavailable { // until it has begun
	}
	id := state.NewThreadID()
	must(s.client.Send(t.Context(), id, events.MergeState{
		Operations: []events.StateOperation{{Op: events.SetOp, Key: "a", Value: events.JSON("1")}}, Create: true, Listeners: []string{"shop/archive"},
	}))(t)
	must(s.client.Send(t.Context(), id, events.DestroyState{}))(t)
	for !strings.Contains(s.log.String(), "delivered to its listener again") {
		if len(ran) > 0 {
			t.Fatal("a listener ran after Shutdown had begun")
		}
		time.Sleep(10 * time.Millisecond)
	}
	close(goOn)
	if err := <-closing; err != nil {
		t.Error(err)
	}
	if err := <-listening; err == nil || !strings.Contains(err.Error(), "shut down") {
		t.Errorf("Listen returned %v", err)
	}
	s.start()
	listens(t, s.app)
	s.cleared(id)
	if len(ran) != 1 {
		t.Errorf("the other process ran it %d times", len(ran))
	}
}

// The background work of a listener is a part of it: until it has ended, the values can be read.
func TestListener_WaitsForItsBackgroundWork(t *testing.T) {
	t.Parallel()
	read := make(chan string, 1)
	s := open(t, listener("archive", state.ThreadDestroyed, func(ctx context.Context, e state.Event) error {
		returned := make(chan struct{})
		defer close(returned)
		return state.WaitUntil(ctx, func(ctx context.Context) error {
			<-returned
			a, _, err := state.Get[int](ctx, e.Thread, "a")
			read <- fmt.Sprint(a, err)
			return nil
		})
	}))
	listens(t, s.app)
	s.cleared(s.destroyed().id())
	if got := <-read; got != "1 <nil>" {
		t.Errorf("the background work read %s", got)
	}
}

// What a run that failed has written is not saved, so that the next one does not write it twice.
func TestListener_FailedRunWritesNothing(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 1)
	failed := false
	s := open(t, listener("greet", state.ThreadCreated, func(ctx context.Context, e state.Event) error {
		err := e.Thread.Push(ctx, "greetings", "hello")
		if !failed {
			failed = true
			return errors.New("not yet")
		}
		ran <- e.Thread.ID
		return err
	}))
	listens(t, s.app)
	for len(s.consumers()) < 1 {
		time.Sleep(10 * time.Millisecond)
	}
	must(s.client.Send(t.Context(), "", events.CreateThread{}))(t)
	id := <-ran
	s.drain() // which waits for the run
	if got := s.values(id); got != `{"greetings":["hello"]}` {
		t.Errorf("the state is %s", got)
	}
}

// A listener that the state has already costs nothing to register again.
func TestListener_RegisteredAgain(t *testing.T) {
	t.Parallel()
	s := open(t, listener("archive", state.ThreadDestroyed, func(context.Context, state.Event) error { return nil }), onRequest)
	register := s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		ctx, th := r.Context(), state.Thread(r.Context())
		has, err := th.Has(ctx, "a")
		if err == nil {
			err = th.AddEventListener(ctx, state.ThreadDestroyed, "archive")
		}
		if !th.Dirty() {
			t.Error("the listener is not to be saved")
		}
		err = errors.Join(err, th.Save(ctx))
		if th.Dirty() || has {
			t.Errorf("after Save it is dirty %v, with a value %v", th.Dirty(), has)
		}
		return err
	})
	first := s.get(register)
	s.settle() // its session ends after its response
	if n := s.sent(func() { s.get(register, first.next()...); s.settle() }); n != 1 {
		t.Errorf("to register it again took %d messages, besides the read", n-1)
	}
	v := must(client.Read(t.Context(), s.client, events.GetState{ThreadID: first.id()}))(t)
	if string(v.Values) != "{}" || !slices.Equal(v.Listeners, []string{"shop/archive"}) {
		t.Errorf("the state is %+v", v)
	}
}

// AG-50: an application listens to all threads and sessions of its tenant, also those of others. What
// a listener writes is no session, so that it does not listen to itself.
func TestListener_OfAllThreads(t *testing.T) {
	t.Parallel()
	received := make(chan state.Event, 16)
	tell := func(ctx context.Context, e state.Event) error {
		if e.Type == state.SessionStarted {
			if err := e.Thread.Set(ctx, "seen", true); err != nil {
				return err
			}
		}
		received <- e
		return nil
	}
	s := open(t, listener("made", state.ThreadCreated, tell), listener("began", state.SessionStarted, tell), listener("over", state.SessionCompleted, tell))
	stop := listens(t, s.app)
	for len(s.consumers()) < 3 {
		time.Sleep(10 * time.Millisecond)
	}
	other := must(s.client.Send(t.Context(), "", events.CreateThread{}))(t).ThreadID
	must(s.client.Send(t.Context(), other, events.StartSession{SessionID: "sess_1"}))(t)
	must(s.client.Send(t.Context(), other, events.CompleteSession{SessionID: "sess_1", ErrorText: "no"}))(t)
	failed := false
	for range 3 {
		e := <-received
		failed = failed || e.Type == state.SessionCompleted && e.Thread.ID == other && e.SessionID == "sess_1" && e.ErrorText == "no"
	}
	if !failed {
		t.Error("the session that failed was not listened to")
	}
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		return state.Thread(r.Context()).Set(r.Context(), "a", 1)
	})
	got := map[state.EventType]state.Event{}
	for len(got) < 3 {
		e := <-received
		got[e.Type] = e
	}
	if began, over := got[state.SessionStarted], got[state.SessionCompleted]; began.SessionID == "" || began.SessionID != over.SessionID || over.Outcome != events.SessionDone {
		t.Errorf("the session is %+v, then %+v", began, over)
	}
	stop()
	if n := len(s.happened(a.id(), events.SessionStartedType)); n != 1 {
		t.Errorf("%d sessions started on the thread", n)
	}
}

// AG-4, AG-5, AG-53: a request that writes is a session, whose start and end are in the commit of its writes. The next
// request of the thread is another session.
func TestSession_IsInTheCommitOfItsWrites(t *testing.T) {
	t.Parallel()
	s := open(t)
	var sessions []string
	write := s.handle(func(w http.ResponseWriter, r *http.Request) error {
		sessions = append(sessions, state.Session(r.Context()).ID)
		return state.Thread(r.Context()).Push(r.Context(), "messages", "hello")
	})
	first := s.get(write)
	s.get(write, first.next()...)
	s.drain()
	var logged []string
	for _, e := range s.happened(first.id(), events.SessionStartedType, events.StateChangedType, events.SessionCompletedType) {
		logged = append(logged, string(e.Type)+" "+strings.TrimPrefix(e.Subject, "ctx_")[:4])
	}
	if len(sessions) != 2 || sessions[0] == sessions[1] || !events.ValidSessionID(sessions[0]) || len(logged) != 6 ||
		!strings.HasPrefix(logged[0], "session.started") || !strings.HasPrefix(logged[1], "state.changed") || !strings.HasPrefix(logged[2], "session.completed") {
		t.Errorf("sessions %v logged %v", sessions, logged)
	}
}

// A session ends with its background work, also if that writes nothing.
func TestSession_EndsAfterItsBackgroundWork(t *testing.T) {
	t.Parallel()
	s := open(t)
	work := make(chan struct{})
	a := s.on(func(ctx context.Context, th *state.ThreadScope) error {
		return errors.Join(th.Set(ctx, "a", 1), state.WaitUntil(ctx, func(context.Context) error { <-work; return nil }))
	})
	if n := len(s.happened(a.id(), events.SessionCompletedType)); n != 0 {
		t.Error("the session has completed before its work")
	}
	close(work)
	s.drain()
	if n := len(s.happened(a.id(), events.SessionCompletedType)); n != 1 {
		t.Errorf("the session has completed %d times", n)
	}
}

// AG-13, AG-15, AG-49: a listener to the end of a session runs after the response and the background work. It
// reads the session's state, and what it writes to the thread is saved.
func TestSession_ListenersRunAtItsEnd(t *testing.T) {
	t.Parallel()
	s := open(t)
	work := make(chan struct{})
	var order []string
	a := s.visit(func(w http.ResponseWriter, r *http.Request) error {
		ctx := r.Context()
		session := state.Session(ctx)
		if err := session.AddEventListener("completed", func(ctx context.Context, event string, of *state.SessionScope) error {
			order = append(order, event)
			v, _ := state.Value[string](of.State, "who")
			return of.Thread.Set(ctx, "who", v)
		}); err != nil {
			return err
		}
		if err := session.AddEventListener("completed", func(context.Context, string, *state.SessionScope) error { panic("it broke") }); err != nil {
			return err
		}
		if err := session.AddEventListener("started", nil); !refused(err, events.InvalidRequest) {
			t.Errorf("a listener to nothing: %v", err)
		}
		return errors.Join(session.State.Set("who", "Ada"), state.Thread(ctx).Set(ctx, "a", 1), state.WaitUntil(ctx, func(context.Context) error {
			<-work
			order = append(order, "work")
			return nil
		}))
	})
	if a.StatusCode != http.StatusOK {
		t.Errorf("answered %d", a.StatusCode)
	}
	close(work)
	s.drain()
	if !slices.Equal(order, []string{"work", "completed"}) || s.values(a.id()) != `{"a":1,"who":"Ada"}` {
		t.Errorf("ran %v, and the state is %s", order, s.values(a.id()))
	}
	done := s.happened(a.id(), events.SessionCompletedType)
	if len(done) != 1 || !strings.Contains(s.log.String(), "it broke") {
		t.Errorf("%d ends of the session; the log is\n%s", len(done), s.log)
	}
}

// What cannot be listened to is refused when the application starts, or the request registers it.
func TestListener_Refusals(t *testing.T) {
	t.Parallel()
	none := func(context.Context, state.Event) error { return nil }
	var tooMany []state.Listener
	for i := range 17 {
		tooMany = append(tooMany, state.Listener{Name: "a" + strconv.Itoa(i), Event: state.ThreadDestroyed, Run: none})
	}
	for name, list := range map[string][]state.Listener{
		"no name":          {{Event: state.ThreadCreated, Run: none}},
		"a name with a /":  {{Name: "a/b", Event: state.ThreadCreated, Run: none}},
		"two of one name":  {{Name: "a", Event: state.ThreadCreated, Run: none}, {Name: "a", Event: state.ThreadDestroyed, Run: none}},
		"no such event":    {{Name: "a", Event: "deleted", Run: none}},
		"no function":      {{Name: "a", Event: state.ThreadCreated}},
		"not of a request": {{Name: "a", Event: state.ThreadCreated, Run: none, OnRequest: true}},
		"no time":          {{Name: "a", Event: state.ThreadCreated, Run: none, Timeout: -1}},
		"too many":         tooMany,
	} {
		o := state.Options{Client: &client.Client{}, Development: true, Name: "shop", Listeners: list}
		if _, err := state.New(t.Context(), o); !refused(err, events.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := open(t)
	s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		if err := state.Thread(r.Context()).AddEventListener(r.Context(), state.ThreadDestroyed, "unknown"); !refused(err, events.InvalidRequest) {
			t.Errorf("an unknown listener: %v", err)
		}
		if err := state.Session(r.Context()).AddEventListener("completed", nil); !refused(err, events.InvalidRequest) {
			t.Errorf("a listener without a function: %v", err)
		}
		return nil
	})
}
