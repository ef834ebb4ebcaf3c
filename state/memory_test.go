package state_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/state"
)

// Each request is a session of its own, whose values and whose request's values start empty and
// are gone at its end. Those of the request are any Go values.
func TestRequest_StateIsOfOneRequest(t *testing.T) { // AG-1 AG-2 AG-5 AG-6 AG-10 AG-11 AG-14 AG-53
	t.Parallel()
	s := open(t)
	sessions := map[string]bool{}
	var request *state.Memory
	var session *state.SessionScope
	path := s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		request, session = state.Request(r.Context()), state.Session(r.Context())
		sessions[session.ID] = true
		if request.Size() != 0 || session.State.Size() != 0 || request.Has("startTime") {
			t.Errorf("a new request has %v and %v", request.Keys(), session.State.Keys())
		}
		start := time.Now()
		err := errors.Join(request.Set("startTime", start), request.Set("f", func() {}), request.Set("b", 1), session.State.Set("a", 1))
		got, ok := state.Value[time.Time](request, "startTime")
		if !ok || !got.Equal(start) || fmt.Sprint(request.Keys()) != "[b f startTime]" {
			t.Errorf("startTime is %v, of %v", got, request.Keys())
		}
		if _, ok := state.Value[string](request, "b"); ok {
			t.Error("a number is a text")
		}
		request.Delete("b")
		if _, ok := request.Get("b"); ok || request.Size() != 2 {
			t.Error("what was deleted is there")
		}
		return err
	})
	first := s.get(path)
	second := s.get(path, first.next()...)
	s.drain()
	if first.id() != second.id() || len(sessions) != 2 {
		t.Errorf("two requests of %s and %s are the sessions %v", first.id(), second.id(), sessions)
	}
	for id := range sessions {
		if !regexp.MustCompile(`^sess_[0-9a-f]{32}$`).MatchString(id) {
			t.Errorf("a session is %s", id)
		}
	}
	if request.Size() != 0 || session.State.Size() != 0 {
		t.Errorf("after the request there are %v and %v", request.Keys(), session.State.Keys())
	}
}

// The state of a session is at most 1 MiB of JSON, and what is not is refused whole.
func TestSession_StateIsLimited(t *testing.T) { // AG-74 C-16 C-17
	t.Parallel()
	s := open(t)
	half := strings.Repeat("x", 512<<10)
	s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		m := state.Session(r.Context()).State
		if err := m.Set("f", func() {}); !refused(err, events.InvalidRequest) || !strings.Contains(err.Error(), `"f"`) {
			t.Errorf("a function: %v", err)
		}
		err := m.Set("a", half)
		if err := m.Set("b", half); !refused(err, events.PayloadTooLarge) || m.Has("b") || !m.Has("a") {
			t.Errorf("over the limit: %v, %v", err, m.Keys())
		}
		err = errors.Join(err, m.Set("a", half), m.Set("a", "small"), m.Set("b", half)) // what is replaced does not count
		m.Delete("b")
		err = errors.Join(err, m.Set("c", half))
		m.Clear()
		err = errors.Join(err, m.Set("d", half), state.Request(r.Context()).Set("a", strings.Repeat("x", 2<<20)))
		if fmt.Sprint(m.Keys()) != "[d]" {
			t.Errorf("the keys are %v", m.Keys())
		}
		return err
	})
}

// The lines of a request's logger name session and thread.
func TestLogger_NamesSessionAndThread(t *testing.T) { // AG-9 AG-53
	t.Parallel()
	s := open(t)
	session := ""
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		session = state.Session(r.Context()).ID
		state.Logger(r.Context()).InfoContext(r.Context(), "Request completed", "durationMs", 12)
		return nil
	})
	want := fmt.Sprintf(`"msg":"Request completed","sessionId":%q,"threadId":%q,"durationMs":12`, session, a.id())
	if !strings.Contains(s.log.String(), want) {
		t.Errorf("the log is %s", s.log)
	}
}
