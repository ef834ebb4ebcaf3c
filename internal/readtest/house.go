package readtest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/schema"
)

// Acme is the tenant of the tests.
const Acme = "acme"

// House is a server with a log, a dispatcher, empty buckets, and everything else that a
// test needs of them. It runs no runner.
type House struct {
	testing.TB
	Server     *embedded.Server
	NC         *nats.Conn
	EventLog   *eventlog.Log
	Dispatcher *commands.Dispatcher
	Validator  *schema.Validator
	Models     *documents.Models
}

// New returns a house for a test.
func New(t testing.TB) *House {
	t.Helper()
	s := natstest.Start(t)
	h := &House{TB: t, Server: s, NC: natstest.Connect(t, s), Models: documents.NewModels()}
	h.EventLog = h.NewLog()
	if err := h.EventLog.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.Validator, err = schema.New(); err != nil {
		t.Fatal(err)
	}
	h.Dispatcher = commands.NewDispatcher(h.EventLog, h.Validator, commands.Config{}, zerolog.Nop(), nil)
	for _, p := range h.Models.List() {
		if err := assets.EnsureBucket(t.Context(), h.EventLog.Streams(), p.Bucket); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// NewLog returns the log on a connection of its own, as another process has it.
func (h *House) NewLog() *eventlog.Log {
	h.Helper()
	log, err := eventlog.Open(natstest.Connect(h, h.Server), eventlog.Config{Patience: natstest.Patience}, zerolog.Nop(), nil)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(log.Close)
	return log
}

// Do does a command, which must not be refused. The data is JSON.
func (h *House) Do(name, thread, data string) *events.Reply {
	h.Helper()
	r, err := h.Try(name, thread, data)
	if err != nil {
		h.Fatalf("%s: %v", name, err)
	}
	return r
}

// Try does a command, which may be refused.
func (h *House) Try(name, thread, data string) (*events.Reply, error) {
	body := `{"data":` + data
	if thread != "" {
		body += `,"threadId":"` + thread + `"`
	}
	return h.Dispatcher.Do(h.Context(), Acme, name, []byte(body+"}"), commands.Meta{})
}

// React does the commands of one turn, in one commit of 12 events.
func (h *House) React(thread string, n int) *events.Reply {
	h.Helper()
	id := func(kind string) string {
		return fmt.Sprintf("%s_%s_%d", kind, strings.ReplaceAll(thread[2:], "-", "")[20:], n)
	}
	return h.Do("thread.commit", thread, Turn(id))
}

// Turn returns the commands of one turn as the data of a thread.commit.
func Turn(id func(string) string) string {
	return fmt.Sprintf(`{"commands":[
	 {"command":"item.create","data":{"item":{"id":%[1]q,"type":"message","role":"user","content":[{"type":"input_text","text":"Where is my order? It was to be here on Monday, and it is Friday now."}]}}},
	 {"command":"thread.status","data":{"to":"streaming"}},
	 {"command":"execution.create","data":{"id":%[2]q,"triggerItemId":%[1]q,"reactionItemId":%[3]q}},
	 {"command":"step.create","data":{"id":%[4]q,"executionId":%[2]q}},
	 {"command":"part.put","data":{"stepId":%[4]q,"idx":0,"type":"output_text","part":{"type":"output_text","text":"It is on its way."}}},
	 {"command":"item.create","data":{"item":{"id":%[3]q,"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is on its way, and will be with you tomorrow before noon."}]}}},
	 {"command":"step.status","data":{"stepId":%[4]q,"to":"completed","continueLoop":false}},
	 {"command":"item.status","data":{"itemId":%[1]q,"to":"completed"}},
	 {"command":"item.status","data":{"itemId":%[3]q,"to":"completed"}},
	 {"command":"execution.status","data":{"executionId":%[2]q,"to":"completed"}},
	 {"command":"context.set","data":{"patch":{"last":%[3]q}}},
	 {"command":"thread.status","data":{"to":"open"}}]}`, id("itm"), id("exe"), id("rea"), id("stp"))
}

// Start runs a runner until the function that it returns is called, or the test ends.
func (h *House) Start(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	h.Cleanup(stop)
	return stop
}

// Await blocks until a runner has stored what the log holds now.
func (h *House) Await(p *buckets.Progress) {
	h.Helper()
	end, err := h.EventLog.LastSeq(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	if err := p.Wait(ctx, end); err != nil {
		h.Fatalf("the runner is at %d of %d: %v", p.Seq(), end, err)
	}
}

// Live returns every document of a bucket by key, as JSON.
func (h *House) Live(p documents.Projection) map[string]string {
	h.Helper()
	all := map[string]string{}
	for from := uint64(1); ; {
		got, err := h.EventLog.Bucket(p.Bucket).Range(h.Context(), ">", from, 1000)
		if err != nil {
			h.Fatal(err)
		}
		for _, m := range got {
			from = m.Seq + 1
			if !strings.HasPrefix(m.Subject, "_.") {
				all[m.Subject] = string(m.Data)
			}
		}
		if len(got) < 1000 {
			return all
		}
	}
}

// Folded returns what the log says of a thread.
func (h *House) Folded(thread string, until documents.Until) *documents.Memory {
	h.Helper()
	m, err := h.Models.Fold(h.EventLog.Thread(h.Context(), Acme, thread, 1), until, eventlog.PagesOn(h.EventLog.Streams()).In(h.Context()))
	if err != nil {
		h.Fatal(err)
	}
	return m
}

// Same checks that every bucket holds exactly what the log says of the threads and
// of the tenant.
func (h *House) Same(threads ...string) {
	h.Helper()
	want := [documents.Kinds]map[string]string{}
	for i := range want {
		want[i] = map[string]string{}
	}
	for _, id := range append([]string{events.TenantAggregate}, threads...) {
		for _, s := range h.Folded(id, documents.Until{}).All(documents.AllKinds) {
			want[s.Place.Kind][s.Place.Key()] = Encode(h, s.Doc)
		}
	}
	for _, p := range h.Models.List() {
		have := h.Live(p)
		for key, doc := range want[p.Kind] {
			if have[key] != doc {
				h.Errorf("%s %s:\nlive %s\nlog  %s", p.Bucket, key, have[key], doc)
			}
			delete(have, key)
		}
		for key, doc := range have {
			h.Errorf("%s %s should not be there: %s", p.Bucket, key, doc)
		}
	}
}

// Encode returns a document as JSON.
func Encode(t testing.TB, doc any) string {
	t.Helper()
	b, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Until waits until something is so.
func (h *House) Until(so func() bool, or string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for !so() {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			h.Fatal(or)
		}
	}
}

// Unmarshal decodes JSON.
func Unmarshal(t testing.TB, raw string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), to); err != nil {
		t.Fatal(err)
	}
}

// HeapInUse returns the bytes on the heap that are in use.
func HeapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one found is free now
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
