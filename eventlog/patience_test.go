package eventlog

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// brief is how long a read waits for its answer in these tests.
const brief = 20 * time.Millisecond

// heldUp gives a log whose server can be held up, and what it is asked.
func heldUp(t *testing.T, patience time.Duration) (l *Log, p *proxy, asked func(subject string) *nats.Subscription) {
	t.Helper()
	direct := start(t)
	a := newAuthor(1)
	a.write(t, direct, 1, 1)
	must(t, direct.EnsureBucket(t.Context(), docs))
	_, err := direct.js.Publish(t.Context(), keyPrefix(direct.cfg.Names.Bucket(docs))+"a", []byte("1"))
	must(t, err)
	p = newProxy(t, direct.nc.ConnectedUrl())
	l = openLog(t, p.connect(t), Config{Patience: patience, AckTimeout: brief}, nil)
	l.readTimeout = brief
	if _, err := l.replicated(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l, p, func(subject string) *nats.Subscription {
		sub, err := direct.nc.SubscribeSync(subject)
		must(t, err)
		must(t, direct.nc.Flush())
		return sub
	}
}

// A server that is held up, for longer than a read waits for its answer, has not said
// that anything is damaged: whoever is patient has the answer in the end.
func TestReads_OutlastAServerThatIsHeldUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks string
		read func(l *Log) (int, error)
	}{
		"a thread": {"$JS.API.DIRECT.GET.>", func(l *Log) (n int, err error) {
			for _, err := range l.Thread(t.Context(), tenant, newAuthor(1).thread, 1) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		}},
		"a document": {"$JS.API.DIRECT.GET.>", func(l *Log) (int, error) {
			got, err := l.KeysAt(t.Context(), docs, 1, "a")
			return len(got), err
		}},
		"the leader's last": {"$JS.API.STREAM.MSG.GET.>", func(l *Log) (int, error) {
			c, err := l.Newest(t.Context(), tenant, newAuthor(1).thread)
			if c == nil {
				return 0, err
			}
			return 1, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, p, listen := heldUp(t, patience)
			asked := listen(c.asks)
			p.held.Lock()
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
				if _, err := asked.NextMsg(patience); err != nil {
					t.Error(err)
				}
			}
			p.held.Unlock()
			if got := within(t, "the answer", done); got.err != nil || got.n != 1 {
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
	p.held.Lock()
	var silent *SilentError
	_, err := l.direct(t.Context(), l.cfg.Names.Stream(LogStream), getRequest{Seq: 1})
	if !errors.As(err, &silent) || silent.Others || !errors.Is(err, nats.ErrTimeout) || silent.Waited < 10*brief {
		t.Errorf("of a server that is silent: %v", err)
	}
	p.held.Unlock()

	l.cfg.Patience, l.readTimeout = patience, 500*time.Millisecond
	asked := listen("$JS.API.DIRECT.GET.>")
	tries := 0
	err = l.untilAnswered(t.Context(), l.cfg.Names.Stream(LogStream), 7, func(within time.Duration) error {
		tries++
		return &SilentError{Stream: "S", Seq: 7, Waited: within}
	})
	if !errors.As(err, &silent) || !silent.Others || errors.Is(err, nats.ErrTimeout) || tries != silentTries {
		t.Errorf("after %d tries of what alone is not answered: %v", tries, err)
	}
	// What is known to be damaged, or not there, is not asked for twice.
	tries = 0
	l.cfg.Damage = func(string, uint64, uint64) error { return errors.New("a flipped bit") }
	var unreadable *UnreadableError
	if err := l.untilAnswered(t.Context(), "S", 7, func(time.Duration) error { tries++; return &SilentError{} }); !errors.As(err, &unreadable) || tries != 1 {
		t.Errorf("after %d tries of what is damaged: %v", tries, err)
	}
	l.cfg.Damage = func(string, uint64, uint64) error { return nil }
	if _, err := l.direct(t.Context(), "NO_SUCH_STREAM", getRequest{Seq: 1}); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Error(err)
	}
	if m, err := asked.NextMsg(patience); err != nil || m.Subject != "$JS.API.DIRECT.GET.NO_SUCH_STREAM" {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := asked.NextMsg(brief); err == nil {
		t.Errorf("a stream that is not there was asked twice: %s", m.Subject)
	}
}
