package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/internal/protocoltest"
)

// freezeMany freezes threads, and more of its own than are searched for an id alone.
func (s *scene) freezeMany(t *testing.T, ids ...string) {
	t.Helper()
	c := s.skein.Client("acme")
	for range 65 {
		reply, err := c.Send(t.Context(), "", events.CreateThread{})
		s.skein.Must(err)
		ids = append(ids, reply.ThreadID)
	}
	s.skein.WaitIdle()
	log, err := eventlog.Open(natstest.Dial(t, s.skein.Addresses().NATS), eventlog.Config{Patience: natstest.Patience}, zerolog.Nop(), nil)
	s.skein.Must(err)
	t.Cleanup(log.Close)
	a := archive.New(log, archive.Config{Patience: natstest.Patience, Settle: -1}, zerolog.Nop())
	s.skein.Must(a.Freeze(t.Context(), "acme", ids, archive.Options{}, func(r archive.Result) {
		if r.Outcome != archive.Frozen {
			t.Errorf("%+v", r)
		}
	}, func(id string, err error) { t.Error(id, err) }))
	if n, err := a.Strip(t.Context(), "acme", ids, false); err != nil || n != len(ids) {
		t.Fatal(n, err)
	}
	for { // until the list of threads has them
		_, err := client.Read(t.Context(), c, events.GetItem{ItemID: "itm_nowhere"})
		if events.HasCode(err, events.InvalidRequest) {
			return
		}
		if !events.IsNotFound(err) || t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// However many threads of a tenant are cold, a run begins, and a request that is sent again is answered
// by it, named by its conversation or by an Idempotency-Key: neither searches all of them.
func TestProtocols_ManyColdThreads(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.freezeMany(t)
	for n, p := range protocoltest.All() {
		for kind, key := range map[string]string{"named": "", "keyed": fmt.Sprintf("key-%d", n)} {
			t.Run(p.Name+"/"+kind, func(t *testing.T) {
				id := fmt.Sprintf("order-%d-%s", n, kind)
				begin := func() *protocoltest.Stream {
					return s.begin(t, p, id, "hello", "Idempotency-Key", key).ReadAll()
				}
				if first, again := begin(), begin(); !first.Contains(p.Completed) || first.Execution() == "" || again.Execution() != first.Execution() {
					t.Errorf("%d %s\n%s\nagain: %d %s\n%s", first.Status, first.Execution(), first, again.Status, again.Execution(), again)
				}
			})
		}
	}
}

// Responses that go on from one another are found, also when their threads are cold, and so is the fork
// that a request with an Idempotency-Key has made.
func TestResponses_ManyColdThreads(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ask := func(previous, key string) string {
		status, body := s.ask("", "POST", "/v1/responses", fmt.Sprintf(`{"model":"talker","input":"hello","previous_response_id":%s}`, previous), "Idempotency-Key", key)
		var got struct{ ID string }
		if err := json.Unmarshal([]byte(body), &got); status != http.StatusOK || err != nil {
			t.Fatalf("%d %s %v", status, body, err)
		}
		return strconv.Quote(got.ID)
	}
	first := ask("null", "")
	second := ask(first, "")
	fork := ask(first, "k")
	third := ask(fork, "")
	list, err := client.Read(t.Context(), s.skein.Client("acme"), events.ListThreads{})
	s.skein.Must(err)
	var ids []string
	for i := range list.Threads {
		ids = append(ids, list.Threads[i].ID)
	}
	s.freezeMany(t, ids...)
	for _, id := range []string{first, second, fork, third} {
		if status, body := s.ask("", "GET", "/v1/responses/"+strings.Trim(id, `"`), ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", id, status, body)
		}
	}
	if again := ask(first, "k"); again != fork {
		t.Errorf("asked again: %s, not %s", again, fork)
	}
	if status, body := s.ask("", "GET", "/v1/responses/resp_nobody", ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
	ask(second, "")
}
