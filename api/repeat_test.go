package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// A request that is repeated after the thread that it began was deleted shows nothing of that thread, and
// begins no other: it is not_found, over every protocol.
func TestRepeat_AfterDelete(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	c := s.skein.Client("acme")
	const secret = "the words that were deleted"
	for _, p := range []struct{ name, path, body, header, chat string }{
		{"agui", "/agui/teller", `{"threadId":"$","runId":"r","messages":[{"id":"u","role":"user","content":"` + secret + `"}]}`, "", ""},
		{"chat", "/chat", `{"id":"$","agent":"teller","message":{"id":"u","role":"user","parts":[{"type":"text","text":"` + secret + `"}]}}`, "Idempotency-Key", ""},
		{"chat without a key", "/chat", `{"id":"$","agent":"teller","message":{"id":"u","role":"user","parts":[{"type":"text","text":"` + secret + `"}]}}`, "", ""},
		{"responses", "/v1/responses", `{"model":"teller","input":"` + secret + `"}`, "Idempotency-Key", ""},
		{"completions", "/v1/chat/completions", `{"model":"teller","messages":[{"role":"user","content":"` + secret + `"}]}`, "Idempotency-Key", "Skein-Thread"},
	} {
		for how, d := range map[string]events.DeleteThread{"deleted": {}, "purged": {Purge: true}} {
			id := p.name + " " + how
			body := strings.ReplaceAll(p.body, "$", id)
			var headers []string
			if p.header != "" {
				headers = append(headers, p.header, id)
			}
			if p.chat != "" {
				headers = append(headers, p.chat, id)
			}
			if status, text := s.ask("acme", "POST", p.path, body, headers...); status != http.StatusOK {
				t.Fatalf("%s: %d %s", id, status, text)
			}
			s.skein.WaitIdle()
			list, err := client.Read(t.Context(), c, events.ListThreads{})
			if err != nil || len(list.Threads) != 1 {
				t.Fatalf("%s: %d threads, %v", id, len(list.Threads), err)
			}
			reply, err := c.Send(t.Context(), list.Threads[0].ID, d)
			if err != nil {
				t.Fatal(err)
			}
			status, text := s.ask("acme", "POST", p.path, body, headers...)
			if status != http.StatusNotFound || strings.Contains(text, secret) {
				t.Errorf("%s: %d %.600s", id, status, text)
			}
			after, err := client.Read(t.Context(), c.WithMinSeq(reply.Seq), events.ListThreads{})
			if err != nil || len(after.Threads) != 0 {
				t.Errorf("%s: %d threads, %v", id, len(after.Threads), err)
			}
		}
	}
}
