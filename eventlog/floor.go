package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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

// raise notes that a stream is written up to a sequence.
func (f *Floors) raise(stream string, seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		f.at = map[string]uint64{}
	}
	f.at[stream] = max(f.at[stream], seq)
}

// lower notes that a stream ends before what was known: it was made anew.
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

// Shows notes that a read model's bucket is written up to a sequence of its own:
// what is read from it later shows at least that.
func (l *Log) Shows(bucket string, seq uint64) {
	l.cfg.Floors.raise("KV_"+l.cfg.Names.Bucket(bucket), seq)
}

// ShowsAll notes the same of all that a bucket holds now.
func (l *Log) ShowsAll(ctx context.Context, bucket string) error {
	_, err := l.streamLast(ctx, "KV_"+l.cfg.Names.Bucket(bucket))
	return err
}

// BucketHas reports whether a read model's bucket holds a message from a sequence
// on, where a consumer has shown none: as the leader of a replicated stream has it.
func (l *Log) BucketHas(ctx context.Context, bucket string, from uint64) (bool, error) {
	return l.more(ctx, "KV_"+l.cfg.Names.Bucket(bucket), ">", from)
}

// fresh makes a read of a replicated stream until a copy has answered it that is
// not older than the stream's floor. read gives the sequence that its copy stood
// at, 0 if it does not say.
func (l *Log) fresh(ctx context.Context, stream string, read func() (uint64, error)) error {
	asked := false
	for pause, deadline := time.Millisecond, time.Now().Add(max(l.cfg.Patience, directTimeout)); ; pause = min(2*pause, 100*time.Millisecond) {
		stands, err := read()
		floor := l.cfg.Floors.of(stream)
		switch {
		case err != nil || stands >= floor:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("stream %s: the copies that answer lag behind message %d", stream, floor)
		case pause > 10*time.Millisecond && !asked:
			// The stream may have been made anew, and be shorter.
			last, err := l.streamLast(ctx, stream)
			if err != nil {
				return err
			}
			l.cfg.Floors.lower(stream, last)
			asked = true
		}
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// more reports whether a stream has messages that match a subject from a
// sequence on, where a copy showed none: as its leader has it.
func (l *Log) more(ctx context.Context, name, subject string, from uint64) (bool, error) {
	several, err := l.replicated(ctx)
	if err != nil || !several {
		return false, err
	}
	last, err := l.leader(ctx, name, getRequest{Last: subject})
	if errors.Is(err, errNoMessage) {
		return false, nil
	}
	if err != nil || last.Seq < from {
		return false, err
	}
	if !sleep(ctx, 2*time.Millisecond) { // the copy will have it soon
		return false, context.Cause(ctx)
	}
	return true, nil
}

// replicated reports whether the streams have several copies, as the log's own
// stream has it: a tool need not be told. One that sees the log by way of another
// account reads what it is shown.
func (l *Log) replicated(ctx context.Context) (bool, error) {
	if l.ReadOnly() {
		return false, nil
	}
	if n := l.copies.Load(); n > 0 {
		return n > 1, nil
	}
	stream, err := l.js.Stream(ctx, l.cfg.Names.Stream(LogStream))
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return l.cfg.Replicas > 1, nil
	case err != nil:
		return false, fmt.Errorf("stream %s: %w", l.cfg.Names.Stream(LogStream), err)
	}
	n := int32(max(stream.CachedInfo().Config.Replicas, 1))
	l.copies.Store(n)
	return n > 1, nil
}
