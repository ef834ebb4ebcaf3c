package chat_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// keyed sends the body of POST /chat with an Idempotency-Key, and returns the status, and the
// message's id, or the refusal.
func (w *world) keyed(tenant, key, body string) (int, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.url+"/chat", strings.NewReader(body))
	w.server.Must(err)
	r.Header.Set(edge.HeaderTenant, tenant)
	r.Header.Set("Idempotency-Key", key)
	answer, err := http.DefaultClient.Do(r)
	w.server.Must(err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	w.server.Must(err)
	_, id, _ := strings.Cut(string(raw), `"messageId":"`)
	if id, _, ok := strings.Cut(id, `"`); ok && answer.StatusCode == http.StatusOK {
		return answer.StatusCode, id
	}
	return answer.StatusCode, string(raw)
}

// counted answers what it is told, and counts.
type counted struct {
	mu   sync.Mutex
	runs int
}

func (c *counted) react(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	return skein.Answer("you said " + in.LastText(events.User)), nil
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs
}

// A request that is repeated with its Idempotency-Key has the message of the first, whatever it
// asked for; another body with that key is refused, also in another chat.
func TestChat_KeyedRequest(t *testing.T) {
	c := new(counted)
	w := newWorld(t, c.react)
	_, first := w.keyed("acme", "first", submit("c1", text("u1", "hi")))
	messages := func(list ...string) string { return `"messages":[` + strings.Join(list, ",") + `]` }
	for _, one := range []struct{ name, body string }{
		{"a chat that begins", submit("c2", text("u1", "hi"))},
		{"a message", submit("c1", text("u1", "hi"), text("u2", "more"))},
		{"a message of no id", `{"id":"c1","message":{"role":"user","parts":[{"type":"text","text":"more"}]}}`},
		{"an answer again", `{"id":"c1","trigger":"regenerate-message","messageId":` + quote(first) + `,` + messages(text("u1", "hi")) + `}`},
		{"the last one again", `{"id":"c2","trigger":"regenerate-message",` + messages(text("u1", "hi")) + `}`},
		{"an edit", `{"id":"c1","trigger":"submit-message","messageId":"u1",` + messages(text("u1", "hello")) + `}`},
	} {
		name, body := one.name, one.body
		status, one := w.keyed("acme", name, body)
		runs := c.count()
		if again, two := w.keyed("acme", name, body); status != http.StatusOK || again != http.StatusOK || one != two || c.count() != runs {
			t.Errorf("%s: %d %s, and again %d %s, of %d runs and then %d", name, status, one, again, two, runs, c.count())
		}
		for _, other := range []string{strings.Replace(body, `"id":"c`, `"extra":1,"id":"c`, 1), submit("another", text("u9", "hi"))} {
			if status, refusal := w.keyed("acme", name, other); status != http.StatusUnprocessableEntity || !strings.Contains(refusal, `"code":"idempotency_key_reused"`) || !strings.Contains(refusal, `"param":"Idempotency-Key"`) {
				t.Errorf("%s: another body: %d %s", name, status, refusal)
			}
		}
		if c.count() != runs {
			t.Errorf("%s: %d runs became %d", name, runs, c.count())
		}
	}
	if status, body := w.do(http.MethodGet, "/chat/another", ""); status != http.StatusNotFound {
		t.Errorf("the refused chat: %d %s", status, body)
	}
	runs := c.count()
	if status, own := w.keyed("evil", "first", submit("c1", text("u1", "hi"))); status != http.StatusOK || own == first || c.count() != runs+1 {
		t.Errorf("another tenant's: %d %s", status, own)
	}
}

// A message that waits for a run, or steers one, is the same message when it is sent again, and
// another with its key is refused.
func TestChat_KeyedDuringARun(t *testing.T) {
	for _, policy := range []string{"enqueue", "steer"} {
		p := newPaced()
		w := newWorld(t, p.react)
		_, err := w.client.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
			{Kind: events.AgentKind, Definition: []byte(`{"name":"busy","type":"ai_human","reactor":"assistant","policy":"` + policy + `"}`)},
		}})
		w.server.Must(err)
		ask := func(message string) string { return `{"id":"c1","agent":"busy","message":` + message + `}` }
		first := w.post(ask(text("u1", "one")))
		<-p.asked
		sent := make(chan string, 2)
		for range 2 {
			go func() {
				_, id := w.keyed("acme", "k", ask(text("u2", "two")))
				sent <- id
			}()
		}
		want := events.ItemCreatedType
		if policy == "enqueue" {
			want = events.QueuePushedType
		}
		w.untilEvent("c1", want, "u2")
		if status, refusal := w.keyed("acme", "k", ask(text("u3", "three"))); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: another body: %d %s", policy, status, refusal)
		}
		close(p.pieces)
		if one, two := <-sent, <-sent; one != two || !strings.HasPrefix(one, events.ItemPrefix) {
			t.Errorf("%s: %s and %s", policy, one, two)
		}
		first.rest()
		w.server.WaitIdle()
		said := said(w.messages("c1"))
		if strings.Count(said, "user: two") != 1 || strings.Contains(said, "three") {
			t.Errorf("%s: %s", policy, said)
		}
	}
}

// untilEvent waits until a chat's thread has an event that names an item.
func (w *world) untilEvent(chat string, kind events.Type, item string) {
	w.Helper()
	for {
		page, err := client.Read(w.Context(), w.upToDate().client, events.ListEvents{ThreadID: "key:" + chat, Types: []string{string(kind)}})
		w.server.Must(err)
		for _, raw := range page.Events {
			if strings.Contains(string(raw), quote(item)) {
				return
			}
		}
	}
}
