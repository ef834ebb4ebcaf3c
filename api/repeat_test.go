package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/protocoltest"
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

// Requests with one name that go on in a conversation at once start one run, and all have it.
func TestRepeat_AtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const (
		chat = `{"id":"$","agent":"talker","message":{"id":"u1","role":"user","parts":[{"type":"text","text":"one"}]}}`
		agui = `{"threadId":"$","runId":"r1","messages":[{"id":"u1","role":"user","content":"one"}]}`
	)
	for _, c := range []struct{ name, path, first, then string }{
		{"chat, continued", "/chat", chat, `{"id":"$","agent":"talker","message":{"id":"u2","role":"user","parts":[{"type":"text","text":"two"}]}}`},
		{"chat, edited", "/chat", chat, `{"id":"$","agent":"talker","messageId":"u1","message":{"id":"u1","role":"user","parts":[{"type":"text","text":"two"}]}}`},
		{"chat, regenerated", "/chat", chat, `{"id":"$","agent":"talker","trigger":"regenerate-message","messages":[{"id":"u1","role":"user","parts":[{"type":"text","text":"one"}]}]}`},
		{"agui, continued", "/agui/talker", agui, `{"threadId":"$","runId":"r2","messages":[{"id":"u1","role":"user","content":"one"},{"id":"a1","role":"assistant","content":"answer to one"},{"id":"u2","role":"user","content":"two"}]}`},
		{"agui, edited", "/agui/talker", agui, `{"threadId":"$","runId":"r2","messages":[{"id":"u9","role":"user","content":"another one"}]}`},
		{
			"a2a", "/a2a/talker/message:send", `{"message":{"messageId":"m1","contextId":"$","role":"ROLE_USER","parts":[{"text":"one"}]}}`,
			`{"message":{"messageId":"m2","contextId":"$","role":"ROLE_USER","parts":[{"text":"two"}]}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for round := range 4 {
				id := fmt.Sprintf("%s-%d", c.name, round)
				ask := func(body, key string) *protocoltest.Stream {
					return protocoltest.Open(t, s.at, protocoltest.Request{
						Path: c.path, Body: strings.ReplaceAll(body, "$", id), Header: map[string]string{"Idempotency-Key": id + key, "A2A-Version": "1.0"},
					}).ReadAll()
				}
				ask(c.first, "-first")
				s.skein.WaitIdle()
				var mu sync.Mutex
				runs := map[string]int{}
				var asking sync.WaitGroup
				for range 16 {
					asking.Go(func() {
						got := ask(c.then, "-then")
						if got.Status != http.StatusOK || got.Contains(`"error"`) {
							t.Errorf("%d %s", got.Status, got)
						}
						mu.Lock()
						defer mu.Unlock()
						runs[got.Execution()]++
					})
				}
				asking.Wait()
				s.skein.WaitIdle()
				if len(runs) != 1 || runs[""] > 0 {
					t.Errorf("%s: %v", id, runs)
				}
			}
		})
	}
}
