package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// thread reads the commits of a thread from a sequence on.
func thread(t *testing.T, l *Log, id string, from uint64) (seqs []uint64, broken []uint64) {
	t.Helper()
	for c, err := range l.Thread(t.Context(), tenant, id, from) {
		var bad *events.BrokenError
		switch {
		case errors.As(err, &bad):
			broken = append(broken, bad.Seq)
		case err != nil:
			t.Fatal(err)
		default:
			seqs = append(seqs, c.Seq)
		}
	}
	return seqs, broken
}

// spoil publishes a message on a thread's subject that is no commit, and returns its
// sequence.
func spoil(t *testing.T, l *Log, id string, header nats.Header, body string) uint64 {
	t.Helper()
	ack, err := l.conn.Publish(&nats.Msg{Subject: l.cfg.Names.Log(tenant, id), Header: header, Data: []byte(body)})
	if err != nil || ack.Error != nil {
		t.Fatal(err, ack.Error)
	}
	return ack.Seq
}

// spoilt puts one message of each kind that cannot be read in the log.
func spoilt(t *testing.T, l *Log, id string) []uint64 {
	t.Helper()
	good := newAuthor(77).next(t, 1).Commit
	header := func(version string) nats.Header {
		return nats.Header{events.HeaderVersion: {version}, events.HeaderChain: {good.Chain}}
	}
	return []uint64{
		spoil(t, l, id, header("1"), "garbage"),
		spoil(t, l, id, header("1"), ""),
		spoil(t, l, id, header("1"), "[]"),
		spoil(t, l, id, nil, string(good.Body)),
		spoil(t, l, id, header("one"), string(good.Body)),
		spoil(t, l, id, header("1"), string(good.Body)), // of another thread
		spoil(t, l, id, header("1"), strings.ReplaceAll(strings.ReplaceAll(string(good.Body), good.Thread, id), tenant, "other")),
		spoil(t, l, id, header("9"), strings.ReplaceAll(string(good.Body), good.Thread, id)), // of another version
	}
}

