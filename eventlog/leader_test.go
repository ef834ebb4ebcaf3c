package eventlog

import (
	"errors"
	"testing"
	"time"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

// A read from the leader returns the same message as a direct get, and ErrNoMessage where there
// is none.
func TestLeader_ReturnsWhatADirectGetReturns(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	a.write(t, l, 1, 1)
	first := a.seq
	a.write(t, l, 1, 2)
	second := history(t, l)[1]
	for name, test := range map[string]struct{ after, want uint64 }{
		"the first": {0, first}, "the next": {first, second.Seq}, "nothing more": {second.Seq, 0},
	} {
		c, err := l.After(t.Context(), tenant, second.Thread, test.after)
		if err != nil || (c == nil) != (test.want == 0) || c != nil && (c.Seq != test.want || c.Chain == "") {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if c, err := l.Newest(t.Context(), tenant, second.Thread); err != nil || c == nil || c.Seq != second.Seq || c.Version != second.Version {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := l.Newest(t.Context(), tenant, "T-nobody"); err != nil || c != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := l.Get(t.Context(), second.Seq+1); err != nil || c != nil {
		t.Errorf("%+v, %v", c, err)
	}
	l.conn.NATS().Close()
	if _, err := l.After(t.Context(), tenant, second.Thread, 0); err == nil {
		t.Error("a log that cannot be asked has nothing to say")
	}
}

// A reader who must see what was written waits until a copy shows it.
func TestKeysOfACopyThatIsFarEnough(t *testing.T) {
	t.Parallel()
	l := start(t)
	const bucket = "thread_items"
	must(t, assets.EnsureBucket(t.Context(), l.conn, bucket))
	f := fenceOf(t, l, bucket)
	must(t, f.finalPut(t, "a.b", []byte("1")))
	if m, ok, err := l.Bucket(bucket).Newest(t.Context(), "a.b"); err != nil || !ok || string(m.Data) != "1" || m.Subject != "a.b" || m.Seq != 1 {
		t.Errorf("%+v, %v, %v", m, ok, err)
	}
	if m, ok, err := l.Bucket(bucket).Newest(t.Context(), "a.c"); err != nil || ok {
		t.Errorf("%+v, %v", m, err)
	}
	if got, err := l.Bucket(bucket).GetAt(t.Context(), 1, "a.b", "a.c"); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	answered := make(chan []streams.Message, 1)
	go func() {
		got, err := l.Bucket(bucket).GetAt(t.Context(), 3, "a.b", "a.c")
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	must(t, f.finalPut(t, "a.b", []byte("2")))
	must(t, f.finalPut(t, "a.c", []byte("3")))
	if got := natstest.Within(t, "the documents", answered); len(got) != 2 || string(got[0].Data) != "2" || string(got[1].Data) != "3" {
		t.Errorf("%+v", got)
	}
	began := time.Now()
	if got, err := l.Bucket(bucket).GetAt(t.Context(), 4, "a.b"); err == nil || errors.Is(err, streams.ErrTooMany) || time.Since(began) < streams.ReadTimeout/2 {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, f.remove(t, "a.b"))
	must(t, f.Flush(t.Context()))
	if m, ok, err := l.Bucket(bucket).Newest(t.Context(), "a.b"); err != nil || ok {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := l.Bucket(bucket).GetAt(t.Context(), 0, "x.y"); err != nil {
		t.Error(err)
	}
	// A message that somebody else has written, without a header.
	if err := l.conn.NATS().Publish("$KV."+l.cfg.Names.Bucket(bucket)+".z", []byte("4")); err != nil {
		t.Fatal(err)
	}
	natstest.Eventually(t, "the foreign document", func() bool {
		m, ok, err := l.Bucket(bucket).Newest(t.Context(), "z")
		return err == nil && ok && string(m.Data) == "4"
	})
}
