package streams

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/retry"
)

// Floors are the sequences up to which this process knows streams to be
// written: what it has stored itself, was told by a leader, or by a checkpoint. A
// direct get on a cluster that shows less comes from a copy that lags, and is
// asked again. They are shared by the logs of one process, see [Config.Floors],
// and safe for concurrent use.
type Floors struct {
	mu sync.Mutex        // guards what follows
	at map[string]uint64 // by stream
}

// Raise notes that a stream is written up to a sequence.
func (f *Floors) Raise(stream string, seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		f.at = map[string]uint64{}
	}
	f.at[stream] = max(f.at[stream], seq)
}

// lower notes that a stream ends before what was known: it was re-created.
func (f *Floors) lower(stream string, seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at[stream] > seq {
		f.at[stream] = seq
	}
}

func (f *Floors) of(stream string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at[stream]
}

// fresh repeats a read of a replicated stream until a replica has answered it that is
// not older than the stream's floor. read returns the sequence that its replica stood
// at, 0 if it does not say.
func (c *Conn) fresh(ctx context.Context, stream string, read func() (uint64, error)) error {
	for attempts := lagging(max(c.cfg.Patience, ReadTimeout)).Start(); ; {
		stands, err := read()
		floor := c.cfg.Floors.of(stream)
		if err != nil || stands >= floor {
			return err
		}
		if attempts.Failures() == askAfter {
			// The stream may have been re-created, and be shorter.
			last, err := c.LastSeq(ctx, stream)
			if err != nil {
				return err
			}
			c.cfg.Floors.lower(stream, last)
		}
		switch err := attempts.Wait(ctx); {
		case errors.Is(err, retry.ErrExhausted):
			return fmt.Errorf("stream %s: the copies that answer lag behind message %d", stream, floor)
		case err != nil:
			return err
		}
	}
}

// askAfter is after how many reads of copies that lag the leader is asked how far the
// stream goes: some 15 ms.
const askAfter = 4

// lagging is how a read is repeated while the copies that answer it lag.
func lagging(limit time.Duration) retry.Policy {
	return retry.Policy{First: time.Millisecond, Max: 100 * time.Millisecond, Limit: limit}
}

// More reports whether a stream has messages that match a subject from a sequence on,
// where a replica showed none: as its leader has it.
func (c *Conn) More(ctx context.Context, name, subject string, from uint64) (bool, error) {
	several, err := c.Replicated(ctx)
	if err != nil || !several {
		return false, err
	}
	last, err := c.Leader(ctx, name, GetRequest{Last: subject})
	if errors.Is(err, ErrNoMessage) {
		return false, nil
	}
	if err != nil || last.Seq < from {
		return false, err
	}
	if !retry.Sleep(ctx, 2*time.Millisecond) { // the copy will have it soon
		return false, context.Cause(ctx)
	}
	return true, nil
}

// Replicated reports whether the streams have several copies, as [Config.Sample] has
// it: a tool need not be told. One that sees the streams through another account reads
// what it is shown.
func (c *Conn) Replicated(ctx context.Context) (bool, error) {
	if c.ReadOnly() {
		return false, nil
	}
	if n := c.copies.Load(); n > 0 {
		return n > 1, nil
	}
	stream, err := c.js.Stream(ctx, c.cfg.Sample)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return c.cfg.Replicas > 1, nil
	case err != nil:
		return false, fmt.Errorf("stream %s: %w", c.cfg.Sample, err)
	}
	n := int32(max(stream.CachedInfo().Config.Replicas, 1))
	c.copies.Store(n)
	return n > 1, nil
}

// Made notes how many copies the streams have that this process has made ready.
func (c *Conn) Made(copies int) { c.copies.Store(int32(copies)) }

// Latest reads the last messages of several subjects, q.Multi, from a replica that is
// not older than the stream's floor, and returns how far it has got.
func (c *Conn) Latest(ctx context.Context, stream string, q GetRequest) (got []Message, upTo uint64, err error) {
	several, err := c.Replicated(ctx)
	if err != nil {
		return nil, 0, err
	}
	if !several {
		return c.directUpTo(ctx, stream, q)
	}
	wanted := q.Multi
	err = c.fresh(ctx, stream, func() (uint64, error) {
		var err error
		if got, upTo, err = c.directUpTo(ctx, stream, q); err != nil || len(got) > 0 || c.cfg.Floors.of(stream) == 0 {
			return upTo, err
		}
		// A copy that finds nothing does not say how old it is: it is to find
		// what the stream ends with, too.
		end, err := c.Leader(ctx, stream, GetRequest{Last: ">"})
		if errors.Is(err, ErrNoMessage) {
			return math.MaxUint64, nil
		}
		q.Multi, q.Seq = append(slices.Clone(wanted), end.Subject), min(q.Seq, end.Seq)
		return 0, err
	})
	if len(q.Multi) > len(wanted) {
		got = slices.DeleteFunc(got, func(m Message) bool {
			return !slices.ContainsFunc(wanted, func(pattern string) bool { return subjectMatches(pattern, m.Subject) })
		})
	}
	return got, upTo, err
}
