package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/events"
)

// snapshotCheck checks that each snapshot equals the fold of the log at the commit that it names.
// Decisions on long threads start from them.
type snapshotCheck struct {
	kept map[aggregate]bool // aggregates that have one, and were not checked yet

	raw []byte // of the current aggregate; nil: there is none, or it was compared
	seq uint64 // of the commit that it names
}

// listSnapshots lists the aggregates that have a snapshot. It reports what cannot be listed.
func (v *verifier) listSnapshots(ctx context.Context) error {
	v.snapshots.kept = map[aggregate]bool{}
	if v.options.LogOnly || !v.options.Range.whole() {
		return nil
	}
	if there, err := v.hasStream(ctx, objects.Stream(v.bucket(assets.SnapshotBucket))); err != nil || !there {
		return err // it is derived, and created when Skein starts
	}
	for of, err := range eventlog.SnapshotsOn(v.log.Streams()).List(ctx) {
		if err != nil {
			return v.damaged(ctx, err, Finding{Kind: KindSnapshot, Bucket: v.bucket(assets.SnapshotBucket)})
		}
		if v.options.Tenant == "" || v.options.Tenant == of.Tenant {
			v.snapshots.kept[aggregate{of.Tenant, of.Aggregate}] = true
		}
	}
	return nil
}

func (v *verifier) bucket(name string) string { return v.log.Config().Names.Bucket(name) }

// snapshotPlace returns a finding at the snapshot of an aggregate.
func (v *verifier) snapshotPlace(a aggregate, detail string) Finding {
	return Finding{
		Kind: KindSnapshot, Tenant: a.tenant, Thread: a.id, Bucket: v.bucket(assets.SnapshotBucket), Key: a.tenant + "/" + a.id,
		Detail: detail + "; delete it, and it is made again from the log",
	}
}

// take reports whether there is a snapshot of an aggregate, and removes it from the list.
func (s *snapshotCheck) take(a aggregate) bool {
	there := s.kept[a]
	delete(s.kept, a)
	return there
}

// beginSnapshot reads the snapshot of the next aggregate.
func (v *verifier) beginSnapshot(ctx context.Context, a aggregate) error {
	s := &v.snapshots
	s.raw, s.seq = nil, 0
	raw, state, err := v.readSnapshot(ctx, a)
	if err != nil && unanswered(ctx, err) {
		return fmt.Errorf("read snapshot of %s/%s: %w", a.tenant, a.id, err)
	}
	if err != nil { // it may be being replaced
		return v.ask(ctx, suspect{place: v.snapshotPlace(a, err.Error()), confirm: func(ctx context.Context) (bool, error) {
			_, _, err := v.readSnapshot(ctx, a)
			if err != nil && unanswered(ctx, err) {
				return false, err
			}
			return err == nil, nil
		}})
	}
	if state != nil {
		s.raw, s.seq = raw, state.Seq
	}
	return nil
}

// readSnapshot reads a snapshot. It returns nil if there is none, or none that is used.
func (v *verifier) readSnapshot(ctx context.Context, a aggregate) ([]byte, *thread.State, error) {
	raw, err := eventlog.SnapshotsOn(v.log.Streams()).Load(ctx, a.tenant, a.id)
	if err != nil || raw == nil {
		return nil, nil, err
	}
	state, err := thread.DecodeState(raw)
	var form *thread.FormError
	if errors.As(err, &form) { // of another version: it is not used
		return nil, nil, nil
	}
	return raw, state, err
}

// compareSnapshot compares the snapshot with the state after a commit.
func (v *verifier) compareSnapshot(a aggregate, seq uint64) {
	s := &v.snapshots
	if s.raw == nil || s.seq != seq {
		return
	}
	raw := s.raw
	if s.raw = nil; v.judge.unsure {
		return
	}
	folded, err := v.judge.ledger.State().Encode()
	if err != nil || !bytes.Equal(raw, folded) {
		f := v.snapshotPlace(a, fmt.Sprintf("the snapshot at commit %d differs from the fold of the log", seq))
		f.Seq = seq
		v.find(f)
	}
}

// endSnapshot reports a snapshot whose commit was not found. One that was written since the
// check started may be of a later commit.
func (v *verifier) endSnapshot(ctx context.Context, a aggregate) error {
	s := &v.snapshots
	raw, seq := s.raw, s.seq
	s.raw = nil
	if raw == nil || v.judge.unsure {
		return nil
	}
	place := v.snapshotPlace(a, fmt.Sprintf("the snapshot is of commit %d, which the thread does not have", seq))
	return v.ask(ctx, suspect{place: place, confirm: func(ctx context.Context) (bool, error) {
		if seq <= v.last {
			return false, nil
		}
		c, err := v.log.Commit(ctx, a.tenant, a.id, seq)
		return c != nil || err != nil && notBroken(err) == nil, notBroken(err)
	}})
}

// strangeSnapshots reports snapshots of aggregates that are not in the log.
func (v *verifier) strangeSnapshots(ctx context.Context) error {
	if len(v.options.Threads) > 0 {
		return nil
	}
	for _, a := range slices.SortedFunc(maps.Keys(v.snapshots.kept), func(a, b aggregate) int {
		return cmp.Or(strings.Compare(a.tenant, b.tenant), strings.Compare(a.id, b.id))
	}) {
		if err := v.ask(ctx, suspect{place: v.snapshotPlace(a, "the snapshot is of a thread that is not in the log"), confirm: func(ctx context.Context) (bool, error) {
			if !events.ValidTenant(a.tenant) || !validAggregate(a.id) {
				return false, nil
			}
			last, err := v.log.Last(ctx, a.tenant, a.id)
			var broken *events.BrokenError
			return last != nil || errors.As(err, &broken), notBroken(err)
		}}); err != nil {
			return err
		}
	}
	return nil
}

// notBroken drops the error of a commit that cannot be decoded, which is reported at its own
// place.
func notBroken(err error) error {
	var broken *events.BrokenError
	if errors.As(err, &broken) {
		return nil
	}
	return err
}
