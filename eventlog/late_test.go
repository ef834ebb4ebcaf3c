package eventlog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/natstest"
)

// lossyWire is a connection that loses the acknowledgements of some subjects: the
// server stores the message, and the asker learns nothing until the test says so.
type lossyWire struct {
	*nats.Conn
	loses func(subject string) bool
	lost  chan string   // told of each
	give  chan struct{} // closed: the waiting for the lost ones is over
}

func (w *lossyWire) RequestMsg(m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
	if !w.loses(m.Subject) {
		return w.Conn.RequestMsg(m, timeout)
	}
	select {
	case <-w.give:
		return w.Conn.RequestMsg(m, timeout)
	default:
	}
	if _, err := w.Conn.RequestMsg(m, timeout); err != nil {
		return nil, err
	}
	w.lost <- m.Subject
	<-w.give
	return nil, nats.ErrTimeout
}

func loseAcks(t *testing.T, loses func(l *Log, subject string) bool) (*Log, *lossyWire) {
	t.Helper()
	nc := natstest.Connect(t, natstest.Start(t))
	openLog(t, nc, Config{}, nil) // makes the streams
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	w := &lossyWire{Conn: nc, lost: make(chan string, 1), give: make(chan struct{})}
	var l *Log
	w.loses = func(subject string) bool { return loses(l, subject) }
	if l, err = OpenOn(w, js, Config{AckTimeout: time.Hour}, zerolog.Nop(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, w
}

// One acknowledgement that is lost holds up the thread that waits for it, and no
// other: the outcome is found next to the append loop.
func TestAppend_LostAcknowledgementHoldsOnlyItsThread(t *testing.T) {
	t.Parallel()
	guilty := newAuthor(1)
	l, w := loseAcks(t, func(l *Log, subject string) bool { return subject == l.cfg.Names.Log(tenant, guilty.thread) })
	first := guilty.next(t, 1)
	answer := make(chan error, 2)
	go func() { answer <- l.Append(context.Background(), first) }()
	natstest.Within(t, "the acknowledgement to be lost", w.lost)

	second := Write{Commit: guilty.draft(t, 1, 20), Expected: 0} // of another process, say: it waits for the outcome of the first
	second.Commit.Chain = "another"
	go func() { answer <- l.Append(context.Background(), second) }()
	for i := range 40 {
		other := newAuthor(2 + i)
		write := other.next(t, 1)
		done := make(chan error, 1)
		go func() { done <- l.Append(context.Background(), write) }()
		if err := natstest.Within(t, "a commit of another thread", done); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-answer:
		t.Fatalf("a commit of the thread in doubt was answered: %v", err)
	default:
	}

	close(w.give)
	var moved *ConflictError
	one, two := natstest.Within(t, "the outcome", answer), natstest.Within(t, "what waited for it", answer)
	if errors.As(one, &moved) {
		one, two = two, one
	}
	if one != nil || !errors.As(two, &moved) {
		t.Fatalf("the first: %v; the second: %v", one, two)
	}
	inLog(t, l, first.Commit)
	guilty.stored(first.Commit)
	guilty.write(t, l, 3, 1) // the thread is free again
}

// The same of a batch: its threads wait, and no others.
func TestAppend_LostAcknowledgementOfABatch(t *testing.T) {
	t.Parallel()
	guilty := map[string]bool{}
	l, w := loseAcks(t, func(_ *Log, subject string) bool { return guilty[subject] })
	a, b := newAuthor(1), newAuthor(2)
	guilty[l.cfg.Names.Log(tenant, b.thread)] = true // the last of the batch, which alone is answered
	pair := []Write{a.next(t, 1), b.next(t, 1)}
	answer := make(chan error, 1)
	go func() { answer <- l.Append(context.Background(), pair...) }()
	natstest.Within(t, "the acknowledgement to be lost", w.lost)
	for i := range 20 {
		write := newAuthor(3+i).next(t, 1)
		done := make(chan error, 1)
		go func() { done <- l.Append(context.Background(), write) }()
		if err := natstest.Within(t, "a commit of another thread", done); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }() // what was accepted comes to its end first
	close(w.give)
	if err := natstest.Within(t, "the outcome", answer); err != nil {
		t.Fatal(err)
	}
	natstest.Within(t, "the log to close", closed)
	if pair[0].Commit.Seq != 1 || pair[1].Commit.Seq != 2 {
		t.Errorf("at %d and %d", pair[0].Commit.Seq, pair[1].Commit.Seq)
	}
}
