package eventlog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Tail follows the log from a sequence on: it returns the stored commits and then the new ones,
// in order, each once. It reads and decodes ahead of its reader.
//
// It reads the log through a consumer, except while this process alone writes many commits:
// these it takes as they are acknowledged, see [ownCommits].
type Tail struct {
	log      *Log
	name     string
	entries  chan Entry
	bytes    atomic.Int64  // of the bodies that wait in entries
	taken    chan struct{} // of capacity 1: receives a value when an entry was taken
	stop     context.CancelFunc
	finished sync.WaitGroup
	err      error // why it ended; read after entries is closed
	atEnd    bool  // see BeganAtEnd
}

// Entry is an entry of a Tail: a commit, or the reason why it cannot be read.
type Entry struct {
	Seq    uint64
	Time   time.Time      // when the log stored it
	Commit *events.Commit // nil if it is broken
	Broken error

	Last bool // the log held nothing after it when it was sent

	size int // of the body
}

// Limits of what is read ahead. A reader that writes what it has read may be
// busy for half a second, and commits cost less while they are recent: see [Recent].
const (
	tailAhead   = 4096
	tailBytes   = 16 << 20 // one commit more may be read
	tailRequest = 512      // commits are asked of the server at once
	tailPause   = 100 * time.Millisecond
)

// Tail begins to follow the log at the commit after the sequence after. The
// name says who reads, for log lines and metrics. Stop it when done.
func (l *Log) Tail(ctx context.Context, name string, after uint64) (*Tail, error) {
	return l.tail(ctx, name, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
	})
}

// TailSince does the same from a time on.
func (l *Log) TailSince(ctx context.Context, name string, since time.Time) (*Tail, error) {
	return l.tail(ctx, name, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since,
	})
}

func (l *Log) tail(ctx context.Context, name string, from jetstream.OrderedConsumerConfig) (*Tail, error) {
	t := &Tail{log: l, name: name, entries: make(chan Entry, tailAhead), taken: make(chan struct{}, 1)}
	begun := time.Now()
	stored, err := t.follow(ctx, from)
	if err != nil {
		return nil, err
	}
	t.atEnd = stored.atEnd
	reading, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.finished.Add(1)
	go t.readAhead(reading, stored, begun)
	return t, nil
}

// readAhead delivers what the log holds, and what this process stores while it alone writes,
// until ctx ends.
func (t *Tail) readAhead(ctx context.Context, stored *storedCommits, begun time.Time) {
	defer t.finished.Done()
	defer close(t.entries)
	own := ownCommits{tail: t, begun: begun, pace: t.log.ownPace}
	for {
		t.err = stored.read(ctx, &own)
		stored.close()
		if t.err != nil {
			return
		}
		own.read(ctx)
		if stored = t.again(ctx, own.at+1); stored == nil {
			return
		}
	}
}

// again returns the consumer that reads the log from a sequence on; nil, with the error in t.err,
// if ctx ended or the log is gone.
func (t *Tail) again(ctx context.Context, from uint64) *storedCommits {
	for {
		stored, err := t.follow(ctx, jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		})
		switch {
		case err == nil:
			return stored
		case ctx.Err() != nil:
			t.err = context.Canceled
			return nil
		case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, jetstream.ErrStreamNotFound):
			t.err = err
			return nil
		}
		t.log.logger.Warn().Err(err).Str("reader", t.name).Msg("following the log was interrupted")
		retry.Sleep(ctx, tailPause)
	}
}

// deliver passes an entry to the reader, and reports whether that happened before ctx ended.
func (t *Tail) deliver(ctx context.Context, e Entry) bool {
	for t.bytes.Load() >= tailBytes {
		select {
		case <-t.taken:
		case <-ctx.Done():
			return false
		}
	}
	t.bytes.Add(int64(e.size))
	select {
	case t.entries <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// Next waits for the next commit. A commit that cannot be read was counted and
// logged, and comes with its error; what follows it still comes. The error is
// the context's, or that the tail was stopped.
func (t *Tail) Next(ctx context.Context) (Entry, error) {
	if ctx.Err() != nil { // whatever is ready: else it would be chance which comes first
		return Entry{}, context.Cause(ctx)
	}
	select {
	case e, ok := <-t.entries:
		if !ok {
			return Entry{}, t.err
		}
		t.bytes.Add(-int64(e.size))
		select {
		case t.taken <- struct{}{}:
		default:
		}
		return e, nil
	case <-ctx.Done():
		return Entry{}, context.Cause(ctx)
	}
}

// BeganAtEnd reports whether the log held nothing to follow when the tail began. A replica
// that lags may say so too early.
func (t *Tail) BeganAtEnd() bool { return t.atEnd }

// Waiting returns how many commits are ready to be taken at once.
func (t *Tail) Waiting() int { return len(t.entries) }

// Stop ends the tail.
func (t *Tail) Stop() {
	t.stop()
	for range t.entries { // so that readAhead is not blocked
	}
	t.finished.Wait()
}
