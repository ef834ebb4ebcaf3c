package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// strangers are a stage with people of two tenants, two of whom may see their own threads only, one
// may read, and one may use a thread that is not there. All have the agent teller.
func strangers(t *testing.T, options ...func(*api.Options)) *stage {
	s := newStage(t, map[string]edge.Principal{
		"acme": {Tenant: "acme", Subject: "key:a"}, "globex": {Tenant: "globex", Subject: "key:g"},
		"ann": {Tenant: "acme", Subject: "key:ann", User: "ann"}, "bob": {Tenant: "acme", Subject: "key:bob", User: "bob"},
		"reader": {Tenant: "acme", Subject: "key:r", Can: []edge.Capability{edge.Read}},
		"one":    {Tenant: "acme", Subject: "key:o", Threads: []string{"T-0190a3c5-0000-7000-8000-000000000000"}},
	}, options...)
	s.teller()
	for _, who := range []string{"acme", "globex"} {
		if status, text := s.ask(who, "PUT", "/api/definitions/agent/teller", `{"name":"teller","type":"ai_human","reactor":"teller"}`); status >= 300 {
			t.Fatalf("an agent: %d %s", status, text)
		}
	}
	return s
}

// The same Idempotency-Key of two tenants, and of two users of one, names two requests: each gets an
// answer of its own, and finds nothing of the other. Of /api it is the commandId, which is the
// tenant's: the second user is refused.
func TestHandler_SameKeyOfOthers(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	for n, c := range []struct{ path, body, id string }{
		{"/v1/responses", `{"model":"teller","input":"the words of all"}`, "id"},
		{"/v1/responses", `{"model":"teller","input":"the words of all","background":true}`, "id"},
		{"/v1/conversations", `{}`, "id"},
		{"/api/threads", `{}`, "threadId"},
	} {
		made := map[string]string{}
		for _, who := range []string{"ann", "globex", "bob"} {
			status, text := s.ask(who, "POST", c.path, c.body, "Idempotency-Key", fmt.Sprint("the-same-", n))
			if c.path == "/api/threads" && who == "bob" {
				if status != http.StatusConflict || strings.Contains(text, made["ann"]) {
					t.Errorf("%s as %s: %d %.300s", c.path, who, status, text)
				}
				continue
			}
			var answer map[string]any
			if err := json.Unmarshal([]byte(text), &answer); err != nil || status >= 300 {
				t.Errorf("%s %s as %s: %d %.300s", c.path, c.body, who, status, text)
				continue
			}
			made[who] = fmt.Sprint(answer[c.id])
		}
		s.skein.WaitIdle()
		for who, id := range made {
			for other := range made {
				want := http.StatusNotFound
				if who == other {
					want = http.StatusOK
				}
				if status, text := s.ask(other, "GET", c.path+"/"+id, ""); status != want {
					t.Errorf("%s/%s of %s as %s: %d %.300s, want %d", c.path, id, who, other, status, text, want)
				}
			}
		}
	}
}

// So does a key of requests to /chat: a repeat gets the caller's own message, and a chat of another
// user with the key that it was begun with is refused as one with any key.
func TestHandler_SameKeyOfOthersInChats(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	ask := func(who, chat, key string) (int, string) {
		t.Helper()
		status, text := s.ask(who, "POST", "/chat", `{"id":"`+chat+`","agent":"teller","message":{"id":"u1","role":"user","parts":[{"type":"text","text":"x"}]}}`, "Idempotency-Key", key)
		if status != http.StatusOK {
			return status, text
		}
		_, id, _ := strings.Cut(text, `"messageId":"`)
		id, _, _ = strings.Cut(id, `"`)
		return status, id
	}
	made := map[string]string{}
	for _, who := range []string{"ann", "bob", "globex", "ann", "bob", "globex"} {
		status, id := ask(who, "chat-"+who, "k")
		if status != http.StatusOK || id == "" || made[who] != "" && made[who] != id {
			t.Errorf("%s: %d %.300s, and before %s", who, status, id, made[who])
		}
		made[who] = id
	}
	if made["ann"] == made["bob"] || made["ann"] == made["globex"] {
		t.Errorf("%v", made)
	}
	s.skein.WaitIdle()
	status, theirs := ask("bob", "chat-ann", "other")
	if again, same := ask("bob", "chat-ann", "theirs"); again != status || same != theirs || status < 400 || strings.Contains(theirs, made["ann"]) {
		t.Errorf("another's chat: %d %s, and %d %s", status, theirs, again, same)
	}
}