func TestThreadOverMoreThanOneRead(t *testing.T) {
	t.Parallel()
	l := start(t)
	many, large := newAuthor(1), newAuthor(2)
	var want []uint64
	for i := range 2*streams.BatchMessages + 10 {
		many.write(t, l, 1, 1)
		want = append(want, many.seq)
		if i%250 == 0 { // eleven megabytes of commits in between
			w := Write{Commit: large.draft(t, 5, 450<<10), Expected: large.seq}
			if err := l.Append(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			large.stored(w.Commit)
		}
	}
	if got, _ := thread(t, l, many.thread, 0); !slices.Equal(got, want) {
		t.Errorf("%d commits, not %d", len(got), len(want))
	}
	if got, _ := thread(t, l, many.thread, want[600]); !slices.Equal(got, want[600:]) {
		t.Errorf("from the middle %d commits, not %d", len(got), len(want)-600)
	}
	if got, _ := thread(t, l, large.thread, 0); len(got) != 5 {
		t.Errorf("%d large commits", len(got))
	}
	if got, broken := thread(t, l, "T-none", 0); len(got)+len(broken) != 0 {
		t.Errorf("a thread that is not there has %d commits", len(got))
	}
	n := 0
	for range l.Thread(t.Context(), tenant, many.thread, 0) { // the reader may stop
		if n++; n == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	told := 0
	for _, err := range l.Thread(ctx, tenant, many.thread, 0) {
		if told++; !errors.Is(err, context.Canceled) {
			t.Errorf("with a cancelled context: %v", err)
		}
	}
	if told != 1 {
		t.Errorf("a cancelled context is told %d times, and not once", told)
	}
}

func TestGetAndLast(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	if c, err := l.Last(t.Context(), tenant, a.thread); c != nil || err != nil {
		t.Errorf("the last of nothing: %v, %v", c, err)
	}
	a.write(t, l, 3, 2)
	c, err := l.Last(t.Context(), tenant, a.thread)
	if err != nil || c == nil || c.Seq != 3 || c.Version != 6 || c.Chain != a.chain || len(c.Events) != 2 {
		t.Errorf("the last is %+v: %v", c, err)
	}
	for _, seq := range []uint64{0, 4, 1 << 40} {
		if c, err := l.Get(t.Context(), seq); c != nil || err != nil {
			t.Errorf("at %d: %v, %v", seq, c, err)
		}
	}
	if c, err := l.Get(t.Context(), 2); err != nil || c == nil || c.Seq != 2 {
		t.Errorf("at 2: %v, %v", c, err)
	}
}

func TestBrokenMessagesAreNamedAndPassed(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	a.write(t, l, 2, 1)
	want := spoilt(t, l, a.thread)
	a.seq = want[len(want)-1]
	a.write(t, l, 2, 1)
	seqs, broken := thread(t, l, a.thread, 0)
	if !slices.Equal(broken, want) || !slices.Equal(seqs, []uint64{1, 2, a.seq - 1, a.seq}) {
		t.Errorf("broken are %v, good are %v; want %v broken", broken, seqs, want)
	}
	var bad *events.BrokenError
	if _, err := l.Get(t.Context(), want[0]); !errors.As(err, &bad) || bad.Seq != want[0] || bad.Thread != a.thread || bad.Tenant != tenant {
		t.Errorf("got %v", err)
	}
	raw := 0
	for m, err := range l.Raw(t.Context(), l.cfg.Names.Log(tenant, "*"), want[0]) {
		if err != nil {
			t.Fatal(err)
		}
		if raw == 0 && string(m.Data) != "garbage" {
			t.Errorf("raw: %q", m.Data)
		}
		raw++
	}
	if raw != len(want)+2 {
		t.Errorf("%d raw messages", raw)
	}
}

func TestReadsWithoutAStreamFailAtOnce(t *testing.T) {
	t.Parallel()
	l := bare(t, Config{})
	best := time.Hour // of a few: the machine may be loaded
	for range 5 {
		began := time.Now()
		if _, err := l.Get(t.Context(), 1); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("got %v", err)
		}
		if _, err := l.LastSeq(t.Context()); err == nil {
			t.Error("a log that is not there has an end")
		}
		best = min(best, time.Since(began))
	}
	if best > streams.ReadTimeout/2 {
		t.Errorf("it took %v", best)
	}
}

// bucket makes a bucket with n documents of a size, keys acme.T-1.0 and so on.
func bucket(t *testing.T, l *Log, name string, n, size int) docFence {
	t.Helper()
	if err := assets.EnsureBucket(t.Context(), l.conn, name); err != nil {
		t.Fatal(err)
	}
	fence := fenceOf(t, l, name)
	body := []byte(strings.Repeat("x", size))
	for i := range n {
		if err := fence.put(t, fmt.Sprint("acme.T-1.", i), body); err != nil {
			t.Fatal(err)
		}
	}
	if err := fence.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return fence
}

func keysOf(docs []streams.Message) []string {
	keys := []string{}
	for _, m := range docs {
		keys = append(keys, m.Subject)
	}
	return keys
}

func TestKeys(t *testing.T) {
	t.Parallel()
	l := start(t)
	const name = "thread_items"
	fence := bucket(t, l, name, 5, 10)
	if err := errors.Join(fence.remove(t, "acme.T-1.3"), fence.finalPut(t, "acme.T-1.0", []byte("new"))); err != nil {
		t.Fatal(err)
	}
	for want, keys := range map[string][]string{
		"[acme.T-1.1 acme.T-1.2 acme.T-1.4 acme.T-1.0]": {"acme.T-1.*"},
		"[acme.T-1.2 acme.T-1.0]":                       {"acme.T-1.0", "acme.T-1.9", "acme.T-1.3", "acme.T-1.2"},
		"[]":                                            {"acme.T-2.*", "other"},
	} {
		docs, err := l.Bucket(name).Get(t.Context(), keys...)
		if got := fmt.Sprint(keysOf(docs)); err != nil || got != want {
			t.Errorf("keys %v: %s, want %s: %v", keys, got, want, err)
		}
	}
	docs, err := l.Bucket(name).Get(t.Context(), "acme.T-1.0")
	if err != nil || len(docs) != 1 || string(docs[0].Data) != "new" || docs[0].Seq != fence.Last() {
		t.Errorf("got %+v: %v", docs, err)
	}
	if docs, err := l.Bucket("thread_nothing").Get(t.Context(), "a"); err == nil {
		t.Errorf("a bucket that is not there: %v", docs)
	}
}

func TestKeysByTheThousand(t *testing.T) {
	t.Parallel()
	l := start(t)
	bucket(t, l, "full", 1024, 10)
	if docs, err := l.Bucket("full").Get(t.Context(), "acme.>"); err != nil || len(docs) != 1024 {
		t.Errorf("%d documents: %v", len(docs), err)
	}
	bucket(t, l, "over", 1025, 10)
	if docs, err := l.Bucket("over").Get(t.Context(), "acme.>"); !errors.Is(err, streams.ErrTooMany) || len(docs) != 0 {
		t.Errorf("%d documents: %v", len(docs), err)
	}
	bucket(t, l, "large", 30, 1<<20) // more than one read
	docs, err := l.Bucket("large").Get(t.Context(), "acme.>")
	if err != nil || len(docs) != 30 {
		t.Errorf("%d large documents: %v", len(docs), err)
	}
}

func TestRange(t *testing.T) {
	t.Parallel()
	l := start(t)
	const name = "thread_items"
	fence := bucket(t, l, name, 40, 10)
	for i := range 30 { // a page of nothing but markers
		if err := fence.remove(t, fmt.Sprint("acme.T-1.", i+5)); err != nil {
			t.Fatal(err)
		}
	}
	if err := fence.finalPut(t, "acme.T-2.0", []byte("x")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for from := uint64(0); ; {
		docs, err := l.Bucket(name).Range(t.Context(), "acme.*.*", from, 3)
		if err != nil || len(docs) > 3 {
			t.Fatalf("%d documents: %v", len(docs), err)
		}
		got = append(got, keysOf(docs)...)
		if len(docs) < 3 {
			break
		}
		from = docs[2].Seq + 1
	}
	if len(got) != 11 || got[5] != "acme.T-1.35" || got[10] != "acme.T-2.0" {
		t.Errorf("got %v", got)
	}
	if docs, err := l.Bucket(name).Range(t.Context(), "acme.>", 0, 1); err != nil || len(docs) != 1 {
		t.Errorf("%d documents with a limit of one: %v", len(docs), err)
	}
	if docs, err := l.Bucket(name).Range(t.Context(), "nobody.>", 0, 5); err != nil || len(docs) != 0 {
		t.Errorf("%d documents of nobody: %v", len(docs), err)
	}
	bucket(t, l, "many", 3000, 10)
	if docs, err := l.Bucket("many").Range(t.Context(), "acme.>", 0, 2500); err != nil || len(docs) != 2500 {
		t.Errorf("%d of 2500 documents: %v", len(docs), err)
	}
}
