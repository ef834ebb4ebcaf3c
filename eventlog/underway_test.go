package eventlog

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

// hasty is a connection on which the next publishes to the log are refused as a
// cluster refuses one while another of the same subject is on its way.
type hasty struct {
	*nats.Conn
	refuse atomic.Int32
}

func (h *hasty) RequestMsg(m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
	if m.Header.Get(streams.HeaderExpected) != "" && h.refuse.Add(-1) >= 0 {
		return &nats.Msg{Data: []byte(`{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"},"stream":"SKEIN_LOG","seq":0}`)}, nil
	}
	return h.Conn.RequestMsg(m, timeout)
}

// A commit that is refused because of a write in flight is stored if that write failed, and has
// a conflict only if it was stored.
func TestAppend_RefusedForAWriteInFlight(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	direct := openLog(t, nc, Config{}, nil)
	js, err := jetstream.New(nc)
	must(t, err)
	h := &hasty{Conn: nc}
	l, err := OpenOn(h, js, Config{AckTimeout: 3 * impatient}, zerolog.Nop(), nil)
	must(t, err)
	t.Cleanup(l.Close)

	a, b := newAuthor(1), newAuthor(2)
	h.refuse.Store(3)
	a.write(t, l, 1, 2)
	pair := []Write{a.next(t, 1), b.next(t, 1)}
	h.refuse.Store(3)
	must(t, l.Append(t.Context(), pair...))
	for _, w := range pair {
		inLog(t, direct, w.Commit)
	}
	a.stored(pair[0].Commit)

	late := *a
	late.session = "late"
	a.write(t, direct, 1, 1)
	h.refuse.Store(1)
	var moved *ConflictError
	if err := l.Append(t.Context(), late.next(t, 1)); !errors.As(err, &moved) || moved.Last != a.seq {
		t.Errorf("another has come: %v", err)
	}
	h.refuse.Store(1 << 20)
	var refused *UnavailableError
	if err := l.Append(t.Context(), a.next(t, 1)); !errors.As(err, &refused) {
		t.Errorf("refused again and again: %v", err)
	}
	if n := len(history(t, direct)); n != 4 {
		t.Errorf("%d commits are stored", n)
	}
}
