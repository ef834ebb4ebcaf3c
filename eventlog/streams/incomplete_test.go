package streams_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/logtest"
)

// lossy is a connection that loses some of the answers that arrive.
type lossy struct {
	*nats.Conn
	answer atomic.Int32 // counts the answers of a read, which its last one ends
	drop   atomic.Int32 // the number of the one that is lost
	times  atomic.Int32 // in how many reads
}

func (l *lossy) Subscribe(subject string, deliver nats.MsgHandler) (*nats.Subscription, error) {
	return l.Conn.Subscribe(subject, func(m *nats.Msg) {
		at := l.answer.Add(1)
		end := m.Header.Get("Status") != ""
		if end {
			l.answer.Store(0)
		}
		if at == l.drop.Load() && !end && l.times.Add(-1) >= 0 {
			return
		}
		deliver(m)
	})
}

func (l *lossy) lose(answer, times int32) {
	l.answer.Store(0)
	l.drop.Store(answer)
	l.times.Store(times)
}

// An answer that is lost on the way, as by a reader that is too slow for a while, is a read
// that is repeated, and never a gap that nobody sees.
func TestDirect_LostAnswers(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 20, 1)
	wire := &lossy{Conn: l.Conn()}
	conn, err := streams.OpenOn(wire, l.Streams().JetStream(), l.Streams().Config())
	logtest.Must(t, err)
	defer conn.Close()
	name, subject := l.Config().Names.Stream(assets.LogStream), l.Config().Names.Log(logtest.Tenant, a.Thread)
	reads := map[string]func() (int, error){
		"a range": func() (n int, err error) {
			for _, err := range conn.Messages(t.Context(), name, subject, 1) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
		"the last of subjects": func() (int, error) {
			got, err := conn.Direct(t.Context(), name, streams.GetRequest{Multi: []string{l.Config().Names.Log("*", "*")}})
			return len(got), err
		},
	}
	for what, c := range map[string]struct {
		read  string
		lost  []int32
		holds int
	}{
		"first, middle, last of a range": {"a range", []int32{1, 11, 20}, 20},
		"the only one of many subjects":  {"the last of subjects", []int32{1}, 1},
	} {
		read := reads[c.read]
		for _, lost := range c.lost {
			wire.lose(lost, 2)
			if n, err := read(); n != c.holds || err != nil {
				t.Errorf("%s, answer %d lost twice: %d messages of %d, %v", what, lost, n, c.holds, err)
			}
			wire.lose(lost, 1000)
			var incomplete *streams.IncompleteError
			if n, err := read(); n != 0 || !errors.As(err, &incomplete) || incomplete.Stream != name || !strings.Contains(err.Error(), "skein store check") {
				t.Errorf("%s, answer %d always lost: %d messages, %v", what, lost, n, err)
			}
		}
	}
}
