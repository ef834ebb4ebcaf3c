package openresponses_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// with makes a request for a response with an Idempotency-Key.
func (w *world) with(key, body string) (int, object) {
	w.t.Helper()
	return w.withAt("/v1/responses", key, body)
}

func (w *world) withAt(path, key, body string) (int, object) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", w.url+path, strings.NewReader(body))
	w.s.Must(err)
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	w.s.Must(err)
	defer func() { _ = res.Body.Close() }()
	body2, err := io.ReadAll(res.Body)
	w.s.Must(err)
	return res.StatusCode, decoded(w.t, body2)
}

// A request that is repeated with its Idempotency-Key has the first response, wherever its run
// happens; another request with that key is refused.
func TestRepeat_SameKey(t *testing.T) {
	t.Parallel()
	w := start(t)
	before := w.must("POST", "/v1/responses", `{"model":"triage","input":"one"}`)
	w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":"two","previous_response_id":%q}`, before["id"]))
	conversation := w.must("POST", "/v1/conversations", `{}`)["id"]
	for name, body := range map[string]string{
		"alone":        `{"model":"triage","input":"x"}`,
		"background":   `{"model":"triage","input":"x","background":true}`,
		"conversation": fmt.Sprintf(`{"model":"triage","input":"x","conversation":%q}`, conversation),
		"fork":         fmt.Sprintf(`{"model":"triage","input":"x","previous_response_id":%q}`, before["id"]),
	} {
		_, first := w.with("key-"+name, body)
		w.must("GET", fmt.Sprintf("/v1/responses/%v?stream=false", first["id"]), "")
		last := w.stream("GET", fmt.Sprintf("/v1/responses/%v?stream=true", first["id"]), "")
		threads := w.threads()
		status, again := w.with("key-"+name, body)
		if status != http.StatusOK || again["id"] != first["id"] || again["status"] != "completed" || fmt.Sprint(again["output"]) != fmt.Sprint(last[len(last)-1]["response"].(object)["output"]) {
			t.Errorf("%s: %d %v, and first %v", name, status, again, first)
		}
		if status, e := w.with("key-"+name, strings.Replace(body, `"x"`, `"y"`, 1)); status != http.StatusUnprocessableEntity || e["error"].(object)["code"] != "idempotency_key_reused" {
			t.Errorf("%s: another body: %d %v", name, status, e)
		}
		elsewhere := fmt.Sprintf(`{"model":"triage","input":"x","conversation":%q}`, w.must("POST", "/v1/conversations", `{}`)["id"])
		threads++
		if status, e := w.with("key-"+name, elsewhere); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: in another conversation: %d %v", name, status, e)
		}
		if now := w.threads(); now != threads {
			t.Errorf("%s: %d threads became %d", name, threads, now)
		}
	}
}

// A response with an Idempotency-Key that waits for another of its conversation is found while it
// waits, and a repeated request has it.
func TestRepeat_WhileQueued(t *testing.T) {
	t.Parallel()
	w := start(t)
	begun, release := w.model.waits()
	conversation := w.must("POST", "/v1/conversations", `{}`)["id"]
	body := fmt.Sprintf(`{"model":"triage","input":"x","conversation":%q,"background":true}`, conversation)
	w.must("POST", "/v1/responses", body)
	<-begun
	_, first := w.with("k", body)
	if got := w.must("GET", fmt.Sprintf("/v1/responses/%v", first["id"]), ""); got["status"] != "queued" || got["id"] != first["id"] {
		t.Errorf("%v", got)
	}
	if status, again := w.with("k", body); status != http.StatusOK || again["id"] != first["id"] || again["status"] != "queued" {
		t.Errorf("repeated: %d %v", status, again)
	}
	if status, e := w.with("k", strings.Replace(body, `"x"`, `"y"`, 1)); status != http.StatusUnprocessableEntity {
		t.Errorf("another body: %d %v", status, e)
	}
	ended := make(chan []object)
	go func() { ended <- w.stream("GET", fmt.Sprintf("/v1/responses/%v?stream=true", first["id"]), "") }()
	release <- struct{}{}
	<-begun
	release <- struct{}{}
	if last := streams(t, <-ended); last["id"] != first["id"] || texts(last["output"]) != "Done." {
		t.Errorf("%v", last)
	}
	w.s.WaitIdle()
	if len(begun) != 0 {
		t.Errorf("%d more runs began", len(begun))
	}
	if _, again := w.with("k", body); again["id"] != first["id"] || again["status"] != "completed" {
		t.Errorf("repeated at the end: %v", again)
	}
}

