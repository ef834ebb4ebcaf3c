package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Tail follows the log from a sequence on: what is there, and then what comes,
// in order, each commit once. It reads and decodes ahead of its reader.
type Tail struct {
	log      *Log
	name     string
	entries  chan Entry
	bytes    atomic.Int64  // of the bodies that wait in entries
	taken    chan struct{} // of capacity 1: holds something when one of them was taken
	stop     context.CancelFunc
	finished sync.WaitGroup
	err      error // why it ended; read after entries is closed
	atEnd    bool  // see BeganAtEnd

	msgs     jetstream.MessagesContext
	consumer string
}

// Entry is what a Tail returns: a commit, or why it cannot be read.
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
	consumer, err := l.conn.JetStream().OrderedConsumer(ctx, l.cfg.Names.Stream(assets.LogStream), from)
	if err != nil {
		return nil, fmt.Errorf("following the log: %w", err)
	}
	info := consumer.CachedInfo()
	msgs, err := consumer.Messages(append(streams.Beat(), jetstream.PullMaxMessages(tailRequest))...)
	if err != nil {
		return nil, fmt.Errorf("following the log: %w", err)
	}
	t := &Tail{
		log: l, name: name, entries: make(chan Entry, tailAhead), taken: make(chan struct{}, 1),
		atEnd: info.NumPending == 0, msgs: msgs, consumer: info.Name,
	}
	reading, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.finished.Add(1)
	go t.readAhead(reading)
	return t, nil
}

// readAhead receives messages of the log, decodes them and delivers them.
func (t *Tail) readAhead(ctx context.Context) {
	defer t.finished.Done()
	defer close(t.entries)
	for {
		m, err := t.msgs.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil:
			t.err = context.Canceled
			return
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			t.err = fmt.Errorf("following the log: %w", err)
			return
		case err != nil:
			// The consumer heals itself; wait a little so as not to spin.
			t.log.logger.Warn().Err(err).Str("reader", t.name).Msg("following the log was interrupted")
			retry.Sleep(ctx, tailPause)
			continue
		}
		if !t.deliver(ctx, t.entry(m)) {
			t.err = context.Canceled
			return
		}
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

// entry decodes a message.
func (t *Tail) entry(m jetstream.Msg) Entry {
	meta, err := m.Metadata()
	if err != nil { // the client made it from the server's own subject
		return Entry{Broken: fmt.Errorf("a message of the log without metadata: %w", err)}
	}
	e := Entry{Seq: meta.Sequence.Stream, Time: meta.Timestamp, Last: meta.NumPending == 0, size: len(m.Data())}
	if e.Commit = t.log.cfg.Recent.get(e.Seq, m.Headers().Get(events.HeaderChain), m.Data()); e.Commit != nil {
		return e
	}
	e.Commit, e.Broken = t.log.decode(m.Subject(), e.Seq, m.Headers(), m.Data())
	if e.Broken != nil {
		t.log.metrics.Broken(t.name, e.Seq)
		t.log.logger.Error().Err(e.Broken).Uint64("seq", e.Seq).Str("reader", t.name).
			Msg("a commit of the log cannot be read and is left out; run skein audit verify")
	}
	return e
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
	t.msgs.Stop()
	for range t.entries { // so that readAhead is not blocked
	}
	t.finished.Wait()
	if t.log.conn.Wire().IsConnected() { // else the server drops the consumer in its own time
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = t.log.conn.JetStream().DeleteConsumer(ctx, t.log.cfg.Names.Stream(assets.LogStream), t.consumer)
	}
}
