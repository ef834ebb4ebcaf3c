package projections

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// The end of a thread is the end of the threads that work for it, those with its
// id as mainThreadId, and so on down. Forks, handoffs and mentions
// go on. The runner asks for it with a submitted command for each such
// thread. The note of the end stays until all are stored, and the command's id is
// made from the tombstone, so that a repeat does nothing. The end of each of them
// is then handled in the same way.

// kinship is a thread and the one that it works for.
type kinship struct{ tenant, thread, main string }

// kin knows which threads work for which, as far as documents and what was folded
// since say. It is safe for concurrent use.
type kin struct {
	mu     sync.Mutex // guards what follows; held while the documents are read
	loaded bool
	of     map[string][]string // threads, by the name of the one that they work for
}

func newKin() *kin { return &kin{of: map[string][]string{}} }

func (k *kin) add(one kinship) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(one)
}

func (k *kin) put(one kinship) {
	main := documents.ThreadName(one.tenant, one.main)
	if !slices.Contains(k.of[main], one.thread) {
		k.of[main] = append(k.of[main], one.thread)
	}
}

// noteKin notes the threads of a commit that work for another.
func (s *session) noteKin(c *events.Commit) {
	for i := range c.Events {
		if d, ok := c.Events[i].Data.(events.ThreadCreated); ok && d.MainThreadID != "" {
			one := kinship{c.Tenant, c.Thread, d.MainThreadID}
			s.kin.add(one)
			s.born = append(s.born, one)
		}
	}
}

// workers gives the threads that work for one. The documents are read when this
// is asked for the first time in a session.
func (r *Runner) workers(ctx context.Context, e ending) ([]string, error) {
	r.enders.mu.Lock()
	k := r.enders.kin
	r.enders.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	model := r.models.Of(documents.Threads)
	for from := uint64(1); !k.loaded; {
		const page = 500
		got, err := r.log.Bucket(model.Bucket).Range(ctx, ">", from, page)
		if err != nil {
			return nil, fmt.Errorf("reading which threads work for others: %w", err)
		}
		for _, m := range got {
			from = m.Seq + 1
			if place, ok := documents.ParsePlace(documents.Threads, m.Subject); ok && bytes.Contains(m.Data, []byte(`"mainThreadId"`)) {
				if doc, _, err := model.Decode(m.Data); err == nil {
					tenant, thread, _ := cutName(place.Thread)
					k.put(kinship{tenant, thread, doc.(*events.Thread).MainThreadID})
				}
			}
		}
		k.loaded = len(got) < page
	}
	return slices.Clone(k.of[documents.ThreadName(e.Tenant, e.Thread)]), nil
}

// cascade deletes the threads that work for one that ended.
func (r *Runner) cascade(ctx context.Context, e ending) error {
	threads, err := r.workers(ctx, e)
	if err != nil {
		return err
	}
	for _, id := range threads {
		if err := r.deleteWith(ctx, e, id); err != nil {
			return err
		}
	}
	return nil
}

// orphans deletes the threads of this batch that came after the end of the one
// that they work for.
func (s *session) orphans(ctx context.Context) error {
	ends := map[string]*ending{} // nil: it goes on
	for _, one := range s.born {
		name := documents.ThreadName(one.tenant, one.main)
		end, known := ends[name]
		if !known {
			var err error
			if end, err = s.endOf(ctx, one.tenant, one.main); err != nil {
				return err
			}
			ends[name] = end
		}
		if end != nil {
			if err := s.deleteWith(ctx, *end, one.thread); err != nil {
				return err
			}
		}
	}
	clear(s.born)
	s.born = s.born[:0]
	return nil
}

// endOf gives a thread's end, nil if it has none.
func (r *Runner) endOf(ctx context.Context, tenant, thread string) (*ending, error) {
	last, err := r.log.Last(ctx, tenant, thread)
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the end of %s/%s: %w", tenant, thread, err)
	case last == nil:
		return nil, nil
	}
	if d, ok := last.Events[len(last.Events)-1].Data.(events.LifecycleDeleted); ok {
		return &ending{Tenant: tenant, Thread: thread, Seq: last.Seq, Purge: d.Purge}, nil
	}
	return nil, nil
}

// endsThread reports whether a commit is a thread's end.
func endsThread(c *events.Commit) bool {
	_, ok := c.Events[len(c.Events)-1].Data.(events.LifecycleDeleted)
	return ok
}

// deleteWith submits the command that deletes a thread because another ended. It
// returns when that is stored.
func (r *Runner) deleteWith(ctx context.Context, e ending, thread string) error {
	if end, err := r.endOf(ctx, e.Tenant, thread); end != nil || err != nil {
		return err // it is done
	}
	id := "cascade-" + strconv.FormatUint(e.Seq, 10)
	body, err := json.Marshal(struct {
		CommandID string              `json:"commandId"`
		ThreadID  string              `json:"threadId"`
		Actor     string              `json:"actor"`
		Data      events.DeleteThread `json:"data"`
	}{id, thread, "skein:cascade", events.DeleteThread{Purge: e.Purge}})
	if err != nil {
		return err
	}
	subject := r.log.Config().Names.Submit(e.Tenant, "thread.delete")
	if _, err := r.log.JetStream().Publish(ctx, subject, body); err != nil {
		return fmt.Errorf("deleting %s/%s, which works for %s: %w", e.Tenant, thread, e.Thread, err)
	}
	return nil
}
