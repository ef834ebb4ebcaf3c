package console_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// many returns how many messages a long thread has, or threads a long list: a number that is made
// quickly, or that of the variable SKEIN_CONSOLE_MANY.
func many(t *testing.T, quickly int) int {
	t.Helper()
	text := os.Getenv("SKEIN_CONSOLE_MANY")
	if text == "" {
		return quickly
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		t.Fatalf("SKEIN_CONSOLE_MANY is %q; it takes a number of at least 1000", text)
	}
	return n
}

// pair is two tenants of a server, one of which has much.
type pair struct {
	*skeintest.Server
	t *testing.T
}

// textOf returns a page of a tenant.
func (p *pair) textOf(tenant, path string) string {
	p.t.Helper()
	status, body := (&order{Server: p.Server, t: p.t}).ask(tenant, "/console"+path)
	if status != http.StatusOK {
		p.t.Fatalf("%s of %s: %d %.500s", path, tenant, status, body)
	}
	return body
}

// cost is what a page takes: its bytes, how many values the whole process allocates until it is
// there, and, for the eye alone, how long that takes. The bytes of these values are no measure of
// it: the server may read a block of 8 MB for one message.
type cost struct {
	size, allocated float64
	took            time.Duration
}

func (c cost) String() string {
	return fmt.Sprintf("%.1f kB, %.0f values in %.1f ms", c.size/1000, c.allocated, ms(c.took))
}

// costOf reads a page of a tenant several times: the fastest has waited for nobody, and while
// the one that allocated least was made, the process did little else.
func (p *pair) costOf(tenant, path string) cost {
	p.t.Helper()
	c := cost{took: time.Hour, allocated: math.Inf(1)}
	var before, after runtime.MemStats
	for range 18 {
		runtime.ReadMemStats(&before)
		began := time.Now()
		c.size = float64(len(p.textOf(tenant, path)))
		c.took = min(c.took, time.Since(began))
		runtime.ReadMemStats(&after)
		c.allocated = min(c.allocated, float64(after.Mallocs-before.Mallocs))
	}
	return c
}

// compare reads a page of each tenant, and reports when that of the one which has much costs
// more. Time is no measure of it: on a busy machine any page may take four times as long.
func (p *pair) compare(name, little, much string) {
	p.t.Helper()
	a, b := p.costOf("little", little), p.costOf("much", much)
	p.t.Logf("%s: %v; of much %v", name, a, b)
	if b.allocated > 1.5*a.allocated {
		p.t.Errorf("%s allocates %.0f values, and %.0f where there is little", name, b.allocated, a.allocated)
	}
	if b.size > 1.5*a.size {
		p.t.Errorf("%s has %.0f bytes, and %.0f where there is little", name, b.size, a.size)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func newPair(t *testing.T) *pair {
	t.Helper()
	return &pair{skeintest.Start(t, func(o *skein.Options) { o.HTTPListen = "127.0.0.1:0" }), t}
}

// begin makes the thread of a tenant to which messages are added: an agent answers in it first.
func (p *pair) begin(tenant string) {
	p.t.Helper()
	c := p.Client(tenant)
	_, err := c.Send(p.t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{{Kind: events.AgentKind, Name: operator.DemoAgent, Definition: events.JSON(`{"name":"support","type":"ai_human","reactor":"echo"}`)}}})
	p.Must(err)
	made, err := c.Send(p.t.Context(), "", events.CreateThread{Key: "long", AgentID: operator.DemoAgent})
	p.Must(err)
	_, err = c.Ask(p.t.Context(), made.ThreadID, "hello")
	p.Must(err)
}

// The pages of a thread with very many messages cost what those of a short one do. This test and
// the next one run alone: they measure what the process allocates.
func TestScale_LongThread(t *testing.T) {
	p := newPair(t)
	p.Must(p.Reactor("echo", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
		return skein.Answer("hello"), nil
	}))
	ids := map[string]string{}
	for tenant, n := range map[string]int{"little": 300, "much": many(t, 5000)} {
		p.begin(tenant)
		began := time.Now()
		id, err := fillThread(t.Context(), p.Client(tenant), "long", n)
		p.Must(err)
		t.Logf("%d messages were added, and shown, in %v", n, time.Since(began).Round(time.Millisecond))
		ids[tenant] = id
	}
	for _, tab := range []string{"", "/timeline", "/run", "/family", "/state", "/files", "/effects", "/share", "/audit"} {
		p.compare("thread"+tab, "/threads/"+ids["little"]+tab, "/threads/"+ids["much"]+tab)
	}
	for tenant, id := range ids {
		has(t, p.textOf(tenant, "/threads/"+id+"/run"), "completed", "step 1", "not", "Earlier runs")
	}
	first := func(tenant string) string {
		return "/threads/" + ids[tenant] + "?cursor=" + p.earliest(tenant, ids[tenant])
	}
	p.compare("messages near the beginning", first("little"), first("much"))
}

// earliest returns the cursor of a page near the beginning of a conversation.
func (p *pair) earliest(tenant, id string) (cursor string) {
	p.t.Helper()
	for {
		list, err := client.Read(p.t.Context(), p.Client(tenant), events.ListItems{ThreadID: id, Order: "desc", Limit: new(int64(100)), Cursor: cursor})
		p.Must(err)
		if list.NextCursor == "" {
			return cursor
		}
		cursor = list.NextCursor
	}
}

// fill makes many threads of a tenant.
func (p *pair) fill(tenant string, n int) {
	p.t.Helper()
	c := p.Client(tenant)
	numbers, failed := make(chan int), make(chan error, 64)
	var making sync.WaitGroup
	for range cap(failed) {
		making.Go(func() { failed <- createAll(p.t, c, numbers) })
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	making.Wait()
	for range cap(failed) {
		p.Must(<-failed)
	}
}

func createAll(t *testing.T, c *client.Client, numbers <-chan int) (err error) {
	for i := range numbers {
		if err != nil {
			continue // the others are not kept waiting
		}
		_, err = c.Send(t.Context(), "", events.CreateThread{Title: fmt.Sprint("Order ", i), Key: fmt.Sprint("order:", i), AgentID: "support"})
	}
	return err
}

// The list of a tenant with very many threads costs what that of one with few does.
func TestScale_ManyThreads(t *testing.T) {
	p := newPair(t)
	for tenant, n := range map[string]int{"little": 200, "much": many(t, 2000)} {
		began := time.Now()
		p.fill(tenant, n)
		t.Logf("%d threads were made in %v", n, time.Since(began).Round(time.Millisecond))
	}
	p.WaitIdle()
	for name, query := range map[string]string{
		"list": "", "list of open ones": "?status=open", "list of an agent's": "?agentId=support", "list of failed ones": "?status=failed",
		"list by the beginning of keys": "?keyPrefix=order:1", "archived ones": "?archived=true", "those that wait": "?waiting=true",
	} {
		p.compare(name, "/threads"+query, "/threads"+query)
	}
	next := func(tenant string) string {
		list, err := client.Read(t.Context(), p.Client(tenant), events.ListThreads{Limit: new(int64(100))})
		p.Must(err)
		return list.NextCursor
	}
	p.compare("a later page", "/threads?cursor="+next("little"), "/threads?cursor="+next("much"))
	t.Logf("a search of the latest 2,000 titles: %v", p.costOf("much", "/threads?q=Nothing"))
}
