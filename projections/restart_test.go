package projections

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// A runner is killed during its work again and again, and another one started, while a
// random history is written.
func TestRunnerIsKilledAgainAndAgain(t *testing.T) {
	h := newHouse(t)
	a := readtest.NewAuthor(h.House, 7)
	cfg := func() Config {
		return Config{BatchCommits: 1 + a.Rand.IntN(9), CacheBytes: int64(1 + a.Rand.IntN(1<<16)), CheckpointEvery: time.Duration(1+a.Rand.IntN(50)) * time.Millisecond}
	}
	for range 25 {
		r, kill := h.run(cfg())
		at := r.Progress().Seq()
		a.Write(20)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(a.Rand.IntN(30))*time.Millisecond)
		_ = r.Progress().Wait(ctx, at+uint64(a.Rand.IntN(20)))
		cancel()
		kill()
	}
	r, _ := h.run(Config{})
	h.await(r)
	h.Same(a.Threads...)
	if report := h.Verify(); report.Found != 0 || report.Broken != 0 {
		t.Errorf("a verification says %+v", report)
	}
}

// Two runners work on the same buckets.
func TestTwoRunners(t *testing.T) {
	h := newHouse(t)
	first, _ := h.run(Config{BatchCommits: 7})
	second, stop := h.run(Config{BatchCommits: 11})
	a := readtest.NewAuthor(h.House, 8)
	a.Write(300)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end, err := h.EventLog.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Runner{first, second} {
		select {
		case <-ctx.Done():
			t.Fatal("neither got to the end")
		default:
		}
		if r.Progress().Wait(ctx, end) == nil {
			break
		}
	}
	h.Same(a.Threads...)
	stop()
	a.Write(50)
	h.await(first)
	h.Same(a.Threads...)
}

// Each bucket is set back to an earlier state of its own, as a crash of the server may
// leave it, and a runner continues.
func TestBucketsLoseTheirNewestWrites(t *testing.T) {
	h := newHouse(t)
	writes := h.stored()
	a := readtest.NewAuthor(h.House, 9)
	for range 6 { // a batch each, as large as can be
		a.Write(20)
		for range 5 {
			a.ShortLived()
			a.Write(5)
		}
		a.End(a.Threads[a.Rand.IntN(len(a.Threads))])
		r, kill := h.run(Config{CheckpointEvery: 5 * time.Millisecond})
		h.await(r)
		kill()
	}
	recorded := map[string][]*nats.Msg{}
	for len(writes) > 0 {
		m := <-writes
		m.Subject = strings.TrimPrefix(m.Subject, "stored.")
		bucket := strings.Split(m.Subject, ".")[1]
		if strings.HasPrefix(bucket, "thread_") {
			recorded[bucket] = append(recorded[bucket], m)
		}
	}
	seeds := uint64(12)
	if raceDetector {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { crashed(t, h, a.Threads, recorded, rand.New(rand.NewPCG(seed, 2))) })
	}
}

