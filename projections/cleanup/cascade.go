package cleanup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// With a thread, the threads that work for it are deleted: those with its id as mainThreadId, and
// recursively the threads that work for these. Forks, handoffs and mentions are not deleted. Each
// thread is deleted by a submitted command. The note of the deletion stays until all commands are
// stored, and a command's id is derived from the tombstone, so that a repeat does nothing.
//
// A thread is created together with a record on its main thread, and a deleted main thread refuses
// it: see thread.SubthreadAdded. So the log has all workers of a thread before its deletion, and
// they are known here when it is handled. Only an import may still add one.

// Worker is a thread that works for another, its main thread.
type Worker struct{ Tenant, Thread, Main string }

// WorkersOf returns the threads that a commit creates to work for another.
func WorkersOf(c *events.Commit) []Worker {
	var list []Worker
	for i := range c.Events {
		if d, ok := c.Events[i].Data.(events.ThreadCreated); ok && d.MainThreadID != "" {
			list = append(list, Worker{c.Tenant, c.Thread, d.MainThreadID})
		}
	}
	return list
}

// workers records which threads work for which, from documents and from the commits folded later.
// It is safe for concurrent use.
type workers struct {
	// turn is a lock for the fields below, held also while the documents are read. It is a channel
	// of capacity 1 instead of a mutex, so that waiting for it can be cancelled.
	turn   chan struct{}
	loaded bool
	of     map[string]map[string]bool // worker threads, by the name of their main thread
}

func newWorkers() *workers {
	return &workers{turn: make(chan struct{}, 1), of: map[string]map[string]bool{}}
}

func (w *workers) add(one Worker) {
	w.turn <- struct{}{}
	defer w.release()
	w.addLocked(one)
}

func (w *workers) release() { <-w.turn }

// addLocked is add for a caller that holds turn.
func (w *workers) addLocked(one Worker) {
	main := documents.ThreadName(one.Tenant, one.Main)
	if w.of[main] == nil {
		w.of[main] = map[string]bool{}
	}
	w.of[main][one.Thread] = true
}

// Note records a new thread that works for another.
func (c *Cleaner) Note(w Worker) { c.queue.known().add(w) }

// workersFor returns the threads that work for a deleted one. The documents are read when
// it is called for the first time after Reset.
func (c *Cleaner) workersFor(ctx context.Context, d buckets.Deletion) ([]string, error) {
	w := c.queue.known()
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer w.release()
	model := c.models.Of(documents.Threads)
	for from := uint64(1); !w.loaded; {
		const page = 500
		got, err := c.log.Bucket(model.Bucket).Range(ctx, ">", from, page)
		if err != nil {
			return nil, fmt.Errorf("reading which threads work for others: %w", err)
		}
		for _, m := range got {
			from = m.Seq + 1
			if place, ok := documents.ParsePlace(documents.Threads, m.Subject); ok && bytes.Contains(m.Data, []byte(`"mainThreadId"`)) {
				if doc, _, err := model.Decode(m.Data); err == nil {
					tenant, thread := documents.CutThreadName(place.Thread)
					w.addLocked(Worker{tenant, thread, doc.(*events.Thread).MainThreadID})
				}
			}
		}
		w.loaded = len(got) < page
	}
	return slices.Sorted(maps.Keys(w.of[documents.ThreadName(d.Tenant, d.Thread)])), nil
}

// cascade deletes the threads that work for a deleted one, or returns when to continue: at most
// Config.Ahead of its commands wait at a time, because the tenant's own commands wait behind them.
func (c *Cleaner) cascade(ctx context.Context, o *openDeletion) (again time.Duration, err error) {
	threads, err := c.workersFor(ctx, o.Deletion)
	if err != nil {
		return 0, err
	}
	part := max(c.cfg.Ahead/2, 1)
	for ; o.sent < len(threads); o.sent++ { // a thread that is added before this place may cause one to be sent twice, which does nothing
		if o.sent%part == 0 {
			waiting, err := c.waiting(ctx, o.Tenant)
			if err != nil {
				return 0, err
			}
			if waiting+part > c.cfg.Ahead {
				return cascadePause, nil
			}
		}
		if err := c.deleteWith(ctx, o.Deletion, threads[o.sent]); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// cascadePause is how long a cascade waits before it counts the waiting commands again.
const cascadePause = 50 * time.Millisecond

// waiting returns how many submitted commands of a tenant to delete threads are not executed yet.
func (c *Cleaner) waiting(ctx context.Context, tenant string) (int, error) {
	names := c.log.Config().Names
	subject := names.Submit(tenant, "thread.delete")
	stream, err := c.log.JetStream().Stream(ctx, names.Stream(assets.CommandStream))
	if err != nil {
		return 0, fmt.Errorf("counting the commands that wait: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, fmt.Errorf("counting the commands that wait: %w", err)
	}
	return int(info.State.Subjects[subject]), nil
}

// DeleteLate deletes those of the created threads with a main thread that was deleted before.
func (c *Cleaner) DeleteLate(ctx context.Context, created []Worker) error {
	deletions := map[string]*buckets.Deletion{} // nil: the thread is not deleted
	for _, one := range created {
		name := documents.ThreadName(one.Tenant, one.Main)
		deletion, known := deletions[name]
		if !known {
			var err error
			if deletion, err = c.deletionOf(ctx, one.Tenant, one.Main); err != nil {
				return err
			}
			deletions[name] = deletion
		}
		if deletion != nil {
			if err := c.deleteWith(ctx, *deletion, one.Thread); err != nil {
				return err
			}
		}
	}
	return nil
}

// deletionOf returns a thread's deletion, nil if it is not deleted.
func (c *Cleaner) deletionOf(ctx context.Context, tenant, thread string) (*buckets.Deletion, error) {
	last, err := c.log.Last(ctx, tenant, thread)
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the last commit of %s/%s: %w", tenant, thread, err)
	case last == nil:
		return nil, nil
	}
	if d, ok := last.Events[len(last.Events)-1].Data.(events.LifecycleDeleted); ok {
		return &buckets.Deletion{Tenant: tenant, Thread: thread, Seq: last.Seq, Purge: d.Purge}, nil
	}
	return nil, nil
}

// deleteWith submits the command that deletes a thread because its main thread was deleted. It
// returns when the command is stored.
func (c *Cleaner) deleteWith(ctx context.Context, d buckets.Deletion, thread string) error {
	if done, err := c.deletionOf(ctx, d.Tenant, thread); done != nil || err != nil {
		return err
	}
	id := "cascade-" + strconv.FormatUint(d.Seq, 10)
	body, err := json.Marshal(struct {
		CommandID string              `json:"commandId"`
		ThreadID  string              `json:"threadId"`
		Actor     string              `json:"actor"`
		Data      events.DeleteThread `json:"data"`
	}{id, thread, "skein:cascade", events.DeleteThread{Purge: d.Purge}})
	if err != nil {
		return err
	}
	subject := c.log.Config().Names.Submit(d.Tenant, "thread.delete")
	if _, err := c.log.JetStream().Publish(ctx, subject, body); err != nil {
		return fmt.Errorf("deleting %s/%s, which works for %s: %w", d.Tenant, thread, d.Thread, err)
	}
	return nil
}
