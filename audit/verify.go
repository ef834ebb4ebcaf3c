package audit

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// Options says what to verify.
type Options struct {
	Tenant   string             // only this tenant; all if empty
	Threads  []string           // only these threads of the tenant; all if empty
	LogOnly  bool               // leave out contents, and what is derived: timeline and read models
	Finding  func(Finding)      // told of each finding
	Progress func(done, of int) // told after each thread; may be nil
}

// Verify checks the log, and what is derived from it. The findings are told as
// they come; an error means that the check itself could not be done.
func Verify(ctx context.Context, log *eventlog.Log, validator *schema.Validator, o Options) (Summary, error) {
	v := &verifier{log: log, schema: validator, options: o, checker: events.NewTimelineChecker(), named: map[string]*named{}, purged: map[aggregate]uint64{}}
	end, err := log.LastSeq(ctx)
	if err != nil {
		return v.summary, err
	}
	v.summary.LastSeq = end
	aggregates, err := v.aggregates(ctx)
	if err != nil {
		return v.summary, err
	}
	for i, a := range aggregates {
		if err := v.aggregate(ctx, a); err != nil {
			return v.summary, err
		}
		if o.Progress != nil {
			o.Progress(i+1, len(aggregates))
		}
	}
	if len(o.Threads) == 0 && o.Tenant == "" {
		if err := v.sequence(ctx); err != nil {
			return v.summary, err
		}
	}
	if o.LogOnly {
		return v.summary, nil
	}
	if err := v.contents(ctx); err != nil {
		return v.summary, err
	}
	if err := v.timeline(ctx); err != nil {
		return v.summary, err
	}
	return v.summary, v.documents(ctx)
}

type verifier struct {
	log     *eventlog.Log
	schema  *schema.Validator
	options Options
	checker *events.TimelineChecker
	summary Summary
	purged  map[aggregate]uint64 // threads that were purged, and the commits with their tombstones; they explain missing sequences
	named   map[string]*named    // contents, by tenant and digest
}

// aggregate is one subject of the log.
type aggregate struct{ tenant, id string }

func (v *verifier) find(f Finding) {
	v.summary.Findings++
	if v.options.Finding != nil {
		v.options.Finding(f)
	}
}

// aggregates lists what is to be checked, in a fixed order.
func (v *verifier) aggregates(ctx context.Context) ([]aggregate, error) {
	var out []aggregate
	if len(v.options.Threads) > 0 {
		for _, id := range v.options.Threads {
			out = append(out, aggregate{v.options.Tenant, id})
		}
		return out, nil
	}
	tenant := v.options.Tenant
	if tenant == "" {
		tenant = "*"
	}
	names := v.log.Config().Names
	stream, err := v.log.JetStream().Stream(ctx, names.Stream(eventlog.LogStream))
	if err != nil {
		return nil, fmt.Errorf("the log: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(names.Log(tenant, "*")))
	if err != nil {
		return nil, fmt.Errorf("listing the log's threads: %w", err)
	}
	for subject := range info.State.Subjects {
		if tenant, id, ok := names.ParseLog(subject); ok {
			out = append(out, aggregate{tenant, id})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].tenant != out[j].tenant {
			return out[i].tenant < out[j].tenant
		}
		return out[i].id < out[j].id
	})
	return out, nil
}

// aggregate checks the commits of one subject, and then what is shown of it.
func (v *verifier) aggregate(ctx context.Context, a aggregate) error {
	if events.IsThread(a.id) {
		v.summary.Threads++
	} else {
		v.summary.Others++
	}
	defer v.checker.Forget(a.tenant, a.id)
	end, err := v.tombstone(ctx, a)
	if err != nil {
		return err
	}
	chain, version := "", int64(0)
	for m, err := range v.log.Raw(ctx, v.log.Config().Names.Log(a.tenant, a.id), 1) {
		if err != nil {
			return fmt.Errorf("reading %s/%s: %w", a.tenant, a.id, err)
		}
		if m.Seq > v.summary.LastSeq && len(v.options.Threads) == 0 {
			break // came after the check began
		}
		if m.Seq < end {
			continue // it is being erased
		}
		v.summary.Commits++
		commit, err := v.log.Decode(m)
		if err != nil {
			v.find(Finding{Kind: KindBroken, Tenant: a.tenant, Thread: a.id, Seq: m.Seq, Detail: err.Error()})
			chain = m.Header.Get(events.HeaderChain) // what follows is judged by what this one says of itself
			version = -1
			continue
		}
		if m.Seq == end {
			v.checker.Erased(a.tenant, a.id)
		} else {
			v.commit(a, commit, chain, version)
		}
		for i := range commit.Events {
			v.event(a, commit, &commit.Events[i])
		}
		chain, version = commit.Chain, commit.Version
	}
	return nil
}

// tombstone gives the sequence of the commit that is all that a purge leaves of a
// thread, 0 if it was not purged.
func (v *verifier) tombstone(ctx context.Context, a aggregate) (uint64, error) {
	last, err := v.log.Last(ctx, a.tenant, a.id)
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("reading %s/%s: %w", a.tenant, a.id, err)
	case last == nil || last.First() == 0:
		return 0, nil
	}
	d, ok := last.Events[len(last.Events)-1].Data.(events.LifecycleDeleted)
	if !ok || !d.Purge {
		return 0, nil
	}
	v.purged[a] = last.Seq
	return last.Seq, nil
}

// commit checks a commit against the one before it.
func (v *verifier) commit(a aggregate, c *events.Commit, chain string, version int64) {
	if want := events.Chain(chain, c.Body); want != c.Chain {
		detail := "its chain is not that of its bytes and of the commit before it: one of them was altered, dropped or moved"
		v.find(Finding{Kind: KindChain, Tenant: a.tenant, Thread: a.id, Seq: c.Seq, Detail: detail})
	}
	if version >= 0 && c.First() != version {
		v.find(Finding{Kind: KindVersion, Tenant: a.tenant, Thread: a.id, Seq: c.Seq,
			Detail: fmt.Sprintf("it begins after version %d, and the commit before it ends at %d", c.First(), version)})
	}
}

// event checks an event by itself, and against what came before it.
func (v *verifier) event(a aggregate, c *events.Commit, e *events.Event) {
	v.summary.Events++
	place := Finding{Tenant: a.tenant, Thread: a.id, Seq: c.Seq, Event: e.ID}
	if u, ok := e.Data.(events.Unknown); ok {
		place.Kind, place.Detail = KindUnknown, fmt.Sprintf("%s: %s %s", u.Reason, e.Type, u.Schema)
		v.find(place)
	} else if err := v.schema.Event(e); err != nil {
		place.Kind, place.Detail = KindSchema, err.Error()
		v.find(place)
	}
	v.noteFile(a, e, place)
	err := v.checker.Check(e)
	if err == nil {
		return
	}
	place.Kind, place.Detail = kindOf(err), err.Error()
	v.find(place)
}

// sequence checks that no message is missing from the log, unless a purged
// thread explains it.
func (v *verifier) sequence(ctx context.Context) error {
	stream, err := v.log.JetStream().Stream(ctx, v.log.Config().Names.Stream(eventlog.LogStream))
	if err != nil {
		return fmt.Errorf("the log: %w", err)
	}
	s := stream.CachedInfo().State
	missing := s.LastSeq - s.Msgs
	if s.Msgs > 0 && missing > 0 && len(v.purged) == 0 {
		v.find(Finding{Kind: KindSequence, Detail: fmt.Sprintf("%d messages are missing, and no tombstone of a purged thread explains it", missing)})
	}
	return nil
}
