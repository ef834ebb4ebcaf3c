package api_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
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

// Requests with one name at once start one run, wherever that happens, and all have it: also next to a
// request with another name, which makes the conversation go on otherwise.
func TestRepeat_AtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	chat := func(id, text, more string) string {
		return fmt.Sprintf(`{"id":"$","agent":"talker","message":{"id":%q,"role":"user","parts":[{"type":"text","text":%q}]}%s}`, id, text, more)
	}
	a2a := func(id, text string) string {
		return fmt.Sprintf(`{"message":{"messageId":%q,"contextId":"$","role":"ROLE_USER","parts":[{"text":%q}]}}`, id, text)
	}
	for _, c := range []struct {
		name, path string
		before     []string
		then       string
		besides    string
	}{
		{"chat, begun", "/chat", nil, chat("u1", "one", ""), ""},
		{"chat, continued", "/chat", []string{chat("u1", "one", "")}, chat("u2", "two", ""), chat("u3", "three", "")},
		{"chat, edited", "/chat", []string{chat("u1", "one", "")}, chat("u1", "two", `,"messageId":"u1"`), ""},
		{"chat, regenerated", "/chat", []string{chat("u1", "one", "")}, `{"id":"$","agent":"talker","trigger":"regenerate-message","messages":[{"id":"u1","role":"user","parts":[{"type":"text","text":"one"}]}]}`, ""},
		{"agui, begun", "/agui/talker", nil, agui("r1", "one"), ""},
		{"agui, continued", "/agui/talker", []string{agui("r1", "one")}, agui("r2", "one", answered, "two"), agui("r3", "one", answered, "three")},
		{"agui, edited", "/agui/talker", []string{agui("r1", "one")}, agui("r2", "another one"), agui("r3", "a third one")},
		{"a2a", "/a2a/talker/message:send", []string{a2a("m1", "one")}, a2a("m2", "two"), a2a("m3", "three")},
		{"responses, begun", "/v1/responses", nil, response("one", ""), ""},
		{"responses, continued", "/v1/responses", []string{response("one", "")}, response("two", last), response("three", last)},
		{"responses, conversation", "/v1/responses", []string{response("one", "")}, response("two", `,"conversation":"conv_@"`), response("three", `,"conversation":"conv_@"`)},
		{"responses, forked", "/v1/responses", []string{response("one", ""), response("two", last)}, response("three", last), response("four", last)},
		{"completions, begun", "/v1/chat/completions", nil, completion("one"), ""},
		{"completions, continued", "/v1/chat/completions", []string{completion("one")}, completion("one", answered, "two"), completion("one", answered, "three")},
		{"completions, forked", "/v1/chat/completions", []string{completion("one"), completion("one", answered, "two")}, completion("one", answered, "three"), completion("one", answered, "four")},
	} {
		t.Run(c.name, func(t *testing.T) {
			for round := range 3 {
				id, number := fmt.Sprintf("%s-%d", c.name, round), ""
				ask := func(body, key string) *protocoltest.Stream {
					got := protocoltest.Open(t, s.at, protocoltest.Request{
						Path: c.path, Body: strings.NewReplacer("$", id, "@", number).Replace(body),
						Header: map[string]string{"Idempotency-Key": id + key, "A2A-Version": "1.0", "Skein-Thread": id},
					}).ReadAll()
					if got.Status != http.StatusOK || got.Contains(`"error":{`) {
						t.Errorf("%s%s: %d %s", id, key, got.Status, got)
					}
					return got
				}
				for n, body := range c.before {
					if got := ask(body, fmt.Sprint(n)); n == 0 {
						number = strings.TrimPrefix(got.Execution(), "exe_")
					}
					s.skein.WaitIdle()
				}
				want, before := int64(1), s.answered.Load()
				var mu sync.Mutex
				runs := map[string]int{}
				var asking sync.WaitGroup
				for n := range 8 {
					if n == 1 && c.besides != "" {
						want++
						asking.Go(func() { ask(c.besides, "-besides") })
					}
					asking.Go(func() {
						got := ask(c.then, "-then")
						mu.Lock()
						defer mu.Unlock()
						runs[got.Execution()]++
					})
				}
				asking.Wait()
				s.skein.WaitIdle()
				if n := s.answered.Load() - before; n != want || len(runs) != 1 || runs[""] > 0 {
					t.Errorf("%s: %d runs, of which it has %v", id, n, runs)
				}
			}
		})
	}
}

