package main_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A message that is sent again, with its Idempotency-Key, after a kill in the middle of its answer
// is answered by the run that was begun before it. Another body with that key is refused, also then.
func TestServe_RepeatedChatAfterKill(t *testing.T) {
	store := t.TempDir()
	s, running, released := triage(t, store)
	const body = `{"id":"order-42","agent":"triage","message":{"role":"user","parts":[{"type":"text","text":"wait for me"}]}}`
	send := func(s *server, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.HTTP+"/chat", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k-1")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	messageOf := func(text string) string {
		_, id, _ := strings.Cut(text, `"messageId":"`)
		id, _, _ = strings.Cut(id, `"`)
		return id
	}
	lines, id := bufio.NewScanner(send(s, body).Body), ""
	for id == "" && lines.Scan() {
		id = messageOf(lines.Text())
	}
	<-running
	s.kill()
	close(released)
	again := start(t, store, "--tenant", "acme")
	raw, err := io.ReadAll(send(again, body).Body)
	if err != nil || id == "" || messageOf(string(raw)) != id || !strings.Contains(string(raw), "Hello.") || !strings.Contains(string(raw), "[DONE]") {
		t.Errorf("the message %s, and again %s, %v", id, raw, err)
	}
	if a := send(again, strings.Replace(body, "wait", "look", 1)); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another body: %d", a.StatusCode)
	}
	if text := again.ok("query", "message.list", `{"threadId":"key:order-42"}`); strings.Count(text, "wait for me") != 1 || strings.Count(text, "Hello.") != 1 {
		t.Errorf("%s", text)
	}
	again.stop()
}
