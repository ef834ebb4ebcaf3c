package projections

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// put writes a message of a bucket as another process does.
func (h *house) put(bucket string, m streams.Message, header nats.Header) {
	h.Helper()
	if header == nil {
		header = nats.Header{}
	}
	header[jetstream.MsgIDHeader] = []string{rand.Text()}
	if _, err := h.EventLog.JetStream().PublishMsg(h.Context(), &nats.Msg{Subject: h.EventLog.Bucket(bucket).Subject(m.Subject), Data: m.Data, Header: header}); err != nil {
		h.Fatal(err)
	}
}

// newest returns the message under a key of a bucket.
func (h *house) newest(bucket, key string) streams.Message {
	h.Helper()
	m, ok, err := h.EventLog.Bucket(bucket).Newest(h.Context(), key)
	if err != nil || !ok {
		h.Fatalf("%s %s: %v, %v", bucket, key, ok, err)
	}
	return m
}

// freeze marks a thread as cold, and removes its documents of some read models.
func (h *house) freeze(thread string, kinds documents.Mask) {
	h.Helper()
	name := documents.ThreadName(acme, thread)
	h.put("thread_threads", h.newest("thread_threads", name), buckets.Mark{Cold: true, Bare: true}.Header())
	for _, p := range h.Models.List() {
		if !(kinds & documents.ColdKinds).Has(p.Kind) {
			continue
		}
		bucket := h.EventLog.Bucket(p.Bucket)
		stream, err := h.EventLog.JetStream().Stream(h.Context(), bucket.Stream())
		if err == nil {
			err = stream.Purge(h.Context(), jetstream.WithPurgeSubject(bucket.Subject(name+".>")))
		}
		if err != nil {
			h.Fatal(err)
		}
	}
}

// A thread is brought back by a write, whatever the runner has in memory, and whatever of its
// documents that are still there.
func TestThaw_BringsBackEverything(t *testing.T) {
	h := newHouse(t)
	id := h.Do("thread.create", "", `{}`).ThreadID
	for n := range 5 {
		h.React(id, n)
	}
	for n := range 3 {
		h.Do("context.set", id, fmt.Sprintf(`{"patch":{"k%d":%q}}`, n, strings.Repeat("x", 300<<10)))
	}
	h.Do("message.delete", id, `{"itemId":"`+fmt.Sprintf("itm_%s_%d", strings.ReplaceAll(id[2:], "-", "")[20:], 1)+`"}`)
	r, kill := h.run(Config{})
	h.await(r)
	for _, gone := range []documents.Mask{documents.ColdKinds, documents.Mask(0).With(documents.Items), 0} {
		h.freeze(id, gone)
		h.Do("thread.truncate", id, `{"messageIndex":7}`)
		h.React(id, 100+int(gone))
		h.await(r)
		h.Same(id)
		kill()
		h.freeze(id, gone)
		h.React(id, 200+int(gone))
		r, kill = h.run(Config{})
		h.await(r)
		h.Same(id)
	}
	if mark := buckets.MarkOf(h.newest("thread_threads", documents.ThreadName(acme, id)).Header); mark.Cold || mark.Thawed == 0 {
		t.Errorf("%+v", mark)
	}
}

// The server loses what one bucket got since before a thread was brought back: it is brought
// back again.
func TestThaw_SurvivesLostWrites(t *testing.T) {
	h := newHouse(t)
	id := h.Do("thread.create", "", `{}`).ThreadID
	h.React(id, 1)
	h.React(id, 2)
	r, kill := h.run(Config{})
	h.await(r)
	kill()
	checkpoints := map[documents.Kind]streams.Message{}
	for _, p := range h.Models.List() {
		if documents.ColdKinds.Has(p.Kind) {
			checkpoints[p.Kind] = h.newest(p.Bucket, buckets.CheckpointKey)
		}
	}
	h.freeze(id, documents.ColdKinds)
	h.React(id, 3)
	r, kill = h.run(Config{})
	h.await(r)
	h.React(id, 4)
	h.await(r)
	h.Same(id)
	kill()
	for k, checkpoint := range checkpoints {
		p := h.Models.Of(k)
		if err := h.EventLog.JetStream().DeleteStream(t.Context(), h.EventLog.Bucket(p.Bucket).Stream()); err != nil {
			t.Fatal(err)
		}
		if err := assets.EnsureBucket(t.Context(), h.EventLog.Streams(), p.Bucket); err != nil {
			t.Fatal(err)
		}
		h.put(p.Bucket, checkpoint, nil)
		r, kill = h.run(Config{})
		h.await(r)
		h.Same(id)
		kill()
		if t.Failed() {
			t.Fatalf("after %s lost its newest writes", p.Name)
		}
	}
}

// What is brought back is stored after everything that was there, the pieces of a large document
// too: what another process removes up to there is not missed.
func TestThaw_WritesAfterWhatIsRemoved(t *testing.T) {
	h := newHouse(t)
	r, kill := h.run(Config{})
	id, item, _ := h.LargeItem()
	h.await(r)
	kill()
	h.freeze(id, 0)
	ends := map[string]uint64{}
	for _, p := range h.Models.List() {
		var err error
		if ends[p.Bucket], err = h.EventLog.Streams().LastSeq(t.Context(), h.EventLog.Bucket(p.Bucket).Stream()); err != nil {
			t.Fatal(err)
		}
	}
	h.Do("message.edit", id, fmt.Sprintf(`{"itemId":%q,"metadata":{"seen":true}}`, item)) // its document is read
	r, _ = h.run(Config{})
	h.await(r)
	for name, end := range ends {
		bucket := h.EventLog.Bucket(name)
		stream, err := h.EventLog.JetStream().Stream(t.Context(), bucket.Stream())
		if err == nil {
			err = stream.Purge(t.Context(), jetstream.WithPurgeSubject(bucket.Subject(documents.ThreadName(acme, id)+".>")), jetstream.WithPurgeSequence(end+1))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if report := h.Verify(); report.Found != 0 {
		t.Errorf("%+v", report.Differences)
	}
}
