package query

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
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

	mark buckets.Mark // of the message
}

func (b *brief) key() string {
	if b.Key == nil {
		return ""
	}
	return *b.Key
}

// changed returns when the thread last changed, or was created.
func (b *brief) changed() events.Time {
	at := b.UpdatedAt
	if at == "" {
		at = b.CreatedAt
	}
	t, _ := events.ParseTime(at) // an invalid time sorts first
	return t
}

// Run follows the bucket of threads until ctx ends: how far the read models are,
// and which threads there are. After a reconnect it starts again, because a server that
// crashed may have lost its newest writes.
func (q *Queries) Run(ctx context.Context) error {
	buckets.KeepFollowing(ctx, q.log.Streams(), q.follow, func(err error) {
		q.logger.Warn().Err(err).Msg("following the read models was interrupted; starting again")
	})
	return nil
}

// follow follows the bucket of threads until ctx ends or something interrupts it.
func (q *Queries) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := q.models.Of(documents.Threads)
	stream, err := q.log.JetStream().Stream(ctx, q.log.Bucket(p.Bucket).Stream())
	if err != nil {
		return fmt.Errorf("the bucket of %s: %w", p.Name, err)
	}
	all, err := buckets.ReadCheckpoints(ctx, q.log, q.models)
	if err != nil {
		return err
	}
	believed := all[documents.Threads].At + 1 // checkpoints of threads from here on
	if all[documents.Threads].Checkpoint == nil || all.Whole() {
		believed = 0
	} else {
		q.cfg.Progress.Set(0) // until a runner has checked it
	}
	q.directory.reset()
	var both sync.WaitGroup
	defer both.Wait()
	defer cancel(nil)
	both.Go(func() { cancel(q.followProgress(ctx, stream, believed)) })
	both.Go(func() { cancel(q.followThreads(ctx, stream)) })
	<-ctx.Done()
	return context.Cause(ctx)
}

// threads returns the bucket of threads.
func (q *Queries) threads() streams.Bucket {
	return q.log.Bucket(q.models.Of(documents.Threads).Bucket)
}

// followProgress follows the checkpoint of threads, which says how far all read
// models are. Only checkpoints from a message of the bucket on are valid.
func (q *Queries) followProgress(ctx context.Context, stream jetstream.Stream, from uint64) error {
	return buckets.Follow(ctx, stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{q.threads().Subject(buckets.CheckpointKey)}, DeliverPolicy: jetstream.DeliverLastPolicy,
	}, nil, func(m jetstream.Msg, _ bool) {
		var c buckets.Checkpoint
		meta, err := m.Metadata()
		if err == nil && meta.Sequence.Stream >= from && json.Unmarshal(m.Data(), &c) == nil && q.shows(ctx, &c) == nil {
			q.cfg.Progress.Set(c.Progress)
		}
	})
}

// shows waits until reads of the buckets are not older than what a checkpoint describes:
// on a cluster the replica that answers may lag.
func (q *Queries) shows(ctx context.Context, c *buckets.Checkpoint) error {
	for _, p := range q.models.List() {
		if len(c.Ends) == documents.Kinds {
			q.log.Bucket(p.Bucket).Shows(c.Ends[p.Kind])
		} else if err := q.log.Bucket(p.Bucket).ShowsAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// followThreads keeps the directories up to date. Changes that arrive together are
// applied together: under steady queries each would wait for the lock by itself.
func (q *Queries) followThreads(ctx context.Context, stream jetstream.Stream) error {
	const together = 512
	var waiting []update
	see := func(m jetstream.Msg, last bool) {
		if u, ok := q.updateOf(m); ok {
			waiting = append(waiting, u)
		}
		if last || len(waiting) == together {
			q.directory.apply(waiting)
			clear(waiting)
			waiting = waiting[:0]
		}
	}
	return buckets.Follow(ctx, stream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}, q.directory.loaded, see)
}

// updateOf reads a message of the bucket of threads.
func (q *Queries) updateOf(m jetstream.Msg) (update, bool) {
	key := q.threads().Key(m.Subject())
	if key == buckets.CheckpointKey {
		var c buckets.Checkpoint
		err := json.Unmarshal(m.Data(), &c)
		return update{seq: c.Seq}, err == nil
	}
	tenant, id, ok := strings.Cut(key, ".")
	if !ok || tenant == "_" {
		return update{}, false
	}
	u := update{tenant: tenant, id: id}
	if m.Headers().Get(buckets.HeaderOperation) != "" {
		return u, true
	}
	u.doc = &brief{mark: buckets.MarkOf(m.Headers())}
	if meta, err := m.Metadata(); err == nil {
		u.at = meta.Timestamp
	}
	if err := json.Unmarshal(m.Data(), u.doc); err != nil || u.doc.ID != id {
		q.logger.Error().Str("key", key).Msg("a thread's document cannot be read and is not listed; run skein replay")
		return u, false
	}
	return u, true
}

// reset forgets everything. The directories are not ready until they are read again.
func (d *directories) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tenants, d.names, d.claims, d.nextClaim = map[string]*directory{}, newInterned(), nil, 0
	select {
	case <-d.ready:
		d.ready = make(chan struct{})
	default:
	}
	d.progress.Set(0)
}

// loaded marks the initial contents as read.
func (d *directories) loaded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.ready)
}

// await blocks until the directories show a sequence. The error is the cause of ctx.
func (d *directories) await(ctx context.Context, seq uint64) error {
	if err := d.awaitLoaded(ctx); err != nil {
		return err
	}
	return d.progress.Wait(ctx, seq)
}

// awaitLoaded blocks until the initial contents are read. The error is the cause of ctx.
func (d *directories) awaitLoaded(ctx context.Context) error {
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
