package archive

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// Step names a completed step of archiving a thread.
type Step string

// The steps, in order.
const (
	Written  Step = "written"  // the object is in the store
	Checked  Step = "checked"  // it was read back
	Recorded Step = "recorded" // the record is in the log
	Kept     Step = "kept"     // the state is stored as a snapshot
	Purged   Step = "purged"   // the log and the timeline have nothing before the record
)

// Config configures an archiver. The zero value of a field means its default.
type Config struct {
	Patience time.Duration // how long to wait until the read models and the timeline show a thread; default 10 s
	Every    time.Duration // how often policies are applied; default [DefaultEvery]
	Rate     float64       // threads a second that policies archive at most; default 5
	// ColdBytes is the maximum size of a thread that is frozen: its commits, plus 1 KiB for each
	// commit. The first read of a cold thread takes about 20 ms of processor time for each MiB.
	// Default 16 MiB.
	ColdBytes int
	ColdRate  float64          // threads a second that are frozen at most; default 100
	Settle    time.Duration    // how long after a thread became cold its documents are removed; default [DefaultSettle], negative: at once
	Now       func() time.Time // default time.Now
	// Told is called after each step of a thread. If it returns an error, archiving stops there,
	// and the next call resumes it. May be nil.
	Told func(ctx context.Context, tenant, thread string, step Step) error
}

// DefaultEvery is how often policies are applied.
const DefaultEvery = time.Hour

// DefaultSettle is more than twice the two minutes within which a server syncs derived streams to
// its disk.
const DefaultSettle = 5 * time.Minute

func (c Config) withDefaults() Config {
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.Every == 0 {
		c.Every = DefaultEvery
	}
	if c.Rate == 0 {
		c.Rate = 5
	}
	if c.ColdBytes == 0 {
		c.ColdBytes = 16 << 20
	}
	if c.ColdRate == 0 {
		c.ColdRate = 100
	}
	if c.Settle == 0 {
		c.Settle = DefaultSettle
	}
	c.Settle = max(c.Settle, 0)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Told == nil {
		c.Told = func(context.Context, string, string, Step) error { return nil }
	}
	return c
}

// Archiver archives the threads of a log. It is safe for concurrent use.
type Archiver struct {
	log      *eventlog.Log
	models   *documents.Models
	timeline *timeline.Timeline
	cfg      Config
	logger   zerolog.Logger
}

// New returns an archiver. It may run next to a Skein server, and next to other archivers.
func New(log *eventlog.Log, cfg Config, logger zerolog.Logger) *Archiver {
	return &Archiver{log: log, models: documents.NewModels(), timeline: timeline.Of(log), cfg: cfg.withDefaults(), logger: logger}
}

// Outcome is the result of archiving a thread.
type Outcome string

// The outcomes.
const (
	Archived Outcome = "archived" // its commits are now in the object store
	Finished Outcome = "finished" // an interrupted archive was completed
	Already  Outcome = "already"  // nothing was written since it was last archived
	Young    Outcome = "young"    // it was written to too recently
	Busy     Outcome = "busy"     // it has in-flight work, or scheduled effects
	Moved    Outcome = "moved"    // it was written to meanwhile
	Ended    Outcome = "ended"    // it was deleted
	Due      Outcome = "due"      // it would be archived if this were no dry run
)

// Result describes the outcome for one thread.
type Result struct {
	Tenant  string  `json:"tenant"`
	Thread  string  `json:"thread"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitzero"`  // why it is busy
	Commits int64   `json:"commits,omitzero"` // archived
	Bytes   int64   `json:"bytes,omitzero"`   // of their bodies
}

// Options says which threads to archive.
type Options struct {
	Idle   time.Duration // minimum time since the last write
	DryRun bool          // only report
}

