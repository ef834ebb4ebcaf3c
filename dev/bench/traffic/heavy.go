package traffic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// Requests that are within every limit, and are each much work.
const (
	EventScans   = "event-scans"   // event.list, of a type that no event has
	ThreadLists  = "thread-lists"  // thread.list, of 1,000 threads
	Histories    = "histories"     // thread.history, of 1,000 threads
	ItemLists    = "item-lists"    // item.list, of 1,000 items
	LargeCommits = "large-commits" // thread.commit, of 200 items
)

// HeavyKinds lists the kinds of heavy requests.
func HeavyKinds() []string {
	return []string{EventScans, ThreadLists, Histories, ItemLists, LargeCommits}
}

const (
	heavyThreads = 1000   // of a tenant whose threads are listed
	heavyItems   = 10_000 // of a thread that is read
	heavyCommit  = 200    // items of a commit
	heavyTimeout = 30 * time.Second
)

// Heavy is what clients do that ask for much, over NATS. Each sends its next request when the
// one before is answered.
type Heavy struct {
	Kind    string `json:"kind"` // one of HeavyKinds
	Tenant  string `json:"tenant"`
	Thread  string `json:"thread"` // as Prepare returned it
	Clients int    `json:"clients"`
}

// Prepare stores what a kind of heavy requests reads, and returns the thread that they concern.
func Prepare(ctx context.Context, nc *nats.Conn, tenant, kind string) (thread string, err error) {
	h := Heavy{Tenant: tenant, Clients: 1}
	reply, err := h.command(ctx, nc, "thread.create", `{"data":{}}`)
	if err != nil {
		return "", err
	}
	h.Thread = reply.ThreadID
	switch kind {
	case ThreadLists, Histories:
		for n := 1; n < heavyThreads && err == nil; n++ {
			reply, err = h.command(ctx, nc, "thread.create", `{"data":{"title":"one of many"}}`)
		}
	case EventScans, ItemLists:
		for n := 0; n < heavyItems && err == nil; n += heavyCommit {
			reply, err = h.command(ctx, nc, "thread.commit", h.commit())
		}
	}
	if err != nil {
		return "", err
	}
	return h.Thread, h.query(ctx, nc, "thread.list", fmt.Sprintf(`{"limit":1,"minSeq":%d}`, reply.Seq)) // the read models show it
}

// Run goes on until ctx ends, and returns how many requests were sent. A refusal is an answer.
func (h Heavy) Run(ctx context.Context, nc *nats.Conn) (sent int64, err error) {
	conns, closeAll, err := (&Work{Clients: h.Clients}).connectAll(nc)
	if err != nil {
		return 0, err
	}
	defer closeAll()
	var requests atomic.Int64
	var working sync.WaitGroup
	for _, conn := range conns {
		working.Go(func() {
			for ctx.Err() == nil {
				_ = h.request(ctx, conn)
				requests.Add(1)
			}
		})
	}
	working.Wait()
	return requests.Load(), nil
}

// request sends one request.
func (h Heavy) request(ctx context.Context, nc *nats.Conn) error {
	switch h.Kind {
	case EventScans:
		return h.query(ctx, nc, "event.list", fmt.Sprintf(`{"threadId":%q,"types":["nothing.here"],"limit":1000}`, h.Thread))
	case ThreadLists:
		return h.query(ctx, nc, "thread.list", `{"limit":1000}`)
	case Histories:
		return h.query(ctx, nc, "thread.history", `{"limit":1000}`)
	case ItemLists:
		return h.query(ctx, nc, "item.list", fmt.Sprintf(`{"threadId":%q,"limit":1000}`, h.Thread))
	case LargeCommits:
		_, err := h.command(ctx, nc, "thread.commit", h.commit())
		return err
	}
	return fmt.Errorf("there is no kind %q of heavy requests", h.Kind)
}

// commit is the body of a commit of many items.
func (h Heavy) commit() string {
	one := fmt.Sprintf(`{"command":"item.create","data":%s}`, benchItem)
	return fmt.Sprintf(`{"threadId":%q,"data":{"commands":[%s]}}`, h.Thread, strings.TrimSuffix(strings.Repeat(one+",", heavyCommit), ","))
}

func (h Heavy) command(ctx context.Context, nc *nats.Conn, name, body string) (*events.Reply, error) {
	var reply events.Reply
	return &reply, h.ask(ctx, nc, events.DefaultNames().Command(h.Tenant, name), body, &reply)
}

func (h Heavy) query(ctx context.Context, nc *nats.Conn, name, body string) error {
	return h.ask(ctx, nc, events.DefaultNames().Query(h.Tenant, name), body, nil)
}

// ask sends a request, and decodes the answer if there is something to decode it into.
func (h Heavy) ask(ctx context.Context, nc *nats.Conn, subject, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, heavyTimeout)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, subject, []byte(body))
	switch {
	case err != nil:
		return err
	case m.Header.Get(events.HeaderErrorCode) != "":
		return errors.New(string(m.Data))
	case into == nil:
		return nil
	}
	return json.Unmarshal(m.Data, into)
}
