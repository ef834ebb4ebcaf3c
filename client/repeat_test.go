package client_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// late answers the requests on a subject, each when the next copy of it has come, and counts copies.
type late struct {
	mu     sync.Mutex
	before *nats.Msg
	copies []string // bodies
}

func (l *late) handle(m *nats.Msg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.copies = append(l.copies, string(m.Data))
	if l.before != nil {
		_ = l.before.Respond([]byte(`{"lastSeq":7,"version":7}`))
	}
	l.before = m
}

// bodiesSoFar are those of the copies that have come. A copy more may come while a test judges: it
// was in flight when the request was answered.
func (l *late) bodiesSoFar() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.copies)
}

// A request that nobody has answered is sent again, with the same id, while the first copy still
// waits: whichever is answered first counts. A request for the next event of a consumer is not.
func TestRequest_RepeatedWhileItWaits(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	c, err := client.New(nc, client.Options{Tenant: "acme", Timeout: natstest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(subject string) *late {
		l := &late{}
		if _, err := nc.Subscribe(subject, l.handle); err != nil {
			t.Fatal(err)
		}
		return l
	}
	command, query, next := answer("skein.cmd.acme.item.create"), answer("skein.query.acme.history.get"), answer("skein.query.acme.consumer.next")
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Send(t.Context(), "T-5928a90d-d53b-488f-a829-4e36442142ee", events.CreateItem{Item: events.UserText("x")}); err != nil || r.Version != 7 {
		t.Errorf("the command: %+v, %v", r, err)
	}
	if end, err := c.HistoryEnd(t.Context()); err != nil || end != 7 {
		t.Errorf("the query: %d, %v", end, err)
	}
	var ids []string
	for _, body := range command.bodiesSoFar() {
		var r events.Request
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.CommandID)
	}
	if len(ids) < 2 || ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("the copies of the command have the ids %v", ids)
	}
	if n := len(query.bodiesSoFar()); n < 2 {
		t.Errorf("the query was sent %d times", n)
	}
	asked, err := client.New(nc, client.Options{Tenant: "acme", Timeout: longerThanRepeats})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(t.Context(), asked, events.NextOfConsumer{Name: "c"}); events.AsError(err).Code != events.Unavailable || len(next.bodiesSoFar()) != 1 {
		t.Errorf("consumer.next was sent %d times (%v)", len(next.bodiesSoFar()), err)
	}
}

// longerThanRepeats is time for several copies of a request that may be sent again, and for one
// attempt at one that may not.
const longerThanRepeats = 5 * time.Second

// Where nobody answers, many requests that wait send few copies; with the answers come more.
func TestRequest_CopiesAreBounded(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	c, err := client.New(nc, client.Options{Tenant: "acme", Timeout: natstest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	const requests, ahead = 100, 16
	var came []*nats.Msg
	all := make(chan *nats.Msg, 10*requests)
	if _, err := nc.ChanSubscribe("skein.query.acme.history.get", all); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	for range requests {
		asking.Go(func() {
			if end, err := c.HistoryEnd(t.Context()); err != nil || end != 7 {
				t.Errorf("%d, %v", end, err)
			}
		})
	}
	for len(came) < requests+ahead {
		came = append(came, natstest.Within(t, "a copy", all))
	}
	select { // the second copies would be sent after two seconds
	case m := <-all:
		t.Errorf("more than %d copies: %s", ahead, m.Data)
	case <-time.After(2500 * time.Millisecond):
	}
	for _, m := range came {
		_ = m.Respond([]byte(`{"lastSeq":7}`))
	}
	asking.Wait()
}