// What a body of /chat names of another tenant, or of another user, is not read, not changed, and
// does not come back: chats, messages, calls of tools, files and agents.
func TestHandler_ChatsOfOthers(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	real, mine := s.made("acme", "ann", "order42"), map[string]ids{"globex": s.made("globex", "gus", "order43"), "bob": s.made("acme", "bob", "order44")}
	s.people["all"] = s.people["acme"]
	before := s.version(real.thread)
	said := `{"id":"m-1","role":"user","parts":[{"type":"text","text":"x"}]}`
	for who, own := range mine {
		for _, body := range []string{
			`{"id":"THREAD","message":` + said + `}`,
			`{"id":"THREAD","trigger":"regenerate-message"}`,
			`{"id":"THREAD","trigger":"regenerate-message","messageId":"ITEM"}`,
			`{"id":"OWN","trigger":"regenerate-message","messageId":"ITEM"}`,
			`{"id":"OWN","messageId":"ITEM","message":` + said + `}`,
			`{"id":"OWN","message":{"id":"ITEM","role":"assistant","parts":[{"type":"tool-find","toolCallId":"EXECUTION","state":"output-available","input":{},"output":"x"}]}}`,
			`{"id":"OWN","message":{"id":"ITEM","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"find","toolCallId":"ITEM","state":"approval-responded","approval":{"id":"EXECUTION","approved":true}}]}}`,
			`{"id":"OWN","message":{"id":"m-2","role":"user","parts":[{"type":"file","mediaType":"text/plain","url":"/api/threads/THREAD/files/a.txt"}]}}`,
			`{"id":"OWN","message":{"id":"m-3","role":"user","parts":[{"type":"file","mediaType":"text/plain","url":"/api/threads/OWN-THREAD/files/..%2f..%2fTHREAD%2fa.txt"}]}}`,
			`{"id":"OWN","message":{"id":"m-4","role":"user","parts":[{"type":"file","mediaType":"text/plain","url":"/api/threads/key:order42/files/a.txt"}]}}`,
		} {
			var got [2]string
			for i, other := range []ids{real, real.unknown()} {
				filled := strings.NewReplacer("OWN-THREAD", own.thread, "OWN", own.key, "THREAD", other.thread, "ITEM", other.item, "EXECUTION", other.execution).Replace(body)
				status, text := s.ask(who, "POST", "/chat", filled)
				for _, id := range []string{real.thread, real.item, real.execution, "ann"} {
					if strings.Contains(text, id) && !strings.Contains(filled, id) {
						t.Errorf("%s, %s: %d %.400s", who, filled, status, text)
					}
				}
				if status < 400 {
					t.Errorf("%s, %s: %d %.400s", who, filled, status, text)
				}
				got[i] = fmt.Sprint(status) + " " + uuids.ReplaceAllString(text, "ID")
			}
			if got[0] != got[1] {
				t.Errorf("%s, %s:\n%.400s\nand of what does not exist:\n%.400s", who, body, got[0], got[1])
			}
		}
		// A key is the tenant's: another tenant has a chat of its own by that name, and another user of
		// the same one has none.
		status, text := s.ask(who, "POST", "/chat", `{"id":"order42","agent":"teller","message":`+said+`}`)
		if strings.Contains(text, real.thread) || strings.Contains(text, real.item) || (status == http.StatusOK) != (who == "globex") {
			t.Errorf("%s, another's chat: %d %.400s", who, status, text)
		}
	}
	s.skein.WaitIdle()
	if after := s.version(real.thread); after != before {
		t.Errorf("the thread has changed: %s, and was %s", after, before)
	}
}

// A position in another tenant's events, or in another thread's, resumes nothing but the reader's own
// stream.
func TestHandler_PositionsOfOthers(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	real := s.made("acme", "ann", "order42")
	mine := map[string]ids{"globex": s.made("globex", "gus", "order43"), "bob": s.made("acme", "bob", "order44")}
	list := regexp.MustCompile(`"seq":(\d+)`).FindAllStringSubmatch(textOf(s.ask("acme", "POST", "/api/queries/history.list", `{}`)), -1)
	if len(list) == 0 {
		t.Fatal("the history has no sequences")
	}
	first := list[0][1]
	for who, own := range mine {
		for _, c := range []struct{ path, position string }{
			{"/api/events", first + ".0"}, {"/api/events", "0.0"},
			{"/api/threads/" + own.thread + "/events", "1"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", who)
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Last-Event-ID", c.position)
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("%s %s: %v, %v", who, c.path, answer, err)
			}
			_, err = s.skein.Client(s.people[who].Tenant).Send(t.Context(), own.thread, events.CreateItem{Item: events.UserText("the last one")})
			s.skein.Must(err)
			seen := 0
			for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
				line := lines.Text()
				if strings.Contains(line, real.thread) || strings.Contains(line, real.item) || strings.Contains(line, real.execution) {
					t.Errorf("%s, %s after %s: %.300s", who, c.path, c.position, line)
				}
				if strings.HasPrefix(line, "data: ") {
					seen++
				}
				if strings.Contains(line, "the last one") {
					break
				}
			}
			_ = answer.Body.Close()
			if seen < 2 {
				t.Errorf("%s, %s after %s: %d events", who, c.path, c.position, seen)
			}
		}
		for _, position := range []string{"0", "1"} {
			path := "/api/threads/" + own.thread + "/chunks?execution="
			foreign, there := s.ask(who, "GET", path+real.execution, "", "Accept", "text/event-stream", "Last-Event-ID", position)
			unknown, not := s.ask(who, "GET", path+real.unknown().execution, "", "Accept", "text/event-stream", "Last-Event-ID", position)
			if foreign != unknown || foreign < 400 || strings.Contains(there, "secret") {
				t.Errorf("%s, chunks of another's run: %d %.300s\nand of none: %d %.300s", who, foreign, there, unknown, not)
			}
		}
	}
}

func textOf(_ int, text string) string { return text }
