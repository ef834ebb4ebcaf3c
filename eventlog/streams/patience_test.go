package streams_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// docs is a bucket of these tests.
const docs = "thread_docs"

// brief is how long a read waits for its answer in these tests.
const brief = 20 * time.Millisecond

// heldUp returns a log, a proxy that can hold its server up, and a subscription to its
// requests.
func heldUp(t *testing.T, patience time.Duration) (l *eventlog.Log, p *natstest.Proxy, asked func(subject string) *nats.Subscription) {
	t.Helper()
	direct := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, direct, 1, 1)
	logtest.Must(t, assets.EnsureBucket(t.Context(), direct.Streams(), docs))
	_, err := direct.JetStream().Publish(t.Context(), direct.Bucket(docs).Subject("a"), []byte("1"))
	logtest.Must(t, err)
	p = natstest.NewProxy(t, direct.Conn().ConnectedUrl())
	l = logtest.Open(t, p.Connect(t), eventlog.Config{Patience: patience, AckTimeout: brief})
	l.Streams().SetReadTimeout(brief)
	if _, err := l.Streams().Replicated(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l, p, func(subject string) *nats.Subscription {
		sub, err := direct.Conn().SubscribeSync(subject)
		logtest.Must(t, err)
		logtest.Must(t, direct.Conn().Flush())
		return sub
	}
}

// A server that does not answer for longer than a read waits has not said that anything
// is damaged: a patient reader has the answer in the end.
func TestReads_OutlastAServerThatIsHeldUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks string
		read func(l *eventlog.Log) (int, error)
	}{
		"a thread": {"$JS.API.DIRECT.GET.>", func(l *eventlog.Log) (n int, err error) {
			for _, err := range l.Thread(t.Context(), logtest.Tenant, logtest.NewAuthor(1).Thread, 1) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		}},
		"a document": {"$JS.API.DIRECT.GET.>", func(l *eventlog.Log) (int, error) {
			got, err := l.Bucket(docs).GetAt(t.Context(), 1, "a")
			return len(got), err
		}},
		"the leader's last": {"$JS.API.STREAM.MSG.GET.>", func(l *eventlog.Log) (int, error) {
			c, err := l.Newest(t.Context(), logtest.Tenant, logtest.NewAuthor(1).Thread)
			if c == nil {
				return 0, err
			}
			return 1, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, p, listen := heldUp(t, natstest.Patience)
			asked := listen(c.asks)
			p.Held.Lock()
			type answer struct {
				n   int
				err error
			}
			done := make(chan answer, 1)
			go func() {
				n, err := c.read(l)
				done <- answer{n, err}
			}()
			for range 3 { // it was given up twice by then
				if _, err := asked.NextMsg(natstest.Patience); err != nil {
					t.Error(err)
				}
			}
			p.Held.Unlock()
			if got := natstest.Within(t, "the answer", done); got.err != nil || got.n != 1 {
				t.Errorf("%d messages, %v", got.n, got.err)
			}
		})
	}
}

// One that goes on being silent is given up when patience ends, and that is no
// damage; a read that alone is not answered is given up sooner, and that may be one.
func TestReads_GiveUpWhatIsNotAnswered(t *testing.T) {
	t.Parallel()
	l, p, listen := heldUp(t, 10*brief)
	p.Held.Lock()
	var silent *streams.SilentError
	_, err := l.Streams().Direct(t.Context(), l.Config().Names.Stream(assets.LogStream), streams.GetRequest{Seq: 1})
	if !errors.As(err, &silent) || silent.Others || !errors.Is(err, nats.ErrTimeout) || silent.Waited < 10*brief {
		t.Errorf("of a server that is silent: %v", err)
	}
	p.Held.Unlock()

	l.Streams().SetPatience(natstest.Patience)
	l.Streams().SetReadTimeout(500 * time.Millisecond)
	asked := listen("$JS.API.DIRECT.GET.>")
	tries := 0
	err = l.Streams().UntilAnswered(t.Context(), l.Config().Names.Stream(assets.LogStream), 7, func(within time.Duration) error {
		tries++
		return &streams.SilentError{Stream: "S", Seq: 7, Waited: within}
	})
	if !errors.As(err, &silent) || !silent.Others || errors.Is(err, nats.ErrTimeout) || tries != streams.SilentTries {
		t.Errorf("after %d tries of what alone is not answered: %v", tries, err)
	}
	// Another read of that stream that is not answered does not wait as long, for a while.
	for _, next := range []struct{ known, first time.Duration }{{time.Hour, 500 * time.Millisecond / streams.RottenShare}, {0, 500 * time.Millisecond}} {
		l.Streams().SetRottenFor(next.known)
		first := time.Duration(0)
		err = l.Streams().UntilAnswered(t.Context(), l.Config().Names.Stream(assets.LogStream), 8, func(within time.Duration) error {
			if first == 0 {
				first = within
			}
			return &streams.SilentError{Stream: "S", Seq: 8, Waited: within}
		})
		if !errors.As(err, &silent) || !silent.Others || first != next.first {
			t.Errorf("the next one waited %v at first: %v", first, err)
		}
	}
	// What is known to be damaged, or not there, is not asked for twice.
	tries = 0
	l.Streams().SetDamage(func(string, uint64, uint64) error { return errors.New("a flipped bit") })
	var unreadable *streams.UnreadableError
	if err := l.Streams().UntilAnswered(t.Context(), "S", 7, func(time.Duration) error { tries++; return &streams.SilentError{} }); !errors.As(err, &unreadable) || tries != 1 {
		t.Errorf("after %d tries of what is damaged: %v", tries, err)
	}
	l.Streams().SetDamage(func(string, uint64, uint64) error { return nil })
	l.Streams().SetReadTimeout(10 * time.Second) // a server with much else to do may say late that it has no such stream
	if _, err := l.Streams().Direct(t.Context(), "NO_SUCH_STREAM", streams.GetRequest{Seq: 1}); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Error(err)
	}
	if m, err := asked.NextMsg(natstest.Patience); err != nil || m.Subject != "$JS.API.DIRECT.GET.NO_SUCH_STREAM" {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := asked.NextMsg(brief); err == nil {
		t.Errorf("a stream that is not there was asked twice: %s", m.Subject)
	}
}
