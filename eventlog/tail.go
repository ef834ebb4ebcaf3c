package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Tail follows the log from a sequence on: what is there, and then what comes,
// in order, each commit once. It reads and decodes ahead of its reader.
//
// While this process writes many commits and nobody else writes, they are taken
// as they were acknowledged, see [Recent], and not read from the log: see
// Tail.own.
type Tail struct {
	log      *Log
	name     string
	entries  chan Entry
	bytes    atomic.Int64  // of the bodies that wait in entries
	taken    chan struct{} // of capacity 1: holds something when one of them was taken
	stop     context.CancelFunc
	finished sync.WaitGroup
	err      error // why it ended; read after entries is closed
	begun    time.Time
	nothing  bool // the log held nothing to follow when it began

	mu   sync.Mutex                // guards what follows
	msgs jetstream.MessagesContext // nil while no consumer is needed

	// Of the goroutine that reads, and of Stop when that has ended.
	consumer string
	at       uint64 // the sequence of the last entry
	owned    owned
}

// Entry is what a Tail gives: a commit, or why it cannot be read.
type Entry struct {
	Seq    uint64
	Time   time.Time      // when the log stored it; of what was not read from it, when that was acknowledged
	Commit *events.Commit // nil if it is broken
	Broken error

	last bool // the log held nothing after it
	size int  // of the body
}

// Limits of what is read ahead. A reader that writes what it has read may be
// away for half a second, and commits are read for less while they are recent:
// see [Recent].
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
	t := &Tail{log: l, name: name, begun: time.Now(), entries: make(chan Entry, tailAhead), taken: make(chan struct{}, 1)}
	nothing, err := t.consume(ctx, from)
	if err != nil {
		return nil, err
	}
	t.nothing = nothing
	reading, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.finished.Add(1)
	go t.read(reading)
	return t, nil
}

// consume makes a consumer, and reports whether there was nothing for it.
func (t *Tail) consume(ctx context.Context, from jetstream.OrderedConsumerConfig) (nothing bool, err error) {
	c, err := t.log.conn.JetStream().OrderedConsumer(ctx, t.log.cfg.Names.Stream(LogStream), from)
	if err != nil {
		return false, fmt.Errorf("following the log: %w", err)
	}
	info := c.CachedInfo()
	msgs, err := c.Messages(append(streams.Beat(), jetstream.PullMaxMessages(tailRequest))...)
	if err != nil {
		return false, fmt.Errorf("following the log: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.msgs, t.consumer = msgs, info.Name
	return info.NumPending == 0, nil
}

// halt ends the messages, and reports whether there were any.
func (t *Tail) halt() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.msgs == nil {
		return false
	}
	t.msgs.Stop()
	return true
}

// dismiss takes the consumer off the server.
func (t *Tail) dismiss() {
	if !t.halt() {
		return
	}
	t.mu.Lock()
	t.msgs = nil
	t.mu.Unlock()
	if t.log.conn.Wire().IsConnected() { // else the server drops it in its own time
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = t.log.conn.JetStream().DeleteConsumer(ctx, t.log.cfg.Names.Stream(LogStream), t.consumer)
	}
}

// read takes commits, from the log or from this process, and hands them on.
func (t *Tail) read(ctx context.Context) {
	defer t.finished.Done()
	defer close(t.entries)
	for t.err == nil {
		if t.err = t.others(ctx); t.err != nil {
			return
		}
		t.dismiss()
		if t.own(ctx); ctx.Err() == nil {
			t.err = t.resume(ctx)
		} else {
			t.err = context.Canceled
		}
	}
}

// others takes messages of the log and decodes them, until this process's own
// commits can be followed instead.
func (t *Tail) others(ctx context.Context) error {
	t.mu.Lock()
	msgs := t.msgs
	t.mu.Unlock()
	for {
		m, err := msgs.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil:
			return context.Canceled
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return fmt.Errorf("following the log: %w", err)
		case err != nil:
			// The consumer heals itself; wait a little so as not to spin.
			t.log.logger.Warn().Err(err).Str("reader", t.name).Msg("following the log was interrupted")
			select {
			case <-time.After(tailPause):
			case <-ctx.Done():
			}
			continue
		}
		e, ours := t.entry(m)
		if !t.hand(ctx, e) {
			return context.Canceled
		}
		if t.owned.after(ours, t.log.ownPace) && t.log.cfg.Recent.follows(t.at+1, t.begun) {
			return nil
		}
	}
}

// hand gives an entry to the reader, and reports whether it was handed on before
// ctx ended.
func (t *Tail) hand(ctx context.Context, e Entry) bool {
	t.at = max(t.at, e.Seq)
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

// entry decodes a message, and reports whether it is a commit of this process.
func (t *Tail) entry(m jetstream.Msg) (e Entry, ours bool) {
	meta, err := m.Metadata()
	if err != nil { // the client made it from the server's own subject
		return Entry{Broken: fmt.Errorf("a message of the log without metadata: %w", err)}, false
	}
	e = Entry{Seq: meta.Sequence.Stream, Time: meta.Timestamp, last: meta.NumPending == 0, size: len(m.Data())}
	if e.Commit = t.log.cfg.Recent.get(e.Seq, m.Headers().Get(events.HeaderChain), m.Data()); e.Commit != nil {
		return e, true
	}
	e.Commit, e.Broken = t.log.decode(m.Subject(), e.Seq, m.Headers(), m.Data())
	if e.Broken != nil {
		t.log.metrics.Broken(t.name, e.Seq)
		t.log.logger.Error().Err(e.Broken).Uint64("seq", e.Seq).Str("reader", t.name).
			Msg("a commit of the log cannot be read and is left out; run skein audit verify")
	}
	return e, false
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

// Waiting gives how many commits are ready to be taken at once.
func (t *Tail) Waiting() int { return len(t.entries) }

// Stop ends the tail.
func (t *Tail) Stop() {
	t.stop()
	t.halt()
	for range t.entries { // so that the reader is not held
	}
	t.finished.Wait()
	t.dismiss()
}
