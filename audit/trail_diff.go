package audit

import (
	"context"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// TrailPoint is a point in a thread's life: after the event with that version, or after all events
// up to that time.
type TrailPoint struct {
	Version int64       `json:"version,omitzero"`
	Time    events.Time `json:"time,omitzero"`
	Start   bool        `json:"start,omitzero"` // before the first event
}

// TrailSpan holds the events between two points of a thread.
type TrailSpan struct {
	Thread  string        `json:"thread"`
	From    int64         `json:"from"` // the version there; 0: the thread did not exist yet
	To      int64         `json:"to"`
	Broken  int           `json:"broken,omitzero"` // commits that cannot be decoded, and were skipped
	Changes []TrailChange `json:"changes"`
}

// DiffThread returns the changes of a thread between two points: documents that were added or
// removed, and fields that changed. It folds the thread's log twice, with the folds of the read
// models. The zero Point is the thread's end. The error is a not_found, or an invalid_request, or
// says why the log could not be read.
func DiffThread(ctx context.Context, log *eventlog.Log, tenant, thread string, from, to TrailPoint) (TrailSpan, error) {
	if err := checkThread(tenant, thread); err != nil {
		return TrailSpan{}, err
	}
	models := documents.NewModels()
	before, err := foldTo(ctx, log, models, tenant, thread, from)
	if err != nil {
		return TrailSpan{}, err
	}
	after, err := foldTo(ctx, log, models, tenant, thread, to)
	if err != nil {
		return TrailSpan{}, err
	}
	changes, err := CompareDocuments(models, before, after)
	if changes == nil {
		changes = []TrailChange{}
	}
	return TrailSpan{Thread: thread, From: before.Version, To: after.Version, Broken: max(before.Broken, after.Broken), Changes: changes}, err
}

// checkThread refuses names that would mean something else in a subject.
func checkThread(tenant, thread string) error {
	if err := events.CheckTenant("/tenant", tenant); err != nil {
		return err
	}
	if !events.ValidThreadID(thread) {
		return events.Invalid("/threadId", "%.80q is not a thread's id", thread)
	}
	return nil
}

// foldTo folds a thread up to a point.
func foldTo(ctx context.Context, log *eventlog.Log, models *documents.Models, tenant, thread string, p TrailPoint) (*documents.Memory, error) {
	if p.Start {
		return models.NewMemory(nil), nil
	}
	m, err := models.Fold(log.Thread(ctx, tenant, thread, 1), documents.Until{Version: p.Version, Time: p.Time}, eventlog.PagesOn(log.Streams()).In(ctx))
	if err != nil {
		return nil, err
	}
	if m.Version == 0 && p == (TrailPoint{}) {
		return nil, events.Missing("thread", thread)
	}
	if p.Version > m.Version {
		return nil, events.Invalid("/version", "the thread has no version %d; its last is %d", p.Version, m.Version)
	}
	return m, nil
}

// ResolveThread returns the id of a thread named by its id, or by "key:" and its key, from the log
// alone. The error is a not_found, or an invalid_request.
func ResolveThread(ctx context.Context, log *eventlog.Log, tenant, ref string) (string, error) {
	id, key := events.ThreadRef(ref)
	if key == "" {
		return id, checkThread(tenant, id)
	}
	if !events.ValidTenant(tenant) || !events.ValidKey(key) {
		return "", events.Invalid("/threadId", "%.80q is not a thread's key", key)
	}
	last, err := log.Last(ctx, tenant, events.KeyAggregate(key))
	if err != nil {
		return "", err
	}
	if last != nil {
		if d, ok := last.Events[len(last.Events)-1].Data.(events.KeyClaimed); ok && d.Key == key {
			return d.ThreadID, checkThread(tenant, d.ThreadID)
		}
	}
	return "", events.Missing("thread", ref)
}
