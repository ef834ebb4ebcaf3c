package commands

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// load sets the entry's state, if it has none, from the last snapshot and the later commits of
// the log, and from the pages of a history that it has inherited.
func (d *Dispatcher) load(ctx context.Context, e *entry) error {
	if e.state == nil {
		if err := d.loadLog(ctx, e); err != nil {
			return err
		}
	}
	return d.inherit(ctx, e, e.state)
}

// inherit adds to a state the items of a history that the thread has inherited, if they are
// not in it yet.
func (d *Dispatcher) inherit(ctx context.Context, e *entry, state *thread.State) error {
	inherits := state.Inherits()
	if inherits == nil {
		return nil
	}
	return state.Inherit(d.eachPage(ctx, e.tenant, inherits.Pages))
}

// eachPage returns an iterator over pages of a history, in their order, of which it holds a few at
// a time.
func (d *Dispatcher) eachPage(ctx context.Context, tenant string, parts []events.HistoryPart) iter.Seq2[*events.HistoryPage, error] {
	return func(yield func(*events.HistoryPage, error) bool) {
		for some := range slices.Chunk(parts, 2*pagesAtOnce) {
			pages, err := d.readPages(ctx, tenant, some)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, page := range pages {
				if !yield(page, nil) {
					return
				}
			}
		}
	}
}

// loadLog sets the entry's state from the last snapshot and the later commits of the log.
func (d *Dispatcher) loadLog(ctx context.Context, e *entry) error {
	state := &thread.State{}
	last, err := d.log.Last(ctx, e.tenant, e.id)
	switch {
	case err == nil && last == nil: // a new thread
		e.state, e.snapshot = state, 0
		return nil
	case err == nil && last.First() == 0: // this is the only commit
		e.state, e.snapshot = thread.Apply(state, last), 0
		return nil
	case err != nil || last.Version >= d.cfg.SnapshotEvery || archived(last): // a younger thread has no snapshot
		state = d.fromSnapshot(ctx, e)
	}
	e.snapshot = state.Version
	if err := d.follow(ctx, e, state); err != nil {
		return err
	}
	e.state = state
	return nil
}

// snapshotTimeout bounds the time to read a snapshot. Without it the log is folded instead.
const snapshotTimeout = 2 * time.Second

// fromSnapshot returns the state of the last snapshot. If it is missing, damaged or from another
// log, fromSnapshot returns an empty state, and the whole log of the thread is folded.
func (d *Dispatcher) fromSnapshot(ctx context.Context, e *entry) *thread.State {
	reading, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	raw, err := eventlog.SnapshotsOn(d.log.Streams()).Load(reading, e.tenant, e.id)
	if err == nil && raw != nil {
		var state *thread.State
		if state, err = thread.DecodeState(raw); err == nil {
			var commit *events.Commit
			commit, err = d.log.Commit(ctx, e.tenant, e.id, state.Seq)
			if commit != nil && commit.Chain == state.Chain && commit.Version == state.Version {
				return state
			}
			if err == nil {
				err = errForeign
			}
		}
	}
	if err != nil {
		d.logger.Warn().Err(err).Str("tenant", e.tenant).Str("thread", e.id).Msg("snapshot ignored; folding the thread from the log")
	}
	return &thread.State{}
}

var errForeign = errors.New("the snapshot does not fit the log")

// catchUp brings the state at least up to the sequence of the commit that the command's write
// conflicted with. If to is 0, the sequence is unknown or the log contradicts the state, and the
// state is rebuilt.
func (d *Dispatcher) catchUp(ctx context.Context, e *entry, to uint64) error {
	if to > 0 {
		if err := d.follow(ctx, e, e.state); err != nil {
			return err
		}
		if e.state.Seq >= to {
			return d.inherit(ctx, e, e.state)
		}
	} else {
		e.state = nil
		if err := d.load(ctx, e); err != nil {
			return err
		}
	}
	return d.freshen(ctx, e)
}

// freshen brings the state up to date with the leader of the log. Replicas may lag, and a reply
// must reflect every acknowledged commit.
func (d *Dispatcher) freshen(ctx context.Context, e *entry) error {
	for {
		next, err := d.log.After(ctx, e.tenant, e.id, e.state.Seq)
		if err != nil {
			return err
		}
		if next == nil {
			return d.inherit(ctx, e, e.state)
		}
		thread.Apply(e.state, next)
		if err := d.follow(ctx, e, e.state); err != nil { // the usual case
			return err
		}
	}
}

// follow applies the commits after the state's last one.
func (d *Dispatcher) follow(ctx context.Context, e *entry, state *thread.State) error {
	for commit, err := range d.log.Thread(ctx, e.tenant, e.id, state.Seq+1) {
		if err != nil {
			return err
		}
		thread.Apply(state, commit)
	}
	return nil
}

// snapshotDue reports whether a thread has changed enough for a new snapshot. A long thread has a
// large snapshot. It is written again after each growth by a quarter, so all snapshots of a thread
// together are about five times the last one.
func (d *Dispatcher) snapshotDue(e *entry) bool {
	if e.state == nil || e.state.Version == e.snapshot {
		return false
	}
	return e.state.Deleted || e.state.Version-e.snapshot >= max(d.cfg.SnapshotEvery, e.state.Version/4)
}

// snapshotRoom is the largest buffer that is kept from one snapshot to the next.
const snapshotRoom = 16 << 20

// snapshot writes the aggregate's state if it is due and no other snapshot is being written.
// It deletes the snapshot of a deleted thread.
func (d *Dispatcher) snapshot(e *entry) {
	if !d.snapshotDue(e) {
		return
	}
	var raw *bytes.Buffer
	select {
	case raw = <-d.snaps:
	default:
		return
	}
	if raw.Reset(); raw.Cap() > snapshotRoom {
		raw = new(bytes.Buffer)
	}
	tenant, id, deleted := e.tenant, e.id, e.state.Deleted
	var err error
	if !deleted {
		err = e.state.EncodeTo(raw)
	}
	e.snapshot = e.state.Version
	go func() {
		defer func() { d.snaps <- raw }()
		switch {
		case err != nil:
		case deleted:
			err = eventlog.SnapshotsOn(d.log.Streams()).Drop(context.Background(), tenant, id)
		default:
			err = eventlog.SnapshotsOn(d.log.Streams()).Save(context.Background(), tenant, id, raw.Bytes())
			// It may have been deleted meanwhile, and its snapshot removed before this one was
			// written.
			if last, lookErr := d.log.Last(context.Background(), tenant, id); err == nil && lookErr == nil && ended(last) {
				err = eventlog.SnapshotsOn(d.log.Streams()).Drop(context.Background(), tenant, id)
			}
		}
		if err != nil {
			d.logger.Warn().Err(err).Str("tenant", tenant).Str("thread", id).Msg("write or delete snapshot")
		}
	}()
}

// Close waits until no snapshot is being written, for at most the server's reply timeout, and
// prevents further ones. Commands still work. It may be called more than once.
func (d *Dispatcher) Close() { d.closed.Do(func() { <-d.snaps }) }

// archived reports whether a commit is the record of an archive, which comes with a snapshot.
func archived(c *events.Commit) bool {
	_, ok := eventlog.Record(c)
	return ok
}

// ended reports whether a commit is the last of its thread.
func ended(c *events.Commit) bool {
	return c != nil && len(c.Events) > 0 && c.Events[len(c.Events)-1].Type == events.LifecycleDeletedType
}