// Thread archives a thread if it is idle, or completes an interrupted archive. The error is an
// events.Error of code not_found, projection_behind or unavailable, or says what failed. After an
// error nothing is lost, and the call may be repeated.
func (a *Archiver) Thread(ctx context.Context, tenant, id string, o Options) (Result, error) {
	r := Result{Tenant: tenant, Thread: id}
	if err := events.CheckTenant("/tenant", tenant); err != nil {
		return r, err
	}
	if !events.ValidThreadID(id) {
		return r, events.Invalid("/threadId", "%.80q is not a thread's id", id)
	}
	last, err := a.log.Newest(ctx, tenant, id)
	if err != nil {
		return r, fmt.Errorf("archive %s/%s: %w", tenant, id, err)
	}
	if last == nil {
		return r, events.Missing("thread", id)
	}
	end := last.Events[len(last.Events)-1]
	record, recorded := eventlog.Record(last)
	switch {
	case end.Type == events.LifecycleDeletedType:
		r.Outcome = Ended
	case recorded && uint64(record.LastSeq) < last.Seq:
		r.Outcome, err = a.takeUp(ctx, last, o)
		if isMissing(err) { // the thread was imported with its record: all is in the log, or reading it fails below
			err = a.archive(ctx, &r, last, o)
		}
	case end.Time.Go().After(a.cfg.Now().Add(-o.Idle)):
		r.Outcome = Young
	default:
		err = a.archive(ctx, &r, last, o)
	}
	if err != nil {
		return r, fmt.Errorf("archive %s/%s: %w", tenant, id, err)
	}
	return r, nil
}

// takeUp completes the archive of a record if archiving was interrupted.
func (a *Archiver) takeUp(ctx context.Context, record *events.Commit, o Options) (Outcome, error) {
	for m, err := range a.log.Stored(ctx, a.log.Config().Names.Log(record.Tenant, record.Thread), 1) {
		switch {
		case err != nil:
			return "", err
		case m.Seq >= record.Seq:
			return Already, nil
		case o.DryRun:
			return Due, nil
		}
		break
	}
	return Finished, a.finish(ctx, record)
}

// archive archives a thread up to its last commit.
func (a *Archiver) archive(ctx context.Context, r *Result, last *events.Commit, o Options) error {
	if err := a.checkErasable(ctx); err != nil {
		return err
	}
	h, err := a.read(ctx, last, o)
	if err != nil {
		return err
	}
	if r.Reason = h.state.Busy(); r.Reason != "" {
		r.Outcome = Busy
		return nil
	}
	if r.Outcome, r.Commits, r.Bytes = Due, h.record.Commits, h.record.Bytes; o.DryRun {
		return nil
	}
	if err := a.awaitDocuments(ctx, last.Seq); err != nil {
		return err
	}
	record, d, moved, err := a.write(ctx, last, h)
	switch {
	case moved:
		r.Outcome, r.Commits, r.Bytes = Moved, 0, 0
		return a.abandon(ctx, last, d)
	case err != nil:
		return err
	}
	r.Outcome = Archived
	if err := a.told(ctx, record, Recorded); err != nil {
		return err
	}
	if err := a.keep(ctx, h.state, record); err != nil {
		return err
	}
	if err := a.purge(ctx, record); err != nil {
		return err
	}
	return a.clean(ctx, last, h.seqs)
}

// write stores an archive, reads it back and records it. moved reports that the thread was written
// to meanwhile; then there is no record.
func (a *Archiver) write(ctx context.Context, last *events.Commit, h *history) (record *events.Commit, d events.LifecycleArchived, moved bool, err error) {
	if d, err = a.log.PutArchive(ctx, last.Tenant, last.Thread, h.record); err != nil {
		return nil, d, a.movedOn(ctx, last, err), err
	}
	if err := a.told(ctx, last, Written); err != nil {
		return nil, d, false, err
	}
	if err := a.log.CheckArchive(ctx, last.Tenant, last.Thread, d); err != nil {
		// The object may be missing because another archiver, which lost to a writer, has deleted
		// it.
		return nil, d, a.movedOn(ctx, last, err), err
	}
	if err := a.told(ctx, last, Checked); err != nil {
		return nil, d, false, err
	}
	record, err = a.append(ctx, last, h, d)
	var conflict *eventlog.ConflictError
	return record, d, errors.As(err, &conflict), err
}

