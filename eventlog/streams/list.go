package streams

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// scanTimeout bounds one request of a scan. The server may have to count all
// subjects of a stream before it answers: that it has not answered yet says nothing.
const scanTimeout = 5 * time.Minute

// Scans returns the connection's JetStream for requests that take the longer the
// more is stored, such as a list of all subjects.
func (c *Conn) Scans() jetstream.JetStream { return c.scans }

// Bounds of a list.
const (
	listRequest = 4096 // messages are asked of the server at once

	// listQuiet is how long a list waits for its next message before it asks
	// whether there is one. It is longer than the client needs to notice that
	// nobody answers it, see [Beat]: the client restarts that count for each
	// message that it waits for.
	listQuiet = 3 * time.Second
)

// List returns the messages of a stream as a consumer delivers them: those that were
// there when it began, or as many that came in place of them, in the order of
// their sequences. It ends also when what was to come has been removed meanwhile.
//
// A consumer that was lost is replaced by one that resumes after the last message.
// That one delivers every message, also where only the last one of each subject was asked
// for: a subject may come more than once.
func (c *Conn) List(ctx context.Context, stream string, from jetstream.OrderedConsumerConfig) iter.Seq2[jetstream.Msg, error] {
	return func(yield func(jetstream.Msg, error) bool) {
		err := c.list(ctx, stream, from, func(m jetstream.Msg) bool { return yield(m, nil) })
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		yield(nil, fmt.Errorf("listing the stream %s: %w", stream, err))
	}
}

func (c *Conn) list(ctx context.Context, stream string, from jetstream.OrderedConsumerConfig, take func(jetstream.Msg) bool) error {
	consumer, err := c.scans.OrderedConsumer(ctx, stream, from)
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
		if end, err = c.LastSeq(ctx, stream); err != nil {
			return err
		}
	}
	msgs, err := consumer.Messages(append(Beat(), jetstream.PullMaxMessages(listRequest))...)
	if err != nil {
		return err
	}
	defer msgs.Stop()
	defer context.AfterFunc(ctx, msgs.Stop)() // Next does not look at ctx while it makes another consumer
	for over := false; left > 0 || end > 0; {
		m, err := nextIn(ctx, msgs, listQuiet)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			if over {
				return nil
			}
			info, err := consumer.Info(ctx)
			if err != nil {
				return err
			}
			over = info.NumPending == 0 // what was on its way then is awaited again
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
		switch more := take(m); {
		case !more, end == 0 && meta.NumPending == 0, end > 0 && meta.Sequence.Stream >= end:
			return nil
		}
		over = false
		if end == 0 {
			left--
		}
	}
	return nil
}

// nextIn waits for a message, for so long.
func nextIn(ctx context.Context, msgs jetstream.MessagesContext, most time.Duration) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return msgs.Next(jetstream.NextContext(ctx))
}

// Beat returns the options of a reader that is to notice within two seconds that
// nobody answers it any more: a server that was killed, or a consumer whose
// leader was not yet elected when it was asked. The client's default is half a
// minute.
func Beat() []jetstream.PullMessagesOpt {
	return []jetstream.PullMessagesOpt{jetstream.PullExpiry(10 * time.Second), jetstream.PullHeartbeat(time.Second)}
}
