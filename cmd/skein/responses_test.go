package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// triage starts a server, on a store, with an agent whose model answers what it is asked, and
// an input that has "wait for me" only when released is closed. It tells of each such request.
func triage(t *testing.T, store string) (s *server, running <-chan struct{}, released chan struct{}) {
	t.Helper()
	begun := make(chan struct{}, 9)
	released = make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		tell := func(delta string) {
			_, _ = fmt.Fprintf(w, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m1\",\"output_index\":0,\"content_index\":0,\"delta\":%q}\n\n", delta)
			_ = http.NewResponseController(w).Flush()
		}
		aloud := strings.Contains(string(body), "think aloud")
		if aloud {
			tell("Hel")
		}
		if strings.Contains(string(body), "wait for me") {
			begun <- struct{}{}
			<-released
		}
		if aloud {
			tell("lo.")
		}
		_, _ = fmt.Fprint(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"model\":\"m\",\"output\":[{\"type\":\"message\",\"id\":\"m1\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"text\":\"Hello.\"}]}]}}\n\n")
	}))
	t.Cleanup(endpoint.Close)
	t.Setenv("OPENAI_BASE_URL", endpoint.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "sk-test")
	s = start(t, store, "--tenant", "acme")
	s.ok("apply", "-f", write(t, "agents.yaml", "kind: model\nname: m\nmodel: test-1\n---\nkind: agent\nname: triage\ntype: ai_human\nmodel: m\n"))
	return s, begun, released
}

// ask asks for a response, with an Idempotency-Key.
func (s *server) ask(key, body string) (out struct{ ID, Status string }) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", s.HTTP+"/v1/responses", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	decode(s.t, string(raw), &out)
	return out
}

// A request that is repeated after a kill has the response that was begun before it, and its
// run is not begun twice.
func TestServe_RepeatedResponseAfterKill(t *testing.T) {
	store := t.TempDir()
	s, running, released := triage(t, store)
	body := `{"model":"triage","input":"wait for me","background":true}`
	first := s.ask("k-1", body)
	<-running
	s.kill()
	close(released)
	again := start(t, store, "--tenant", "acme")
	if got := again.ask("k-1", body); got.ID != first.ID || first.ID == "" {
		t.Errorf("%+v, and not %+v", got, first)
	}
	if got := again.ask("k-1", strings.Replace(body, `,"background":true`, "", 1)); got.ID != "" {
		t.Errorf("another body: %+v", got)
	}
	if text := again.ok("thread", "list", "--json"); strings.Count(text, "\n") != 1 {
		t.Errorf("%s", text)
	}
	again.stop()
}

// Responses that are not stored are purged although the only process is killed: one in the
// middle of its run, and one that has ended and that its socket may continue.
func TestServe_PurgesTemporaryResponsesAfterKill(t *testing.T) {
	store := t.TempDir()
	s, running, released := triage(t, store)
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(s.HTTP, "http", "ws", 1)+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create","model":"triage","input":"one","store":false}`)); err != nil {
		t.Fatal(err)
	}
	for ended := false; !ended; {
		_, frame, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended = strings.Contains(string(frame), `"type":"response.completed"`)
	}
	go func() {
		if r, err := http.Post(s.HTTP+"/v1/responses", "application/json", strings.NewReader(`{"model":"triage","input":"wait for me","store":false}`)); err == nil {
			_ = r.Body.Close()
		}
	}()
	<-running
	s.kill()
	close(released)

	again := skeintest.Start(t, func(o *skein.Options) { o.Store = store })
	c := again.Client("acme")
	timeline, err := c.Timeline(t.Context(), client.SubscribeOptions{From: client.Seq(1), Types: []string{string(events.ThreadFinishedType), string(events.LifecycleDeletedType)}})
	again.Must(err)
	defer timeline.Close()
	for finished, purged := 0, 0; purged < 2; {
		e, err := timeline.Next(t.Context())
		again.Must(err)
		switch d := e.Data.(type) {
		case events.ThreadFinished:
			if finished++; finished == 2 {
				again.Advance(61 * time.Second)
			}
		case events.LifecycleDeleted:
			if purged++; !d.Purge {
				t.Errorf("the contents of %s stay", e.ThreadID)
			}
		}
	}
	fresh, err := c.UpToDate(t.Context())
	again.Must(err)
	if list, err := client.Read(t.Context(), fresh, events.ListThreads{}); err != nil || len(list.Threads) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
