package streams

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of a list.
const (
	listRequest = 4096 // messages are asked of the server at once

	// listQuiet is how long a list waits for its next message before it asks
	// whether there is one. It is longer than the client needs to notice a missing
	// heartbeat (see [Beat]), which the client counts again for each message.
	listQuiet = 3 * time.Second

	// deliveredQuiet is how many of these in a row Delivered waits for a server that
	// reports more and sends nothing.
	deliveredQuiet = 3

	// silentAtMost is for how long a list that gets no message asks a server that does not
	// answer whether there is one.
	silentAtMost = time.Minute
)

// StalledError says that a consumer reports more messages and delivers none: what is next
// may be unreadable.
type StalledError struct {
	Stream string
	Left   uint64
}

func (e *StalledError) Error() string {
	return fmt.Sprintf("listing the stream %s: the server reports %d more messages and delivers none", e.Stream, e.Left)
}

// Delivered returns the messages that Messages returns from the first one on, as a consumer
// delivers them, which costs the server less than half as much. It ends with the last message
// that was stored when it began. Messages that the server cannot read are left out, or end it
// with a *StalledError. An auditor, who may not create a consumer, reads as with Messages.
func (c *Conn) Delivered(ctx context.Context, stream, subject string) iter.Seq2[Message, error] {
	if c.ReadOnly() {
		return c.Messages(ctx, stream, subject, 1)
	}
	return func(yield func(Message, error) bool) {
		from := jetstream.OrderedConsumerConfig{FilterSubjects: []string{c.filter(stream, subject)}}
		ahead := jetstream.PullMaxMessagesWithBytesLimit(listRequest, max(BatchBytes, 2*int(c.nc.MaxPayload())))
		err := c.list(ctx, stream, from, ahead, deliveredQuiet, func(m jetstream.Msg, at *jetstream.MsgMetadata) bool {
			return yield(Message{Subject: m.Subject(), Seq: at.Sequence.Stream, Header: m.Headers(), Data: m.Data()}, nil)
		})
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			yield(Message{}, err)
		}
	}
}

// List returns the messages of a stream as a consumer delivers them, in the order of their
// sequences: those that were stored when it began, or as many that replaced them. It also
// ends if the remaining ones have been removed meanwhile.
//
// A consumer that was lost is replaced by one that resumes after the last message. The new
// one delivers every message, even if only the last one of each subject was asked for, so a
// subject may come more than once.
func (c *Conn) List(ctx context.Context, stream string, from jetstream.OrderedConsumerConfig) iter.Seq2[jetstream.Msg, error] {
	return c.ListUpTo(ctx, stream, from, listRequest)
}

// ListUpTo is List for a reader that stops after some messages: it asks for that many at once.
func (c *Conn) ListUpTo(ctx context.Context, stream string, from jetstream.OrderedConsumerConfig, most int) iter.Seq2[jetstream.Msg, error] {
	ahead := jetstream.PullMaxMessages(min(most, listRequest))
	return func(yield func(jetstream.Msg, error) bool) {
		err := c.list(ctx, stream, from, ahead, 0, func(m jetstream.Msg, _ *jetstream.MsgMetadata) bool { return yield(m, nil) })
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		yield(nil, fmt.Errorf("listing the stream %s: %w", stream, err))
	}
}

// list passes the messages to take, with their metadata, until take returns false. ahead bounds what the client
// holds. After most quiet waits in a row, list fails with a *StalledError if the server still
// reports more messages; 0: never.
func (c *Conn) list(ctx context.Context, stream string, from jetstream.OrderedConsumerConfig, ahead jetstream.PullMessagesOpt, most int, take func(jetstream.Msg, *jetstream.MsgMetadata) bool) error {
	from.NamePrefix = rand.Text() // so that a repeated request is for the same consumer
	var consumer jetstream.Consumer
	err := c.Ask(ctx, func(ctx context.Context) (err error) {
		consumer, err = c.js.OrderedConsumer(ctx, stream, from)
		return err
	})
	if err != nil {
		return err
	}
	info := consumer.CachedInfo()
	of, left := info.Name, info.NumPending
	if left == 0 {
		return nil
	}
	// A list of the last messages of subjects ends with the sequence that was the
	// stream's last when it was made: the server takes off its count what is removed
	// meanwhile, also if it is not in the list.
	end := uint64(0)
	if from.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy {
		err := c.Ask(ctx, func(ctx context.Context) (err error) {
			end, err = c.LastSeq(ctx, stream)
			return err
		})
		if err != nil {
			return err
		}
	}
	msgs, err := consumer.Messages(append(Beat(), ahead)...)
	if err != nil {
		return err
	}
	defer msgs.Stop()
	defer context.AfterFunc(ctx, msgs.Stop)() // Next does not look at ctx while it makes another consumer
	wait := listWait{ctx: ctx}
	defer wait.end()
	answered := time.Now()
	for over, quiet := false, 0; left > 0 || end > 0; {
		m, err := msgs.Next(jetstream.NextContext(wait.next()))
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			wait.end()
			if over {
				return nil
			}
			info, err := c.pending(ctx, consumer)
			if silent(err) && ctx.Err() == nil && time.Since(answered) < silentAtMost {
				continue
			}
			if err != nil {
				return err
			}
			answered = time.Now()
			over = info.NumPending == 0 // what was on its way then is awaited again
			if quiet++; quiet == most && !over {
				return &StalledError{Stream: stream, Left: info.NumPending}
			}
			continue
		}
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Consumer != of { // it has a count of its own
			of, left = meta.Consumer, meta.NumPending+1
		}
		switch more := take(m, meta); {
		case !more, end == 0 && meta.NumPending == 0, end > 0 && meta.Sequence.Stream >= end:
			return nil
		}
		over, quiet = false, 0
		answered = wait.began
		if end == 0 {
			left--
		}
	}
	return nil
}

// pending asks the server once how much a consumer has not delivered yet.
func (c *Conn) pending(ctx context.Context, consumer jetstream.Consumer) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, c.readTimeout)
	defer cancel()
	return consumer.Info(ctx)
}

// listWait bounds how long a list waits for a message: a context for each of them would cost
// as much as reading it.
type listWait struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the list
	within context.Context //nolint:containedctx // the same
	cancel context.CancelFunc
	used   int
	began  time.Time // of what is used now
}

// listWaits is how many messages are awaited with one context.
const listWaits = 256

// next returns the context of the next wait. It ends after listQuiet, or earlier if others
// waited with it.
func (w *listWait) next() context.Context {
	if w.used++; w.cancel == nil || w.used > listWaits {
		w.end()
		w.within, w.cancel = context.WithTimeout(w.ctx, listQuiet)
		w.used, w.began = 1, time.Now()
	}
	return w.within
}

// end lets the next wait take its full time.
func (w *listWait) end() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// Beat returns the options of a reader that notices within two seconds that its consumer no
// longer answers, because the server was killed, or the consumer had no leader yet when it was
// asked. The client's default is half a minute.
func Beat() []jetstream.PullMessagesOpt {
	return []jetstream.PullMessagesOpt{jetstream.PullExpiry(10 * time.Second), jetstream.PullHeartbeat(time.Second)}
}