// threads returns how many threads there are.
func (w *world) threads() int {
	w.t.Helper()
	fresh, err := w.c.UpToDate(w.t.Context())
	w.s.Must(err)
	list, err := client.Read(w.t.Context(), fresh, events.ListThreads{Limit: new(int64(200))})
	w.s.Must(err)
	return len(list.Threads)
}

// A response that is not stored is gone with its thread: its key starts no other.
func TestRepeat_Temporary(t *testing.T) {
	t.Parallel()
	w := start(t)
	body := `{"model":"triage","input":"x","store":false}`
	if status, got := w.with("k", body); status != http.StatusOK {
		t.Fatalf("%d %v", status, got)
	}
	w.event(events.LifecycleDeletedType)
	if status, e := w.with("k", body); status != http.StatusNotFound {
		t.Errorf("%d %v", status, e)
	}
}

// A request that is refused has forked nothing.
func TestCreate_RefusedWritesNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	first := w.must("POST", "/v1/responses", `{"model":"triage","input":"one"}`)
	w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":"two","previous_response_id":%q}`, first["id"]))
	threads := w.threads()
	if status, e := w.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","previous_response_id":%q,"input":[{"type":"function_call_output","call_id":"nobody","output":"x"}]}`, first["id"])); status != http.StatusBadRequest {
		t.Errorf("%d %v", status, e)
	}
	if now := w.threads(); now != threads {
		t.Errorf("%d threads became %d", threads, now)
	}
}

// A conversation, items and a summary that are asked for again with the same Idempotency-Key are
// those of the first request; another body with the key of a conversation or of items is refused.
func TestRepeat_Conversations(t *testing.T) {
	t.Parallel()
	w := start(t)
	const items = `{"items":[{"type":"message","role":"user","content":"one"},{"type":"message","role":"user","content":"two"}]}`
	status, first := w.withAt("/v1/conversations", "k", items)
	if again, got := w.withAt("/v1/conversations", "k", items); status != http.StatusOK || again != http.StatusOK || got["id"] != first["id"] {
		t.Errorf("%d %v, and first %d %v", again, got, status, first)
	}
	added := fmt.Sprintf("/v1/conversations/%v/items", first["id"])
	status, list := w.withAt(added, "k", items)
	if again, got := w.withAt(added, "k", items); status != http.StatusOK || again != http.StatusOK || fmt.Sprint(got) != fmt.Sprint(list) {
		t.Errorf("items: %d %v, and first %d %v", again, got, status, list)
	}
	if all := w.must("GET", added, "")["data"].([]any); len(all) != 4 {
		t.Errorf("the conversation has %d items: %v", len(all), all)
	}
	for _, path := range []string{"/v1/conversations", added} {
		status, e := w.withAt(path, "k", strings.Replace(items, "two", "three", 1))
		if status != http.StatusUnprocessableEntity || e["error"].(object)["code"] != "idempotency_key_reused" {
			t.Errorf("%s: another body: %d %v", path, status, e)
		}
	}
	before := w.must("POST", "/v1/responses", `{"model":"triage","input":"one"}`)
	for _, body := range []string{`{"model":"triage","input":"a long story"}`, fmt.Sprintf(`{"model":"triage","previous_response_id":%q}`, before["id"])} {
		status, first := w.withAt("/v1/responses/compact", "k", body)
		threads := w.threads()
		if again, got := w.withAt("/v1/responses/compact", "k", body); status != http.StatusOK || again != http.StatusOK || got["id"] != first["id"] || w.threads() != threads {
			t.Errorf("%s: %d %v, and first %d %v", body, again, got, status, first)
		}
	}
}