// A request whose process is slow to begin its run does not begin a second one after another process has
// been sent the request, too, whatever the conversation has become meanwhile.
func TestRepeat_OtherProcessIsSlow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, c := range []struct{ name, path, first, besides, then string }{
		{"agui", "/agui/talker", agui("r1", "one"), agui("r3", "one", answered, "three"), agui("r2", "one", answered, "two")},
		{"responses", "/v1/responses", response("one", ""), response("three", last), response("two", last)},
		{"completions", "/v1/chat/completions", completion("one"), completion("one", answered, "three"), completion("one", answered, "two")},
	} {
		for _, meanwhile := range []string{"another request", "another title"} {
			t.Run(c.name+", "+meanwhile, func(t *testing.T) {
				g := newGate()
				slow := s.at
				_, slow.URL = s.serve(t, natstest.Dial(t, s.skein.Addresses().NATS, nats.SetCustomDialer(g)))
				id, number := t.Name(), ""
				ask := func(at protocoltest.Server, key, body string) *protocoltest.Stream {
					got := protocoltest.Open(t, at, protocoltest.Request{
						Path: c.path, Body: strings.NewReplacer("$", id, "@", number).Replace(body), Header: map[string]string{"Idempotency-Key": id + key, "Skein-Thread": id},
					}).ReadAll()
					if got.Status != http.StatusOK || got.Contains(`"error":{`) {
						t.Errorf("%s: %d %s", key, got.Status, got)
					}
					return got
				}
				first := ask(s.at, "first", c.first)
				number = strings.TrimPrefix(first.Execution(), "exe_")
				s.skein.WaitIdle()
				thread := s.ended(t, first).ThreadID
				if meanwhile == "another title" { // the request forks
					ask(s.at, "besides", c.besides)
					s.skein.WaitIdle()
				}
				before := s.answered.Load()
				want := before + 1
				g.hold(".thread.commit ")
				answers := make(chan *protocoltest.Stream, 1)
				go func() { answers <- ask(slow, "then", c.then) }()
				natstest.Within(t, "the slow process commits", g.held)
				if meanwhile == "another request" {
					ask(s.at, "besides", c.besides)
					want++
				} else if _, err := s.skein.Client("acme").Send(t.Context(), thread, events.UpdateThread{Title: new("Another")}); err != nil {
					t.Fatal(err)
				}
				at := ask(s.at, "then", c.then)
				close(g.release)
				late := <-answers
				s.skein.WaitIdle()
				if n := s.answered.Load(); n != want || at.Execution() != late.Execution() {
					t.Errorf("%d runs, want %d: %s and %s", n-before, want-before, at.Execution(), late.Execution())
				}
			})
		}
	}
}

// An answer that is not kept is there until all have it who have asked for it, over whichever process.
func TestRepeat_OfATemporaryAnswer(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, p := range protocoltest.All() {
		path := p.Begin("", "", "").Path
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		for _, header := range []string{edge.HeaderKey, "X-Stainless-Retry-Count"} {
			t.Run(path+" "+header, func(t *testing.T) {
				g := newGate()
				slow := s.at
				_, slow.URL = s.serve(t, natstest.Dial(t, s.skein.Addresses().NATS, nats.SetCustomDialer(g)))
				ask := func(at protocoltest.Server, attempt string) *protocoltest.Stream {
					r := protocoltest.Request{Path: path, Body: `{"model":"talker","stream":true,"store":false,"input":"wait"}`, Header: map[string]string{header: attempt, "X-Stainless-Timeout": "600"}}
					if path != "/v1/responses" {
						r.Body = `{"model":"talker","stream":true,"messages":[{"role":"user","content":"wait"}]}`
					}
					if header == edge.HeaderKey {
						r.Header[header] = path
					}
					return protocoltest.Open(t, at, r)
				}
				first := ask(s.at, "0")
				s.started(p, first)
				second := ask(slow, "1")
				second.ReadTo(p, "Hel")
				x := s.ended(t, first)
				purges := func(n int) func() bool {
					return func() bool {
						list, err := s.skein.Client("acme").ScheduledEffects(t.Context(), x.ThreadID, events.PurgeEffect)
						return events.IsNotFound(err) || err == nil && len(list) == n
					}
				}
				natstest.Eventually(t, "both readers hold the thread", purges(2))
				g.hold("skein.query.")
				s.release <- struct{}{}
				natstest.Within(t, "the slow process reads the answer", g.held)
				first.ReadAll()
				natstest.Eventually(t, "the first reader has left", purges(1))
				close(g.release)
				if second.ReadAll(); !strings.Contains(second.String(), "lo.") || second.Contains("not_found") {
					t.Errorf("%s", second)
				}
				natstest.Eventually(t, "the last reader has purged the thread", func() bool {
					_, err := client.Read(t.Context(), s.skein.Client("acme"), events.GetThread{ThreadID: x.ThreadID})
					return events.IsNotFound(err)
				})
			})
		}
	}
}

// gate dials connections whose writes are held from one on that has a text.
type gate struct {
	what    atomic.Pointer[string]
	held    chan struct{}
	release chan struct{}
}

func newGate() *gate { return &gate{held: make(chan struct{}, 1), release: make(chan struct{})} }

// hold holds the next request with a text, from its subject on.
func (g *gate) hold(text string) { g.what.Store(&text) }

// Dial connects.
func (g *gate) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return gated{c, g}, err
}

type gated struct {
	net.Conn
	g *gate
}

func (c gated) Write(b []byte) (int, error) {
	if what := c.g.what.Load(); what != nil && bytes.Contains(b, []byte(*what)) && c.g.what.CompareAndSwap(what, nil) {
		c.g.held <- struct{}{}
		<-c.g.release
	}
	return c.Conn.Write(b)
}

// What the requests of these tests go on from.
const (
	answered = "answer to one"
	last     = `,"previous_response_id":"resp_@"`
)

func response(text, more string) string {
	return fmt.Sprintf(`{"model":"talker","input":%q%s}`, text, more)
}

func completion(messages ...string) string {
	return `{"model":"talker","messages":[` + turns(messages) + `]}`
}

func agui(run string, messages ...string) string {
	return fmt.Sprintf(`{"threadId":"$","runId":%q,"messages":[%s]}`, run, turns(messages))
}

// turns returns messages of a user and an agent by turns.
func turns(messages []string) string {
	list := make([]string, len(messages))
	for i, text := range messages {
		list[i] = fmt.Sprintf(`{"id":"m%d","role":%q,"content":%q}`, i, []string{"user", "assistant"}[i%2], text)
	}
	return strings.Join(list, ",")
}