// history holds the commits that were read of a thread to archive.
type history struct {
	state  *thread.State
	older  bool     // it has archived commits already
	seqs   []uint64 // of the commits in the log
	record events.LifecycleArchived
}

// read reads and checks a thread up to its last commit. It first completes an interrupted
// earlier archive.
func (a *Archiver) read(ctx context.Context, last *events.Commit, o Options) (*history, error) {
	h := &history{state: &thread.State{}}
	for m, err := range a.log.Raw(ctx, a.log.Config().Names.Log(last.Tenant, last.Thread), 1) {
		if err != nil {
			return nil, err
		}
		if m.Seq > last.Seq {
			break
		}
		c, err := a.log.Decode(m)
		if err != nil {
			return nil, err
		}
		if events.Chain(h.state.Chain, c.Body) != c.Chain || c.First() != h.state.Version {
			return nil, fmt.Errorf("commit %d does not follow the previous one; run skein audit verify", m.Seq)
		}
		if d, ok := eventlog.Record(c); ok && uint64(d.LastSeq) < m.Seq && !m.Archived && len(h.seqs) > 0 && !o.DryRun {
			err := a.finish(ctx, c)
			if err == nil {
				return a.read(ctx, last, o)
			}
			if !isMissing(err) || h.older { // the thread was imported, and everything before the record is in the log
				return nil, err
			}
		}
		thread.Apply(h.state, c)
		if m.Archived {
			h.older = true
			continue
		}
		if len(h.seqs) == 0 {
			h.record.FirstSeq = int64(m.Seq)
		}
		h.seqs = append(h.seqs, m.Seq)
		h.record.Commits++
		h.record.Bytes += int64(len(m.Data))
	}
	if h.state.Chain != last.Chain {
		return nil, events.Errorf(events.Unavailable, "the log's copies do not agree yet; try again")
	}
	h.record.LastSeq, h.record.Chain = int64(last.Seq), last.Chain
	return h, nil
}

// awaitDocuments waits until the read models show a commit, because the projections read commits
// from the log only.
func (a *Archiver) awaitDocuments(ctx context.Context, seq uint64) error {
	for attempts := (retry.Policy{First: 50 * time.Millisecond, Limit: a.cfg.Patience}).Start(); ; {
		shown, err := buckets.Shown(ctx, a.log)
		if err != nil || shown >= seq {
			return err
		}
		switch err := attempts.Wait(ctx); {
		case errors.Is(err, retry.ErrExhausted):
			return events.Errorf(events.ProjectionBehind, "the read models show the log up to %d, not yet commit %d; is skein serve running?", shown, seq)
		case err != nil:
			return err
		}
	}
}

// append writes the record on condition that last is still the thread's last commit.
func (a *Archiver) append(ctx context.Context, last *events.Commit, h *history, d events.LifecycleArchived) (*events.Commit, error) {
	made, err := thread.Decide(h.state, &thread.Command{
		ID: "archive-" + strconv.FormatUint(uint64(d.LastSeq), 10), Tenant: last.Tenant, ThreadID: last.Thread, Time: events.TimeOf(a.cfg.Now()), Actor: Actor,
		Parts: []thread.Part{{Name: "thread.archive", Data: thread.ArchiveThread{Record: d}}},
	})
	if err != nil {
		return nil, err
	}
	record, err := events.NewCommit(h.state.Chain, made)
	if err != nil {
		return nil, err
	}
	return record, a.log.Append(ctx, eventlog.Write{Commit: record, Expected: uint64(d.LastSeq)})
}
