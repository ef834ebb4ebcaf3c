package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// counted returns the numbers from one to another as text.
func counted(from, to int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		if n > from {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

func TestThreadEvents_FromTheBeginningAndLive(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	s.say(thread)
	in := s.stream("GET", thread+"/events", "")
	first := in.take(3)
	if ids(first) != "1 2 3" || first[0].name != "thread.created" || first[2].name != "item.created" {
		t.Fatalf("the first events: %+v", first)
	}
	var cloud struct {
		Type          string
		Threadversion int64
		Threadid      string
	}
	if err := json.Unmarshal([]byte(first[2].data), &cloud); err != nil || cloud.Type != "item.created" || cloud.Threadversion != 3 || cloud.Threadid != id(thread) {
		t.Errorf("the event: %s (%v)", first[2].data, err)
	}
	s.say(thread)
	if live := in.take(1); live[0].id != "4" {
		t.Errorf("the live event: %+v", live)
	}
	if h := in.r.Header; h.Get("X-Accel-Buffering") != "no" || h.Get("Skein-Request-Id") == "" {
		t.Errorf("headers: %v", h)
	}
}

// A reader resumes from any version, as its header or parameter says: what it has seen last.
func TestThreadEvents_Resume(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	for range 8 {
		s.say(thread)
	}
	for _, c := range []struct{ path, last, want string }{
		{"/events", "", counted(1, 10)},
		{"/events?from=0", "", counted(1, 10)},
		{"/events?from=7", "", counted(8, 10)},
		{"/events", "9", "10"},
		{"/events?from=2", "5", counted(6, 10)}, // the header is newer than the address
		{"/events?from=0&types=item.*", "", counted(3, 10)},
		{"/events?types=thread.created,context.*&from=0", "", "1 2"},
	} {
		in := s.stream("GET", thread+c.path, "", "Last-Event-ID", c.last)
		n := len(strings.Fields(c.want))
		if got := ids(in.take(n)); got != c.want {
			t.Errorf("%s after %q: %s, want %s", c.path, c.last, got, c.want)
		}
		in.close()
	}
	for _, bad := range []string{"from=-1", "from=x", "from=1.5", "from=99999999999999999999", "types=*.created", "types=%3E", "since=1"} {
		s.ask("GET", thread+"/events?"+bad, "").want(http.StatusBadRequest)
	}
	s.ask("GET", thread+"/events", "", "Last-Event-ID", "abc").problem(http.StatusBadRequest, "invalid_request", "Last-Event-ID")
}

func TestThreadEvents_AsJSON(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	for range 3 {
		s.say(thread)
	}
	var page struct {
		Events      []struct{ Threadversion int64 }
		NextVersion int64
	}
	s.ask("GET", thread+"/events?from=1&limit=2", "", "Accept", "application/json").want(http.StatusOK).to(&page)
	if len(page.Events) != 2 || page.Events[0].Threadversion != 2 || page.NextVersion != 4 {
		t.Errorf("the page: %+v", page)
	}
	s.ask("GET", thread+"/events?limit=2", "", "Accept", "text/html,*/*;q=0.8").want(http.StatusOK).to(&page) // a link in a browser
	if len(page.Events) != 2 {
		t.Errorf("the page of a link: %+v", page)
	}
	s.ask("GET", thread+"/events?limit=2", "", "Accept", "text/event-stream").problem(http.StatusBadRequest, "invalid_request", "limit")
	s.ask("GET", thread+"/events?limit=0", "", "Accept", "application/json").problem(http.StatusBadRequest, "invalid_request", "limit")
	for _, path := range []string{"/events?from=1&toVersion=3", "/events?from=1&toVersion=3&limit=3"} {
		page.NextVersion = 0
		s.ask("GET", thread+path, "").want(http.StatusOK).to(&page)
		if len(page.Events) != 2 || page.Events[1].Threadversion != 3 || page.NextVersion != 0 {
			t.Errorf("%s: %+v", path, page)
		}
	}
	s.ask("GET", thread+"/events?toVersion=3", "", "Accept", "text/event-stream").problem(http.StatusBadRequest, "invalid_request", "toVersion")
	for _, wrong := range []string{"0", "-1", "x", "1.5"} {
		s.ask("GET", thread+"/events?toVersion="+wrong, "").problem(http.StatusBadRequest, "invalid_request", "toVersion")
	}
}

// While events are written as fast as they can be, many readers begin, resume and filter, and
// each sees every event that it asked for once, in order.
func TestThreadEvents_ExactWhileWritten(t *testing.T) {
	t.Parallel()
	const writes, readers = 600, 24
	s := start(t)
	thread := s.thread()
	c := s.Client("acme")
	var writing, reading sync.WaitGroup
	failed := make(chan error, readers+1)
	writing.Go(func() {
		for i := range writes {
			item := events.UserText(fmt.Sprintf("%d", i))
			if _, err := c.Send(context.Background(), id(thread), events.CreateItem{Item: item}); err != nil {
				failed <- err
				return
			}
		}
	})
	last := writes + 2
	for n := range readers {
		reading.Go(func() {
			seen := 0
			for part := 0; seen < last; part++ {
				path := fmt.Sprintf("%s%s/events?from=%d", s.url, thread, seen)
				if n%3 == 2 {
					path += "&types=item.created,thread.*,context.*"
				}
				err := readSome(path, &seen, last, 10+37*n*part)
				if err != nil {
					failed <- fmt.Errorf("reader %d after %d: %w", n, seen, err)
					return
				}
			}
		})
	}
	writing.Wait()
	reading.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
}

// readSome reads a stream whose ids follow one another from *seen on, until last or until it
// has read most of them.
func readSome(path string, seen *int, last, most int) error {
	req, err := http.NewRequest("GET", path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Skein-Tenant", "acme")
	r, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", r.StatusCode)
	}
	in := newSSE(r)
	for range most {
		e, ok := in.next()
		if !ok {
			return fmt.Errorf("the stream ended: %w", in.scan.Err())
		}
		if e.id != strconv.Itoa(*seen+1) {
			return fmt.Errorf("got %s after %d", e.id, *seen)
		}
		if *seen++; *seen == last {
			return nil
		}
	}
	return nil
}

// A stream ends cleanly when the server stops, and another one continues it where it ended.
func TestThreadEvents_AcrossRestart(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	at := func(o *skein.Options) { o.Store, o.Volatile = store, false }
	var thread string
	t.Run("before", func(t *testing.T) {
		s := start(t, at)
		thread = s.thread()
		for range 5 {
			s.say(thread)
		}
		in := s.stream("GET", thread+"/events", "")
		if got := ids(in.take(7)); got != counted(1, 7) {
			t.Errorf("before: %s", got)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop(context.Background()) }()
		if e, more := in.next(); more || in.scan.Err() != nil {
			t.Errorf("at the end: %+v, %v", e, in.scan.Err())
		}
		s.Must(<-stopped)
	})
	t.Run("after", func(t *testing.T) {
		s := start(t, at)
		s.say(thread)
		if got := ids(s.stream("GET", thread+"/events", "", "Last-Event-ID", "6").take(2)); got != "7 8" {
			t.Errorf("after: %s", got)
		}
	})
}

// The stream of a deleted thread ends with its last event.
func TestThreadEvents_EndWithTheThread(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	in := s.stream("GET", thread+"/events?from=2", "")
	gone := s.ask("DELETE", thread, "").want(http.StatusOK)
	e, ok := in.next()
	if !ok || e.name != "lifecycle.deleted" {
		t.Fatalf("the last event: %+v", e)
	}
	if e, more := in.next(); more {
		t.Errorf("after the end: %+v", e)
	}
	s.ask("GET", thread+"/events", "", "Skein-Min-Seq", gone.text("seq")).problem(http.StatusNotFound, "not_found", "")
}

// A reader that takes nothing keeps nobody else waiting, and what it left unread is there when
// it reads on.
func TestThreadEvents_SlowReader(t *testing.T) {
	t.Parallel()
	s := start(t, withNATS).secondEdge(edge.Options{Stall: time.Hour})
	thread := s.thread()
	slow := s.stream("GET", thread+"/events", "")
	quick := s.stream("GET", thread+"/events", "")
	c := s.Client("acme")
	text := strings.Repeat("x", 32<<10)
	for range 300 { // 10 MB: more than a feed keeps, and than sockets hold
		_, err := c.Send(t.Context(), id(thread), events.CreateItem{Item: events.UserText(text)})
		s.Must(err)
	}
	for name, in := range map[string]*sse{"quick": quick, "slow": slow} {
		var got []event
		for len(got) < 302 {
			e, more := in.next()
			switch {
			case more:
				got = append(got, e)
			case len(got) == 0:
				t.Fatalf("the %s one ended at once", name)
			default: // a server that stood still for seconds has lost the edge's connection
				in = s.stream("GET", thread+"/events", "", "Last-Event-ID", got[len(got)-1].id)
			}
		}
		if ids(got) != counted(1, 302) {
			t.Errorf("the %s one: %s", name, ids(got))
		}
	}
}

// The events of a tenant have ids that resume anywhere, also in the middle of a commit.
func TestTenantEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	now := s.stream("GET", "/api/events", "")
	one, two := s.thread(), s.thread()
	s.as("other").thread()
	s.say(one)
	s.say(two)
	all := s.stream("GET", "/api/events?from=0", "").take(6)
	var list []string
	for _, e := range all {
		list = append(list, e.name)
		if strings.Contains(e.data, `"tenant":"other"`) {
			t.Errorf("an event of another tenant: %s", e.data)
		}
	}
	if got := strings.Join(list, " "); got != "thread.created context.created thread.created context.created item.created item.created" {
		t.Errorf("events: %s", got)
	}
	if got := ids(now.take(6)); got != ids(all) {
		t.Errorf("live: %s; from the log: %s", got, ids(all))
	}
	for i := range all[:5] {
		if got := s.stream("GET", "/api/events", "", "Last-Event-ID", all[i].id).take(5 - i); ids(got) != ids(all[i+1:]) {
			t.Errorf("after %s: %s", all[i].id, ids(got))
		}
	}
	if got := s.stream("GET", "/api/events?from=0&types=item.*", "").take(2); ids(got) != ids(all[4:]) {
		t.Errorf("items: %s", ids(got))
	}
	seq, _, _ := strings.Cut(all[1].id, ".")
	if got := s.stream("GET", "/api/events?from="+seq, "").take(1); got[0].id != all[2].id {
		t.Errorf("after the commit %s: %+v", seq, got)
	}
	for _, bad := range []string{"from=", "from=x", "from=1.x", "from=.", "from=-1", "from=1.2.3", "types=a%20b"} {
		s.ask("GET", "/api/events?"+bad, "").want(http.StatusBadRequest)
	}
}
