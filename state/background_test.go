package state_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/state"
)

// The response does not wait for background work, whose writes are saved when it ends; Shutdown
// waits for it, and refuses requests.
func TestWaitUntil_OutlivesTheResponse(t *testing.T) { // AG-37 AG-39
	t.Parallel()
	s := open(t)
	goOn := make(chan struct{})
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		return errors.Join(state.Request(r.Context()).Set("n", 1), state.WaitUntil(r.Context(), func(ctx context.Context) error {
			<-goOn
			n, _ := state.Value[int](state.Request(ctx), "n")
			err := state.Thread(ctx).Set(ctx, "n", n)
			return errors.Join(err, ctx.Err(), state.WaitUntil(ctx, func(ctx context.Context) error { // more work of the work
				return state.Thread(ctx).Push(ctx, "list", 1)
			}))
		}))
	})
	if a.StatusCode != http.StatusOK {
		t.Fatalf("it is answered with %d %s", a.StatusCode, a.body)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	unfinished := (*state.UnfinishedError)(nil)
	if err := s.other().Shutdown(over); err != nil {
		t.Errorf("an application with nothing to do: %v", err)
	}
	closing := make(chan error, 1)
	go func() { closing <- s.app.Shutdown(t.Context()) }()
	for s.get(s.handle(nothing)).StatusCode != http.StatusServiceUnavailable { // until it has begun
	}
	select {
	case err := <-closing:
		t.Errorf("Shutdown has not waited: %v", err)
	default:
	}
	close(goOn)
	if err := <-closing; err != nil || errors.As(err, &unfinished) {
		t.Errorf("Shutdown: %v", err)
	}
	if got := s.values(a.id()); got != `{"n":1,"list":[1]}` {
		t.Errorf("the state is %s", got)
	}
	if err := s.app.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown, again: %v", err)
	}
}

// other returns another application on the same server.
func (s *site) other() *state.App {
	return must(state.New(s.t.Context(), state.Options{Client: s.client, Development: true}))(s.t)
}

// Shutdown that has no more time ends the contexts of what is still in progress, and says how
// much that is.
func TestShutdown_HasNoMoreTime(t *testing.T) {
	t.Parallel()
	s := open(t)
	ended := make(chan error, 1)
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		return state.WaitUntil(r.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return state.Thread(ctx).Set(ctx, "ended", true) // is saved all the same
		})
	})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.app.Shutdown(over)
	unfinished := (*state.UnfinishedError)(nil)
	if !errors.As(err, &unfinished) || unfinished.Count != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "shut down") {
		t.Errorf("the work's context ended with %v", err)
	}
	s.drain()
	if got := s.values(a.id()); got != `{"ended":true}` {
		t.Errorf("the state is %s", got)
	}
}

// An error or panic of background work is logged and recorded with session and thread, and what
// the work has written is saved. The response has left.
func TestWaitUntil_Fails(t *testing.T) { // AG-88
	t.Parallel()
	s := open(t)
	session := ""
	for name, f := range map[string]func(context.Context) error{
		"an error":                  func(context.Context) error { return errors.New("an error") },
		"a panic":                   func(context.Context) error { panic("a panic") },
		"whose text cannot be read": func(context.Context) error { return (*state.OutputError)(nil) },
	} {
		a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
			session = state.Session(r.Context()).ID
			err := state.Thread(r.Context()).Set(r.Context(), "a", 1)
			return errors.Join(err, state.WaitUntil(r.Context(), func(ctx context.Context) error {
				if err := state.Thread(ctx).Set(ctx, "b", 1); err != nil {
					t.Error(err)
				}
				return f(ctx)
			}))
		})
		s.settle()
		id := a.id()
		line := must(client.Read(t.Context(), must(s.client.UpToDate(t.Context()))(t), events.ListLogs{ThreadID: id}))(t).Logs[0]
		if a.StatusCode != http.StatusOK || !strings.Contains(line.Message, name) || line.Level != events.LogError || !strings.Contains(string(line.Data), session) {
			t.Errorf("%s: %d, and the record %+v", name, a.StatusCode, line)
		}
		if log := s.log.String(); !strings.Contains(log, name) || !strings.Contains(log, session) || !strings.Contains(log, id) {
			t.Errorf("%s: the log is %s", name, log)
		}
		if got := s.values(id); got != `{"a":1,"b":1}` {
			t.Errorf("%s: the state is %s", name, got)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "background_test.go") {
		t.Errorf("a panic is logged without its place: %s", log)
	}
	// Without state there is no thread to record it on.
	s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		return state.WaitUntil(r.Context(), func(context.Context) error { panic(errors.New("no thread")) })
	})
	s.drain()
	if log := s.log.String(); !strings.Contains(log, "no thread") || strings.Contains(log, "not recorded") {
		t.Errorf("the log is %s", log)
	}
}

// Background work that fails before the request has saved anything is recorded, too: the thread
// is created for it. The request goes on until the record has been answered.
func TestWaitUntil_FailsFirst(t *testing.T) {
	t.Parallel()
	s := open(t)
	spy := natstest.Dial(t, s.skein.Addresses().NATS)
	t.Cleanup(spy.Close)
	asked, answered := must(spy.SubscribeSync("skein.cmd.acme.trace.record"))(t), must(spy.SubscribeSync("_INBOX.>"))(t)
	if err := spy.Flush(); err != nil {
		t.Fatal(err)
	}
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		err := state.Thread(r.Context()).Set(r.Context(), "a", 1)
		err = errors.Join(err, state.WaitUntil(r.Context(), func(context.Context) error { return errors.New("an error") }))
		record := must(asked.NextMsgWithContext(t.Context()))(t)
		for {
			if reply := must(answered.NextMsgWithContext(t.Context()))(t); reply.Subject == record.Reply {
				return err
			}
		}
	})
	logs := must(client.Read(t.Context(), must(s.client.UpToDate(t.Context()))(t), events.ListLogs{ThreadID: a.id()}))(t).Logs
	if len(logs) != 1 || !strings.Contains(logs[0].Message, "an error") {
		t.Errorf("%+v", logs)
	}
}

// What outlives its request without WaitUntil is told so; nothing is accepted and lost.
func TestWaitUntil_AfterTheEnd(t *testing.T) { // AG-11
	t.Parallel()
	s := open(t)
	var kept context.Context
	s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		kept = context.WithoutCancel(r.Context())
		return nil
	})
	s.drain()
	th := state.Thread(kept)
	_, _, get := state.Get[int](kept, th, "a")
	for name, err := range map[string]error{
		"WaitUntil": state.WaitUntil(kept, func(context.Context) error { return nil }), "Set": th.Set(kept, "a", 1), "Push": th.Push(kept, "a", 1), "Clear": th.Clear(kept),
		"Get": get, "Destroy": th.Destroy(kept), "request": state.Request(kept).Set("a", 1), "session": state.Session(kept).State.Set("a", 1),
	} {
		if ended := (*state.EndedError)(nil); !errors.As(err, &ended) || ended.SessionID != state.Session(kept).ID {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A context of no request is a mistake that shows at once.
func TestContext_OfNoRequest(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"Thread": func() { state.Thread(t.Context()) }, "Session": func() { state.Session(t.Context()) }, "Request": func() { state.Request(t.Context()) },
		"KV": func() { state.KV(t.Context()) }, "Logger": func() { state.Logger(t.Context()) }, "WaitUntil": func() { _ = state.WaitUntil(t.Context(), nil) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "Middleware") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			f()
		}()
	}
}
