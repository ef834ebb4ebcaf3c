package state_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
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
	list := must(c.ListEvents(s.t.Context(), q))(s.t)
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
		if err := <-done; !errors.Is(err, context.Canceled) {
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

func listener(name string, event state.Event, run func(context.Context, state.Happening) error) func(*state.Options) {
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
	var runs atomic.Int32
	s := open(t, listener("archive", state.ThreadDestroyed, func(ctx context.Context, h state.Happening) error {
		runs.Add(1)
		messages, _, err := state.Get[[]string](ctx, h.Thread, "messages")
		if err != nil {
			return err
		}
		if h.Reason != "expired" || h.Event != "destroyed" || h.Key != h.Thread.ID+"/1/shop/archive" {
			t.Errorf("it is told %+v", h)
		}
		if err := h.Thread.Set(ctx, "late", 1); !refused(err, events.IllegalTransition) {
			t.Errorf("a value was set after the end: %v", err)
		}
		return state.KV(ctx).Set(ctx, "archives", h.Thread.ID, archive{messages, time.Now().UTC().Format(time.RFC3339)}, state.TTLSeconds(604_800))
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
	s.skein.Advance(2 * time.Hour)
	if v := must(client.Read[events.StateValues](t.Context(), s.client, events.GetState{ThreadID: first.id(), Life: 1}))(t); !v.Ended {
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
	if n := len(s.happened(quiet.id(), events.StateReleasedType)); n != 0 {
		t.Error("a thread for which no request registered it was listened to")
	}
}

// AG-34, AG-87: Destroy has listeners too. One that keeps failing, also by a panic, is given up, and its error is
// recorded; the values are cleared all the same.
func TestListener_GivenUpIsRecorded(t *testing.T) {
	var runs atomic.Int32
	s := open(t, listener("broken", state.ThreadDestroyed, func(context.Context, state.Happening) error {
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
	begun, keys := make(chan struct{}), make(chan string, 2)
	var stuck atomic.Bool
	run := func(ctx context.Context, h state.Happening) error {
		keys <- h.Key
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

// AG-50: an application listens to all threads and sessions of its tenant, also those of others. What
// a listener writes is no session, so that it does not listen to itself.
func TestListener_OfAllThreads(t *testing.T) {
	heard := make(chan state.Happening, 16)
	tell := func(ctx context.Context, h state.Happening) error {
		if h.Event == state.SessionStarted {
			if err := h.Thread.Set(ctx, "seen", true); err != nil {
				return err
			}
		}
		heard <- h
		return nil
	}
	s := open(t, listener("made", state.ThreadCreated, tell), listener("began", state.SessionStarted, tell), listener("over", state.SessionCompleted, tell))
	stop := listens(t, s.app)
	// The consumers exist once the first event is heard; before that, threads are made again.
	made := map[string]bool{}
	for len(made) < 3 {
		id := must(s.client.CreateThread(t.Context(), events.CreateThread{}))(t).ThreadID
		must(client.Send(t.Context(), s.client, id, events.StartSession{SessionID: "sess_1"}))(t)
		must(client.Send(t.Context(), s.client, id, events.CompleteSession{SessionID: "sess_1", ErrorText: "no"}))(t)
		for wait := time.After(time.Second); wait != nil && len(made) < 3; {
			select {
			case h := <-heard:
				made[string(h.Event)] = true
			case <-wait:
				wait = nil
			}
		}
	}
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		return state.Thread(r.Context()).Set(r.Context(), "a", 1)
	})
	got := map[state.Event]state.Happening{}
	for len(got) < 3 {
		if h := <-heard; h.Thread.ID == a.id() {
			got[h.Event] = h
		}
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

// AG-13, AG-15, AG-49: a listener to the end of a session runs after the response and the background work. It
// reads the session's state, and what it writes to the thread is saved.
func TestSession_ListenersRunAtItsEnd(t *testing.T) {
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
	none := func(context.Context, state.Happening) error { return nil }
	for name, list := range map[string][]state.Listener{
		"no name":          {{Event: state.ThreadCreated, Run: none}},
		"a name with a /":  {{Name: "a/b", Event: state.ThreadCreated, Run: none}},
		"two of one name":  {{Name: "a", Event: state.ThreadCreated, Run: none}, {Name: "a", Event: state.ThreadDestroyed, Run: none}},
		"no such event":    {{Name: "a", Event: "deleted", Run: none}},
		"no function":      {{Name: "a", Event: state.ThreadCreated}},
		"not of a request": {{Name: "a", Event: state.ThreadCreated, Run: none, OnRequest: true}},
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
		return nil
	})
}
