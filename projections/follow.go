package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/documents"
)

// brief is what a directory reads of a thread's document.
type brief struct {
	ID        string              `json:"id"`
	Key       *string             `json:"key"`
	Status    events.ThreadStatus `json:"status"`
	CreatedAt string              `json:"createdAt"`
	UpdatedAt string              `json:"updatedAt"`
	AgentID   string              `json:"agentId"`
	UserID    string              `json:"userId"`
	Archived  bool                `json:"archived"`
	Seq       uint64              `json:"seq"`
	ListedSeq uint64              `json:"listedSeq"`
	Run       *events.ThreadRun   `json:"run"`
}

func (b *brief) key() string {
	if b.Key == nil {
		return ""
	}
	return *b.Key
}

// changed gives when the thread last changed, or was made.
func (b *brief) changed() events.Time {
	at := b.UpdatedAt
	if at == "" {
		at = b.CreatedAt
	}
	t, _ := events.ParseTime(at) // what is no time sorts first
	return t
}

// Run follows the bucket of threads until ctx ends: how far the read models are,
// and which threads there are. After the connection was made anew it begins
// again, because a server that crashed may have lost its newest writes.
func (q *Queries) Run(ctx context.Context) error {
	changed := q.log.Conn().StatusChanged(nats.CONNECTED)
	defer q.log.Conn().RemoveStatusListener(changed)
	for ctx.Err() == nil {
		err := q.follow(ctx, changed)
		if ctx.Err() != nil {
			return nil
		}
		pause := 250 * time.Millisecond
		if errors.Is(err, errReconnected) {
			pause = 0
		} else {
			q.logger.Warn().Err(err).Msg("following the read models was interrupted; beginning again")
		}
		retry.Sleep(ctx, pause)
	}
	return nil
}

func (q *Queries) follow(ctx context.Context, changed <-chan nats.Status) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := q.models.Of(documents.Threads)
	stream, err := q.log.JetStream().Stream(ctx, "KV_"+q.log.Config().Names.Bucket(p.Bucket))
	if err != nil {
		return fmt.Errorf("the bucket of %s: %w", p.Name, err)
	}
	all, err := readCheckpoints(ctx, q.log, q.models)
	if err != nil {
		return err
	}
	believed := all[documents.Threads].at + 1 // checkpoints of threads from here on
	if all[documents.Threads].Checkpoint == nil || all.whole() {
		believed = 0
	} else {
		q.cfg.Progress.set(0) // until a runner has looked at it
	}
	q.directory.reset()
	var both sync.WaitGroup
	defer both.Wait()
	defer cancel(nil)
	both.Go(func() { cancel(q.followProgress(ctx, stream, believed)) })
	both.Go(func() { cancel(q.followThreads(ctx, stream)) })
	select {
	case <-changed:
		cancel(errReconnected)
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// prefix gives what stands before the keys of the bucket of threads.
func (q *Queries) prefix() string {
	return "$KV." + q.log.Config().Names.Bucket(q.models.Of(documents.Threads).Bucket) + "."
}

// followProgress follows the checkpoint of threads, which tells how far all read
// models are. It is believed from a message of its bucket on.
func (q *Queries) followProgress(ctx context.Context, stream jetstream.Stream, from uint64) error {
	return each(ctx, stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{q.prefix() + checkpointKey}, DeliverPolicy: jetstream.DeliverLastPolicy,
	}, nil, func(m jetstream.Msg, _ bool) {
		var c Checkpoint
		meta, err := m.Metadata()
		if err == nil && meta.Sequence.Stream >= from && json.Unmarshal(m.Data(), &c) == nil && q.shows(ctx, &c) == nil {
			q.cfg.Progress.set(c.Progress)
		}
	})
}

// shows sees to it that what is read from the buckets from now on is not older
// than what a checkpoint tells of: on a cluster the copy that answers may be.
func (q *Queries) shows(ctx context.Context, c *Checkpoint) error {
	for _, p := range q.models.List() {
		if len(c.Ends) == documents.Kinds {
			q.log.Bucket(p.Bucket).Shows(c.Ends[p.Kind])
		} else if err := q.log.Bucket(p.Bucket).ShowsAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// followThreads keeps the directories. What comes together is taken in together:
// lists that are asked for all the time would let one change in after the other.
func (q *Queries) followThreads(ctx context.Context, stream jetstream.Stream) error {
	const together = 512
	var waiting []update
	take := func(m jetstream.Msg, last bool) {
		if u, ok := q.updateOf(m); ok {
			waiting = append(waiting, u)
		}
		if last || len(waiting) == together {
			q.directory.apply(waiting)
			clear(waiting)
			waiting = waiting[:0]
		}
	}
	return each(ctx, stream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}, q.directory.loaded, take)
}

// updateOf reads a message of the bucket of threads.
func (q *Queries) updateOf(m jetstream.Msg) (update, bool) {
	key := strings.TrimPrefix(m.Subject(), q.prefix())
	if key == checkpointKey {
		var c Checkpoint
		err := json.Unmarshal(m.Data(), &c)
		return update{seq: c.Seq}, err == nil
	}
	tenant, id, ok := strings.Cut(key, ".")
	if !ok || tenant == "_" {
		return update{}, false
	}
	u := update{tenant: tenant, id: id}
	if m.Headers().Get(headerOperation) != "" {
		return u, true
	}
	u.doc = &brief{}
	if err := json.Unmarshal(m.Data(), u.doc); err != nil || u.doc.ID != id {
		q.logger.Error().Str("key", key).Msg("a thread's document cannot be read and is not listed; run skein replay")
		return u, false
	}
	return u, true
}

// each calls take with every message of a stream, and what comes; last says that
// nothing more is there by now. It calls loaded once, when it has given all that
// was there at first.
func each(ctx context.Context, stream jetstream.Stream, from jetstream.OrderedConsumerConfig, loaded func(), take func(m jetstream.Msg, last bool)) error {
	consumer, err := stream.OrderedConsumer(ctx, from)
	if err != nil {
		return fmt.Errorf("following a bucket: %w", err)
	}
	msgs, err := consumer.Messages(append(streams.Beat(), jetstream.PullMaxMessages(1024))...)
	if err != nil {
		return fmt.Errorf("following a bucket: %w", err)
	}
	defer msgs.Stop()
	waiting := loaded != nil
	if waiting && consumer.CachedInfo().NumPending == 0 {
		waiting = false
		loaded()
	}
	for {
		m, err := msgs.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return fmt.Errorf("following a bucket: %w", err)
		case err != nil:
			// The consumer heals itself; wait a little so as not to spin.
			retry.Sleep(ctx, 100*time.Millisecond)
			continue
		}
		meta, err := m.Metadata()
		last := err != nil || meta.NumPending == 0
		take(m, last)
		if waiting && last {
			waiting = false
			loaded()
		}
	}
}

// reset forgets all, and is not ready until all was read again.
func (d *directories) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tenants, d.names = map[string]*directory{}, newInterned()
	select {
	case <-d.ready:
		d.ready = make(chan struct{})
	default:
	}
	d.progress.set(0)
}

// loaded tells that all was read that was there at first.
func (d *directories) loaded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.ready)
}

// await waits until the directories show a sequence. The error is ctx's.
func (d *directories) await(ctx context.Context, seq uint64) error {
	if err := d.loadedBefore(ctx); err != nil {
		return err
	}
	return d.progress.Wait(ctx, seq)
}

// loadedBefore waits until all was read that was there at first. The error is
// ctx's.
func (d *directories) loadedBefore(ctx context.Context) error {
	d.mu.RLock()
	ready := d.ready
	d.mu.RUnlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
