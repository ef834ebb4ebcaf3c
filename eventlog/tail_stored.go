package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// storedCommits reads the log by a consumer.
type storedCommits struct {
	tail  *Tail
	msgs  jetstream.MessagesContext
	name  string // of the consumer
	atEnd bool   // there was nothing for it when it was created
}

// follow creates a consumer of the log.
func (t *Tail) follow(ctx context.Context, from jetstream.OrderedConsumerConfig) (*storedCommits, error) {
	consumer, err := t.log.conn.JetStream().OrderedConsumer(ctx, t.log.cfg.Names.Stream(assets.LogStream), from)
	if err != nil {
		return nil, fmt.Errorf("following the log: %w", err)
	}
	info := consumer.CachedInfo()
	msgs, err := consumer.Messages(append(streams.Beat(), jetstream.PullMaxMessages(tailRequest))...)
	if err != nil {
		return nil, fmt.Errorf("following the log: %w", err)
	}
	return &storedCommits{tail: t, msgs: msgs, name: info.Name, atEnd: info.NumPending == 0}, nil
}

// read delivers what the consumer receives. It returns nil when own can go on.
func (s *storedCommits) read(ctx context.Context, own *ownCommits) error {
	defer context.AfterFunc(ctx, s.msgs.Stop)() // or Next would wait for a message
	for {
		m, err := s.msgs.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil:
			return context.Canceled
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return fmt.Errorf("following the log: %w", err)
		case err != nil:
			// The consumer heals itself; wait a little so as not to spin.
			s.tail.log.logger.Warn().Err(err).Str("reader", s.tail.name).Msg("following the log was interrupted")
			retry.Sleep(ctx, tailPause)
			continue
		}
		e, ours := s.entry(m)
		if !s.tail.deliver(ctx, e) {
			return context.Canceled
		}
		if own.after(e.Seq, ours) {
			return nil
		}
	}
}

// entry decodes a message, and reports whether this process wrote it.
func (s *storedCommits) entry(m jetstream.Msg) (e Entry, ours bool) {
	log := s.tail.log
	meta, err := m.Metadata()
	if err != nil { // the client made it from the server's own subject
		return Entry{Broken: fmt.Errorf("a message of the log without metadata: %w", err)}, false
	}
	e = Entry{Seq: meta.Sequence.Stream, Time: meta.Timestamp, Last: meta.NumPending == 0, size: len(m.Data())}
	if e.Commit = log.cfg.Recent.get(e.Seq, m.Headers().Get(events.HeaderChain), m.Data()); e.Commit != nil {
		return e, true
	}
	e.Commit, e.Broken = log.decode(m.Subject(), e.Seq, m.Headers(), m.Data())
	if e.Broken != nil {
		log.metrics.Broken(s.tail.name, e.Seq)
		log.logger.Error().Err(e.Broken).Uint64("seq", e.Seq).Str("reader", s.tail.name).
			Msg("a commit of the log cannot be read and is left out; run skein audit verify")
	}
	return e, false
}

// close ends the consumer.
func (s *storedCommits) close() {
	s.msgs.Stop()
	if log := s.tail.log; log.conn.Wire().IsConnected() { // else the server drops it in its own time
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = log.conn.JetStream().DeleteConsumer(ctx, log.cfg.Names.Stream(assets.LogStream), s.name)
	}
}