// crashed is a server with the same log, and with a prefix of each bucket's writes.
func crashed(t *testing.T, h *house, threads []string, recorded map[string][]*nats.Msg, rnd *rand.Rand) {
	c := newHouse(t)
	ends, shown := map[string]uint64{}, map[string]uint64{}
	marked, purged := map[string]bool{}, map[string]bool{}
	for m, err := range h.EventLog.Raw(t.Context(), "skein.log.>", 1) {
		if err != nil {
			t.Fatal(err)
		}
		c.Publish(m.Subject, nats.Header{
			events.HeaderChain: m.Header[events.HeaderChain], events.HeaderVersion: m.Header[events.HeaderVersion],
		}, m.Data)
		if commit, err := h.EventLog.Decode(m); err == nil && commit.Events[len(commit.Events)-1].Type == events.LifecycleDeletedType {
			ends[documents.ThreadName(commit.Tenant, commit.Thread)] = commit.Seq
		}
	}
	for _, p := range c.Models.List() {
		list := recorded[p.Bucket]
		var at buckets.Checkpoint
		for _, m := range list[:rnd.IntN(len(list)+1)] {
			header := nats.Header{}
			for _, name := range []string{buckets.HeaderOperation, buckets.HeaderSeq} {
				if v, ok := m.Header[name]; ok {
					header[name] = v
				}
			}
			c.Publish(m.Subject, header, m.Data)
			if seq, _ := buckets.ShownSeq(header, m.Data); !strings.Contains(m.Subject, "._.") {
				shown[m.Subject] = seq
			}
			if p.Kind == documents.Threads && header.Get(buckets.HeaderOperation) != "" {
				marked[strings.TrimPrefix(m.Subject, "$KV."+p.Bucket+".")] = true
			}
			if strings.HasSuffix(m.Subject, "."+buckets.CheckpointKey) {
				if err := json.Unmarshal(m.Data, &at); err != nil {
					t.Fatal(err)
				}
			}
		}
		stream, err := c.EventLog.JetStream().Stream(t.Context(), "KV_"+p.Bucket)
		if err != nil {
			t.Fatal(err)
		}
		for name, seq := range ends { // they are purged after the marker, and before the checkpoint says so
			if p.Kind != documents.Threads && (at.Seq >= seq || marked[name] && rnd.IntN(2) == 0) {
				purged[p.Bucket+name] = true
				if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV."+p.Bucket+"."+name+".>")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	again := c.stored()
	for range rnd.IntN(3) { // killed during its recovery
		enough := len(again) + 1 + rnd.IntN(40)
		r, kill := c.run(Config{BatchCommits: 1 + rnd.IntN(3), CheckpointEvery: time.Millisecond})
		end, err := c.EventLog.LastSeq(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Until(func() bool { return len(again) >= enough || r.Progress().Seq() >= end }, "the runner stands still")
		kill()
	}
	r, _ := c.run(Config{BatchCommits: 1 + rnd.IntN(8)})
	c.await(r)
	c.Same(threads...)
	for len(again) > 0 {
		m := <-again
		m.Subject = strings.TrimPrefix(m.Subject, "stored.")
		bucket, key, _ := strings.Cut(strings.TrimPrefix(m.Subject, "$KV."), ".")
		if _, ok := recorded[bucket]; !ok || strings.HasPrefix(key, "_.") {
			continue
		}
		seq, _ := buckets.ShownSeq(m.Header, m.Data)
		if seq < shown[m.Subject] {
			t.Errorf("%s went back from %d to %d", m.Subject, shown[m.Subject], seq)
		}
		shown[m.Subject] = seq
		if thread := threadOf(key); seq < ends[thread] && purged[bucket+thread] {
			t.Errorf("%s came back at %d, and its thread ended at %d", m.Subject, seq, ends[thread])
		}
	}
}

// stored returns every message that the buckets store from now on, in the order of
// each bucket, and none that they refuse.
func (h *house) stored() <-chan *nats.Msg {
	h.Helper()
	for _, p := range h.Models.List() {
		stream, err := h.EventLog.JetStream().Stream(h.Context(), "KV_"+p.Bucket)
		if err != nil {
			h.Fatal(err)
		}
		cfg := stream.CachedInfo().Config
		cfg.RePublish = &jetstream.RePublish{Source: ">", Destination: "stored.>"}
		if _, err := h.EventLog.JetStream().UpdateStream(h.Context(), cfg); err != nil {
			h.Fatal(err)
		}
	}
	all := make(chan *nats.Msg, 100_000)
	if _, err := h.NC.ChanSubscribe("stored.>", all); err != nil {
		h.Fatal(err)
	}
	if err := h.NC.Flush(); err != nil {
		h.Fatal(err)
	}
	return all
}

// threadOf returns the thread that a key belongs to.
func threadOf(key string) string {
	parts := strings.SplitN(key, ".", 3)
	return parts[0] + "." + parts[1]
}

// contents stores pages as package files does.
type contents struct{ store jetstream.ObjectStore }

func (c contents) Keep(context.Context, string, []byte) (events.FileContent, error) {
	return events.FileContent{}, errors.New("no file is written here")
}

func (c contents) KeepPage(ctx context.Context, tenant, _ string, page []byte) error {
	sum := sha256.Sum256(page)
	_, err := c.store.PutBytes(ctx, tenant+"/"+hex.EncodeToString(sum[:]), page)
	return err
}

func (c contents) Hold(context.Context, string, string) (bool, error) { return true, nil }

// A fork of a long history whose inherited items were changed before a runner sees it: the
// runner folds the fork and the changes together, and has the documents of the changed items.
func TestRunner_CatchesUpWithChangedForks(t *testing.T) {
	h := newHouse(t)
	store, err := h.EventLog.JetStream().ObjectStore(t.Context(), h.EventLog.Config().Names.Bucket(assets.FileBucket))
	if err != nil {
		t.Fatal(err)
	}
	h.Dispatcher = commands.NewDispatcher(h.EventLog, h.Validator, commands.Config{Contents: contents{store}}, zerolog.Nop(), nil)
	parent := h.Do("thread.create", "", `{}`).ThreadID
	for n := range 20 {
		h.Do("item.create", parent, fmt.Sprintf(`{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"%d %s"}]}}`, n, strings.Repeat("x", 40<<10)))
	}
	forks := make([]string, 2)
	for i := range forks {
		forks[i] = h.Do("thread.fork", parent, `{"messageIndex":19}`).Result.ChildID
		item := func(n int64) string { return events.InheritedItemID(acme, forks[i], n) }
		h.Do("message.edit", forks[i], `{"itemId":"`+item(1)+`","content":[{"type":"input_text","text":"mine"}]}`)
		h.Do("message.edit", forks[i], `{"itemId":"`+item(2)+`","silent":true}`)
		h.Do("message.delete", forks[i], `{"itemId":"`+item(3)+`"}`)
		h.Do("thread.truncate", forks[i], `{"messageIndex":14}`)
	}
	r, _ := h.run(Config{})
	h.await(r)
	h.Same(append(forks, parent)...)
}
