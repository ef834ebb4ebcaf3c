package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// logOf returns the name of the log, as answers have it.
func (s *site) logOf() string {
	s.t.Helper()
	return s.ask("POST", "/api/queries/history.get", `{}`).want(http.StatusOK).text("log")
}

// A reader whose position lies beyond the end of the log, or in another log, is told so at once,
// wherever it asks. Without a name of a log a position may be of any.
func TestPosition_AheadIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	s.say(thread)
	words := s.speaker("echo")
	run := s.ask("POST", thread+"/react", `{"agentId":"echo","text":"hello"}`).want(http.StatusAccepted).text("executionId")
	words <- "one "
	following := s.stream("GET", thread+"/chunks?execution="+run, "")
	chunks := following.until("text-delta")
	log := s.logOf()
	const other = "r0therlog"
	chunk := fmt.Sprint(chunks[len(chunks)-1].Index)
	ahead := fmt.Sprint(chunks[len(chunks)-1].Index + 1) // not written yet

	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
	}{
		{"events, header", "GET", thread + "/events", "", []string{"Last-Event-ID", "900"}},
		{"events, parameter", "GET", thread + "/events?from=900", "", []string{"Accept", "text/event-stream"}},
		{"events, only some types", "GET", thread + "/events?types=note.added", "", []string{"Last-Event-ID", "900"}},
		{"events of another log", "GET", thread + "/events", "", []string{"Last-Event-ID", "1", "Skein-Log", other}},
		{"events of another log, from its start", "GET", thread + "/events?log=" + other, "", []string{"Accept", "text/event-stream"}},
		{"a page", "GET", thread + "/events?from=900&limit=2", "", nil},
		{"a page of another log", "GET", thread + "/events?from=1&limit=2&log=" + other, "", nil},
		{"event.list", "POST", "/api/queries/event.list", `{"threadId":"` + id(thread) + `","fromVersion":900}`, nil},
		{"event.list beyond what is bisected", "POST", "/api/queries/event.list", `{"threadId":"` + id(thread) + `","fromVersion":90000}`, nil},
		{"event.list of another log", "POST", "/api/queries/event.list", `{"threadId":"` + id(thread) + `","log":"` + other + `"}`, nil},
		{"history.list", "POST", "/api/queries/history.list", `{"fromSeq":900}`, nil},
		{"history.list of another log", "POST", "/api/queries/history.list", `{"fromSeq":1,"log":"` + other + `"}`, nil},
		{"the tenant's events", "GET", "/api/events", "", []string{"Last-Event-ID", "900.0"}},
		{"the tenant's events, a sequence", "GET", "/api/events?from=900", "", nil},
		{"the tenant's events of another log", "GET", "/api/events", "", []string{"Last-Event-ID", "1.0." + other}},
		{"the tenant's events of another log, header", "GET", "/api/events", "", []string{"Last-Event-ID", "1.0", "Skein-Log", other}},
		{"chunks", "GET", thread + "/chunks?execution=" + run, "", []string{"Last-Event-ID", ahead}},
		{"chunks of the current run", "GET", thread + "/chunks", "", []string{"Last-Event-ID", ahead}},
		{"chunks of another log", "GET", thread + "/chunks?execution=" + run, "", []string{"Last-Event-ID", chunk, "Skein-Log", other}},
	} {
		s.ask(c.method, c.path, c.body, c.headers...).problem(http.StatusConflict, "position_ahead", "")
		if t.Failed() {
			t.Fatalf("%s", c.name)
		}
	}

	for _, frame := range []string{
		`{"type":"watch","id":7,"what":["events"],"from":900}`,
		`{"type":"watch","id":7,"what":["events"],"from":1,"log":"` + other + `"}`,
		`{"type":"watch","id":7,"what":["chunks","thread"],"log":"` + other + `"}`,
	} {
		w := s.dial(thread)
		w.send(frame)
		if g := w.next(); g.Type != "error" || g.Code != "position_ahead" || fmt.Sprint(g.ID) != "7" {
			t.Errorf("%s: %+v", frame, g)
		}
		w.send(`{"type":"watch","what":["events"],"from":1,"log":"` + log + `"}`) // the socket serves on
		if g := w.next(); g.Event.Threadversion != 2 {
			t.Errorf("%s, then watched again: %+v", frame, g)
		}
	}

	// What is at the end waits for what follows.
	version := s.version(thread)
	atEnd := []*sse{
		s.stream("GET", thread+"/events", "", "Last-Event-ID", version),
		s.stream("GET", thread+"/events?from=0&log="+log, "", "Last-Event-ID", version, "Skein-Log", log),
	}
	tenant := s.stream("GET", "/api/events?from=0", "")
	first, _ := tenant.next()
	if !strings.HasSuffix(first.id, ".0."+log) || tenant.r.Header.Get("Skein-Log") != log {
		t.Errorf("the id of an event of the tenant is %s, and the log is %s (%s)", first.id, log, tenant.r.Header.Get("Skein-Log"))
	}
	for _, position := range []string{first.id, strings.TrimSuffix(first.id, "."+log)} {
		again := s.stream("GET", "/api/events", "", "Last-Event-ID", position)
		if e, _ := again.next(); e.id == first.id || !strings.HasSuffix(e.id, "."+log) {
			t.Errorf("after %s: %+v", position, e)
		}
	}
	close(words)
	for i, in := range atEnd {
		if e, more := in.next(); !more || in.r.Header.Get("Skein-Log") != log {
			t.Errorf("reader %d at the end: %+v, log %s", i, e, in.r.Header.Get("Skein-Log"))
		}
	}
	following.until("finish")

	// The stream of a run that has ended ends for every reader.
	if e, more := s.stream("GET", thread+"/chunks?execution="+run, "", "Last-Event-ID", "900").next(); more {
		t.Errorf("the end of a run for a reader that is ahead: %+v", e)
	}
	s.ask("GET", thread+"/events?log=a.b", "", "Accept", "text/event-stream").problem(http.StatusBadRequest, "invalid_request", "log")
	s.ask("GET", "/api/events?from=1.0.*", "").problem(http.StatusBadRequest, "invalid_request", "from")
}
