package projections

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/schema"
)

const acme = "acme"

// house is a server with a log, a dispatcher and everything a test needs of
// them. A runner runs when a test asks for one.
type house struct {
	testing.TB
	server     *embedded.Server
	nc         *nats.Conn
	log        *eventlog.Log
	dispatcher *commands.Dispatcher
	validator  *schema.Validator
	models     *documents.Models
}

func newHouse(t testing.TB) *house {
	t.Helper()
	s := natstest.Start(t)
	h := &house{TB: t, server: s, nc: natstest.Connect(t, s), models: documents.NewModels()}
	h.log = h.newLog()
	if err := h.log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.validator, err = schema.New(); err != nil {
		t.Fatal(err)
	}
	h.dispatcher = commands.NewDispatcher(h.log, h.validator, commands.Config{}, zerolog.Nop(), nil)
	if err := New(h.log, Config{}, zerolog.Nop(), nil).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// newLog gives the log on a connection of its own, as another process has it.
func (h *house) newLog() *eventlog.Log {
	h.Helper()
	log, err := eventlog.Open(natstest.Connect(h, h.server), eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(log.Close)
	return log
}

// run runs a runner until the function that it gives is called, or the test
// ends.
func (h *house) run(cfg Config) (*Runner, func()) {
	h.Helper()
	return h.start(New(h.newLog(), cfg, zerolog.New(zerolog.NewTestWriter(h)).Level(zerolog.WarnLevel), nil))
}

func (h *house) runWith(cfg Config, m Metrics) *Runner {
	h.Helper()
	r, _ := h.start(New(h.newLog(), cfg, zerolog.Nop(), m))
	return r
}

func (h *house) start(r *Runner) (*Runner, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx)
	}()
	stop := func() {
		cancel()
		<-done
	}
	h.Cleanup(stop)
	return r, stop
}

// do does a command, which must pass. The data is JSON.
func (h *house) do(name, thread, data string) *events.Reply {
	h.Helper()
	r, err := h.try(name, thread, data)
	if err != nil {
		h.Fatalf("%s: %v", name, err)
	}
	return r
}

func (h *house) try(name, thread, data string) (*events.Reply, error) {
	body := `{"data":` + data
	if thread != "" {
		body += `,"threadId":"` + thread + `"`
	}
	return h.dispatcher.Do(h.Context(), acme, name, []byte(body+"}"), commands.Meta{})
}

// react does the commands of one turn, in one commit of 12 events.
func (h *house) react(thread string, n int) *events.Reply {
	h.Helper()
	id := func(kind string) string {
		return fmt.Sprintf("%s_%s_%d", kind, strings.ReplaceAll(thread[2:], "-", "")[20:], n)
	}
	return h.do("thread.commit", thread, turn(id))
}

// turn gives a react's commands as the data of a thread.commit.
func turn(id func(string) string) string {
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

// await waits until a runner has stored what the log holds now.
func (h *house) await(r *Runner) {
	h.Helper()
	end, err := h.log.LastSeq(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	if err := r.Progress().Wait(ctx, end); err != nil {
		h.Fatalf("the runner is at %d of %d: %v", r.Progress().Seq(), end, err)
	}
}

// live gives every document of a bucket by key, as JSON.
func (h *house) live(p documents.Projection) map[string]string {
	h.Helper()
	all := map[string]string{}
	for from := uint64(1); ; {
		got, err := h.log.Bucket(p.Bucket).Range(h.Context(), ">", from, 1000)
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

// folded gives what the log says of a thread.
func (h *house) folded(thread string, until documents.Until) *documents.Memory {
	h.Helper()
	m, err := h.models.Fold(h.log.Thread(h.Context(), acme, thread, 1), until)
	if err != nil {
		h.Fatal(err)
	}
	return m
}

// same checks that every bucket holds exactly what the log says of the threads and
// of the tenant.
func (h *house) same(threads ...string) {
	h.Helper()
	want := [documents.Kinds]map[string]string{}
	for i := range want {
		want[i] = map[string]string{}
	}
	for _, id := range append([]string{events.TenantAggregate}, threads...) {
		for _, s := range h.folded(id, documents.Until{}).All(documents.AllKinds) {
			want[s.Place.Kind][s.Place.Key()] = encode(h, s.Doc)
		}
	}
	for _, p := range h.models.List() {
		have := h.live(p)
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

func encode(t testing.TB, doc any) string {
	t.Helper()
	b, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// counts is metrics for a test.
type counts struct {
	NoMetrics
	seen atomic.Int64
}

func (c *counts) Broken(uint64) { c.seen.Add(1) }

func (c *counts) broken() int64 { return c.seen.Load() }

// until asks again and again whether something is so.
func (h *house) until(so func() bool, or string) {
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

func unmarshal(t testing.TB, raw string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), to); err != nil {
		t.Fatal(err)
	}
}
