package archive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/backup"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/server"
)

// world is a whole Skein, a client of it, and the log itself.
type world struct {
	t   *testing.T
	ctx context.Context
	url string
	c   *client.Client
	log *eventlog.Log
}

func start(t *testing.T) *world {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{
		Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true, Workers: -1,
	}, zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, ctx: t.Context(), url: s.Addresses().NATS}
	w.c = w.client("acme")
	w.log = w.open()
	return w
}

// restored returns a server with the contents of a backup.
func restored(t *testing.T, dir string) (url string, log *eventlog.Log) {
	t.Helper()
	server := natstest.Start(t)
	log, err := eventlog.Open(natstest.Connect(t, server), eventlog.Config{Patience: natstest.Patience}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	if _, err := backup.Restore(t.Context(), log, dir, 0, func(string, int64) {}); err != nil {
		t.Fatal(err)
	}
	if err := backup.Finish(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	return server.URL(), log
}

// serve runs a Skein on the world's server.
func (w *world) serve() {
	w.t.Helper()
	s, err := server.Start(w.ctx, server.Config{NATS: w.url, HTTPListen: "127.0.0.1:0", Workers: -1},
		zerolog.New(zerolog.NewTestWriter(w.t)).Level(zerolog.WarnLevel))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) client(tenant string) *client.Client {
	w.t.Helper()
	c, err := client.Connect(w.url, client.Options{Tenant: tenant, Timeout: 2 * time.Minute})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// open returns the log of another process.
func (w *world) open() *eventlog.Log {
	w.t.Helper()
	nc := natstest.Dial(w.t, w.url)
	log, err := eventlog.Open(nc, eventlog.Config{Patience: natstest.Patience}, zerolog.Nop(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(log.Close)
	return log
}

// dispatcher returns that of a process with an empty cache.
func (w *world) dispatcher() *commands.Dispatcher {
	w.t.Helper()
	return commands.NewDispatcher(w.open(), w.validator(), commands.Config{}, zerolog.Nop(), nil)
}

// threadID returns a valid id.
func threadID(n int) string { return fmt.Sprintf("T-0190a000-0000-7000-8000-%012d", n) }

// fill writes a thread with turns, and returns its last reply.
func (w *world) fill(id string, turns int) *events.Reply {
	w.t.Helper()
	w.do("thread.create", id, `{"title":"one","metadata":{"m":1},"context":{"turns":0}}`)
	var last *events.Reply
	for n := range turns {
		w.do("item.create", id, fmt.Sprintf(`{"item":{"id":"itm_u%d","type":"message","role":"user","content":[{"type":"input_text","text":"hello %d"}]}}`, n, n))
		w.do("thread.status", id, `{"to":"streaming"}`)
		w.do("execution.create", id, fmt.Sprintf(`{"id":"exe_%d","triggerItemId":"itm_u%d"}`, n, n))
		w.do("step.create", id, fmt.Sprintf(`{"id":"stp_%d","executionId":"exe_%d"}`, n, n))
		w.do("part.put", id, fmt.Sprintf(`{"stepId":"stp_%d","idx":0,"type":"output_text","part":{"type":"output_text","text":"hi %d"}}`, n, n))
		w.do("step.status", id, fmt.Sprintf(`{"stepId":"stp_%d","to":"completed"}`, n))
		w.do("execution.status", id, fmt.Sprintf(`{"executionId":"exe_%d","to":"completed"}`, n))
		w.do("context.set", id, fmt.Sprintf(`{"content":{"turns":%d}}`, n+1))
		last = w.do("thread.status", id, `{"to":"open"}`)
	}
	return last
}

func (w *world) do(command, id, data string) *events.Reply {
	w.t.Helper()
	reply, err := w.c.Do(w.ctx, command, client.Request{ThreadID: id, Data: events.JSON(data)})
	if err != nil {
		w.t.Fatalf("%s: %v", command, err)
	}
	return reply
}

func (w *world) say(id, item, text string) *events.Reply {
	w.t.Helper()
	return w.do("item.create", id, fmt.Sprintf(`{"item":{"id":%q,"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, item, text))
}

// archiver returns one that works like another process.
func (w *world) archiver(told func(archive.Step) error) *archive.Archiver {
	w.t.Helper()
	cfg := archive.Config{Patience: 20 * time.Second}
	if told != nil {
		cfg.Told = func(_ context.Context, _, _ string, step archive.Step) error { return told(step) }
	}
	return archive.New(w.open(), cfg, zerolog.Nop())
}

// archive archives a thread, whatever its age.
func (w *world) archive(id string) archive.Result {
	w.t.Helper()
	r, err := w.archiver(nil).Thread(w.ctx, "acme", id, archive.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	if r.Outcome != archive.Archived {
		w.t.Fatalf("the thread was not archived: %+v", r)
	}
	return r
}

// stored returns the sequences of a thread's commits in the log itself.
func (w *world) stored(id string) (seqs []uint64) {
	w.t.Helper()
	for m, err := range w.log.Stored(w.ctx, w.log.Config().Names.Log("acme", id), 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		seqs = append(seqs, m.Seq)
	}
	return seqs
}

// commit is what a reader sees of a commit.
type commit struct {
	seq     uint64
	version int64
	chain   string
	body    string
}

// commits reads a thread from a sequence on.
func commits(t *testing.T, log *eventlog.Log, id string, from uint64) (list []commit) {
	t.Helper()
	for c, err := range log.Thread(t.Context(), "acme", id, from) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, commit{c.Seq, c.Version, c.Chain, string(c.Body)})
	}
	return list
}

// history reads all that the tenant sees, of a thread or of all.
func (w *world) history(id string, from client.Position) (list []string) {
	w.t.Helper()
	t, err := w.c.Timeline(w.ctx, client.SubscribeOptions{Thread: id, From: from, History: true})
	if err != nil {
		w.t.Fatal(err)
	}
	defer t.Close()
	for e, err := range t.All(w.ctx) {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%d %d %s", e.Seq, e.Version, e.Raw()))
	}
	return list
}

// verify returns the findings of an audit of everything.
func (w *world) verify() []string {
	w.t.Helper()
	var found []string
	contents, err := audit.NewContents(w.ctx, w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := audit.Verify(w.ctx, w.log, w.validator(), audit.Options{
		Checks: []audit.Check{contents}, Finding: func(f audit.Finding) { found = append(found, f.String()) },
	}); err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) validator() *schema.Validator {
	w.t.Helper()
	v, err := schema.New()
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// clean waits until an audit finds nothing: what is derived may lag.
func (w *world) clean() {
	w.t.Helper()
	if end, err := w.log.LastSeq(w.ctx); err != nil || timeline.Of(w.log).Await(w.ctx, end, 20*time.Second) != nil {
		w.t.Fatal("the timeline lags", err)
	}
	w.shown()
	if found := w.verify(); len(found) > 0 {
		w.t.Errorf("the audit finds %v", found)
	}
}

// shown waits until the read models show the log.
func (w *world) shown() {
	w.t.Helper()
	end, err := w.log.LastSeq(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.until("the read models lag", func() bool {
		seq, err := buckets.Shown(w.ctx, w.log)
		return err == nil && seq >= end
	})
}

func (w *world) until(problem string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal(problem)
		}
	}
}

var errKilled = errors.New("killed here")

func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d instead of %d\n got %v\nwant %v", what, len(got), len(want), got, want)
	}
}
