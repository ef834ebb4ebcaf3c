package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// Witness checks a file of an export as ReadFile does, and then that the log still has what
// the file shows: of each thread the commit with the file's last version and chain. A chain
// covers all earlier commits, so if the log's chains are right (see Verify), nothing that the
// file shows was rewritten, removed or cut off since. Threads may have grown or been purged. Where
// some of them have the file's sequences, all must that were stored before the file was written:
// those that were imported since have others.
//
// Findings are reported as they are found. Witness returns how many threads, keys' claims and
// tenants' own aggregates it looked for.
func Witness(ctx context.Context, log *eventlog.Log, validator *schema.Validator, file io.ReadSeeker, o ReadOptions, find func(Finding)) (FileReport, int64, error) {
	if err := o.twice(file); err != nil {
		return FileReport{}, 0, err
	}
	report, err := ReadFile(file, validator, o)
	if err != nil {
		return report, 0, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return report, 0, fmt.Errorf("read the file again: %w", err)
	}
	w := &witness{ctx: ctx, log: log, find: find}
	w.written, _ = time.Parse(time.RFC3339Nano, report.Header.Created) // else nothing was stored before it
	_, err = readFile(file, validator, o, StageWitness, w)
	if w.inPlace > 0 { // else it is a file of another log
		for _, f := range w.elsewhere {
			find(f)
		}
	}
	return report, w.looked, err
}

type witness struct {
	ctx    context.Context
	log    *eventlog.Log
	find   func(Finding)
	looked int64

	written   time.Time // the file
	seqs      []uint64  // that the file shows of the current thread's commits
	inPlace   int64     // ends that have the file's sequence
	elsewhere []Finding // ends that have another one; at most mostSuspects
}

func (w *witness) commit(_ int64, _ aggregate, c *events.Commit) error {
	w.seqs = append(w.seqs, c.Seq)
	return nil
}

func (w *witness) content(int64, FileContent) error { return nil }

// end looks for the last commit of a thread.
func (w *witness) end(_ int64, a aggregate, e FileEnd) error {
	w.looked++
	shown := w.seqs
	w.seqs = nil
	// Usually it is where it was. A commit that cannot be read is reported by Verify.
	c, err := w.log.Get(w.ctx, e.Seq)
	var broken *events.BrokenError
	switch {
	case err != nil && !errors.As(err, &broken):
		return fmt.Errorf("read commit %d: %w", e.Seq, err)
	case c != nil && c.Tenant == a.tenant && c.Thread == a.id && c.Chain == e.Chain:
		w.inPlace++
		return w.places(a, e, shown)
	}
	return w.search(a, e)
}

// places compares the sequences of a thread's commits with those that the file shows.
func (w *witness) places(a aggregate, e FileEnd, shown []uint64) error {
	if len(shown) < 2 { // the end was compared
		return nil
	}
	for m, err := range w.log.Raw(w.ctx, w.log.Config().Names.Log(a.tenant, a.id), 1) {
		var archive *eventlog.ArchiveError
		switch {
		case errors.As(err, &archive): // Verify reports it
			return nil
		case err != nil:
			return fmt.Errorf("read %s/%s: %w", a.tenant, a.id, err)
		case len(shown) == 0 || m.Seq > e.Seq || !w.had(m):
			return nil
		case m.Seq != shown[0]:
			w.find(Finding{Kind: KindWitness, Tenant: a.tenant, Thread: a.id, Seq: m.Seq,
				Detail: fmt.Sprintf("the file shows this commit with the sequence %d: the file was altered", shown[0])})
			return nil
		}
		shown = shown[1:]
	}
	return nil
}

// had reports whether the log had a message when the file was written. One that was imported since
// was stored later: several threads are written at once, and may come to have some of the file's
// sequences by chance.
func (w *witness) had(m streams.Message) bool {
	stored, err := time.Parse(time.RFC3339Nano, m.Header.Get(nats.JSTimeStamp))
	return err == nil && stored.Before(w.written)
}

// search looks for it in the whole thread.
func (w *witness) search(a aggregate, e FileEnd) error {
	f := Finding{Kind: KindWitness, Tenant: a.tenant, Thread: a.id, Seq: e.Seq,
		Detail: fmt.Sprintf("the file shows it with %d commits up to version %s, but it is not in the log", e.Commits, e.Version)}
	upTo, err := strconv.ParseInt(e.Version, 10, 64)
	if err != nil { // ReadFile accepts no such end
		return err
	}
	for m, err := range w.log.Raw(w.ctx, w.log.Config().Names.Log(a.tenant, a.id), 1) {
		if err != nil {
			return fmt.Errorf("read %s/%s: %w", a.tenant, a.id, err)
		}
		c, err := w.log.Decode(m)
		switch {
		case m.Header.Get(events.HeaderChain) == e.Chain:
			if w.had(m) && len(w.elsewhere) < mostSuspects {
				f.Seq, f.Detail = m.Seq, fmt.Sprintf("the file shows its end with the sequence %d: the file was altered", e.Seq)
				w.elsewhere = append(w.elsewhere, f)
			}
			return nil
		case err != nil:
			continue
		case tombstone(c):
			return nil
		case c.Version >= upTo:
			f.Seq, f.Detail = m.Seq, fmt.Sprintf("the file shows another commit that ends at version %s: the thread was rewritten", e.Version)
			w.find(f)
			return nil
		}
		f.Seq, f.Detail = m.Seq, fmt.Sprintf("the file shows it up to version %s, but in the log it ends at version %d: its end was cut off", e.Version, c.Version)
	}
	w.find(f)
	return nil
}
