package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

func getThread(a *asking, d events.GetThread) (*events.Thread, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	thread, err := a.ofThread(d.ThreadID)
	if err != nil {
		return nil, err
	}
	return shown(thread), nil
}

// shown returns a thread's document without Skein's internal fields.
func shown(t *events.Thread) *events.Thread {
	out := *t
	out.MessageBlocks, out.ListedSeq, out.Parents = nil, 0, nil
	return &out
}

// ofThread returns the thread's own document.
func (a *asking) ofThread(ref string) (*events.Thread, error) {
	got, err := a.source.get(a.ctx, a.place(documents.Threads, ""))
	if err != nil {
		return nil, err
	}
	if got[0].doc == nil {
		return nil, events.Missing("thread", ref)
	}
	return got[0].doc.(*events.Thread), nil
}

func getContext(a *asking, d events.GetContext) (*events.Context, error) {
	if d.ThreadID == "" && d.ContextID == "" {
		return nil, events.Invalid("/threadId", "a context is named by its contextId, or by the threadId whose default one it is")
	}
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	id := d.ContextID
	if id == "" {
		thread, err := a.ofThread(d.ThreadID)
		if err != nil {
			return nil, err
		}
		id = thread.ContextID
	}
	return one[events.Context](a, "context", documents.Contexts, d.ThreadID, id)
}

func getItem(a *asking, d events.GetItem) (*events.Item, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	item, err := one[events.Item](a, "item", documents.Items, d.ThreadID, d.ItemID)
	if err != nil {
		return nil, err
	}
	return a.answerable(item)
}

// answerable returns an item that fits into one answer. Notes replace values that are too large,
// and say where to read them.
func (a *asking) answerable(item *events.Item) (*events.Item, error) {
	most := a.answerBytes()
	if len(item.Content)+len(item.Metadata) < most/2 {
		return item, nil
	}
	fitted, _ := events.FitItems([]events.Item{*item}, most)
	raw, err := documents.Encode(&fitted[0])
	if err != nil {
		return nil, fmt.Errorf("encoding item %s: %w", item.ID, err)
	}
	if len(raw) > most {
		return nil, events.TooLarge("the answer", int64(len(raw)), int64(most))
	}
	return &fitted[0], nil
}

func getExecution(a *asking, d events.GetExecution) (*events.Execution, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	return one[events.Execution](a, "execution", documents.Executions, d.ThreadID, d.ExecutionID)
}

// one returns a document by its id, in the named thread or, if none is named, in any thread of the
// tenant. Of several it returns the one that changed last.
func one[T any](a *asking, entity string, k documents.Kind, ref, id string) (*T, error) {
	var got []found
	var err error
	if ref != "" {
		got, err = a.source.get(a.ctx, a.place(k, id))
	} else {
		got, err = a.source.find(a.ctx, k, a.tenant+".*."+id)
	}
	if err != nil {
		return nil, err
	}
	got = slices.DeleteFunc(got, func(f found) bool { return f.doc == nil })
	if len(got) == 0 {
		return nil, a.missing(entity, ref, id)
	}
	return newest(got).doc.(*T), nil
}

func newest(got []found) found {
	return slices.MaxFunc(got, func(a, b found) int { return cmp.Compare(a.seq, b.seq) })
}

// missing returns the not_found error for the named thread, or for the entity in it.
func (a *asking) missing(entity, ref, id string) error {
	if ref != "" {
		if _, err := a.ofThread(ref); err != nil {
			return err
		}
	}
	return events.Missing(entity, id)
}

// Pairs reads the key-value pairs of tenants. Package eventlog/pairs implements it.
type Pairs interface {
	Get(ctx context.Context, tenant string, d events.GetKV) (*events.KVEntry, error)
	List(ctx context.Context, tenant string, d events.ListKV) (*events.KVList, error)
}

// getKV returns the current value of a key, read from the leader of its bucket.
func getKV(a *asking, d events.GetKV) (*events.KVEntry, error) {
	if a.cfg.Pairs == nil {
		return nil, noPairs()
	}
	return a.cfg.Pairs.Get(a.ctx, a.tenant, d)
}

func listKV(a *asking, d events.ListKV) (*events.KVList, error) {
	if a.cfg.Pairs == nil {
		return nil, noPairs()
	}
	return a.cfg.Pairs.List(a.ctx, a.tenant, d)
}

// Pushes reads where the updates of runs are sent. Package runtime/webhooks implements it.
type Pushes interface {
	List(ctx context.Context, tenant string, d events.ListPushes) (*events.PushList, error)
}

func listPushes(a *asking, d events.ListPushes) (*events.PushList, error) {
	if a.cfg.Pushes == nil {
		return nil, events.Errorf(events.Unavailable, "this process reads no pushes")
	}
	return a.cfg.Pushes.List(a.ctx, a.tenant, d)
}

func noPairs() error {
	return events.Errorf(events.Unavailable, "this process reads no key-value pairs")
}
