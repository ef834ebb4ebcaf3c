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

// Responses that are not stored are purged although the only process is killed: one in the
// middle of its run, and one that has ended and that its socket may continue.
func TestServe_PurgesTemporaryResponsesAfterKill(t *testing.T) {
	running, killed := make(chan struct{}, 9), make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if strings.Contains(string(body), "wait for me") {
			running <- struct{}{}
			<-killed
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"model\":\"m\",\"output\":[{\"type\":\"message\",\"id\":\"m1\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"text\":\"Hello.\"}]}]}}\n\n")
	}))
	defer endpoint.Close()
	t.Setenv("OPENAI_BASE_URL", endpoint.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "sk-test")
	store := t.TempDir()
	s := start(t, store, "--tenant", "acme")
	s.ok("apply", "-f", write(t, "agents.yaml", "kind: model\nname: m\nmodel: test-1\n---\nkind: agent\nname: triage\ntype: ai_human\nmodel: m\n"))
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
	close(killed)

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
	if list, err := fresh.ListThreads(t.Context(), events.ListThreads{}); err != nil || len(list.Threads) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
