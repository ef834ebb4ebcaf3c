package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/schema"
)

// ImportOptions says what to require of a file, and where to report.
type ImportOptions struct {
	ReadOptions
	Differs func(Difference) // called for each thread that was skipped because it differs
}

// Difference is a thread of a file that differs from the one in the log. It was skipped.
type Difference struct {
	Tenant string `json:"tenant"`
	Thread string `json:"thread"`
	Line   int64  `json:"line"`         // of the file
	Seq    uint64 `json:"seq,omitzero"` // of the first commit of the log that differs
	Detail string `json:"detail"`
}

func (d Difference) String() string {
	return fmt.Sprintf("differs: %s/%s, line %d: %s", d.Tenant, d.Thread, d.Line, d.Detail)
}

// ImportSummary counts the threads of a file by outcome, including keys' claims and tenants'
// own aggregates.
type ImportSummary struct {
	Imported  int64  `json:"imported"`  // not in the log before
	Continued int64  `json:"continued"` // the log had their beginning
	Unchanged int64  `json:"unchanged"` // already in the log, as far as the file goes
	Different int64  `json:"different"` // skipped
	Commits   int64  `json:"commits"`   // written
	Contents  int64  `json:"contents"`  // of files, written
	Absent    int64  `json:"absent"`    // contents that the file lacks
	Key       string `json:"key,omitzero"`
}

// Import checks a file as ReadFile does, and then writes what the log does not have yet,
// thread by thread and commit by commit, with the bytes and chains of the file; the log
// assigns new sequences. A thread that the log has with the same commits is left alone, one
// whose beginning it has is continued, and one that differs is reported and skipped, as is a
// thread whose key another thread holds. Running it again adds nothing; if it was interrupted,
// running it again completes it.
//
// Each commit is written on condition of the previous one, so Import may run while a Skein
// server does. Several threads are written at a time, with a few lines of each in memory.
func Import(ctx context.Context, log *eventlog.Log, validator *schema.Validator, file io.ReadSeeker, o ImportOptions) (ImportSummary, error) {
	if err := o.twice(file); err != nil {
		return ImportSummary{}, err
	}
	report, err := ReadFile(file, validator, o.ReadOptions)
	if err != nil {
		return ImportSummary{}, err
	}
	if report.Header.Chains {
		return ImportSummary{}, &FileError{Line: 1, Problem: "the file holds the ends of threads and no commits: verify against it, but there is nothing to import"}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return ImportSummary{}, fmt.Errorf("read the file again: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	i := &importer{ctx: ctx, cancel: cancel, log: log, options: o, places: make(chan struct{}, importThreads), taken: map[aggregate]bool{}}
	i.summary.Key = report.Key
	if report.Header.Contents {
		if i.store, err = openContents(ctx, log); err != nil {
			return i.summary, err
		}
	}
	again, err := readFile(file, validator, o.ReadOptions, StageWrite, i)
	i.close()
	i.working.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil && again.Manifest != report.Manifest {
		err = &FileError{Line: again.Manifest.Lines, Problem: "the file was changed while it was imported"}
	}
	return i.summary, err
}

// How many threads are written at a time, and how many lines of each are buffered.
const (
	importThreads = 8
	importAhead   = 4
)

// importer writes a file to a log. One goroutine reads the file; each thread being written has
// one more.
type importer struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	log     *eventlog.Log
	options ImportOptions
	working sync.WaitGroup
	places  chan struct{}
	lines   chan fileLine // of the current thread
	threads bool          // the threads have started

	store  *files.Store
	coming *files.Incoming // the current content
	skips  bool            // the current content is stored already

	mu      sync.Mutex         // guards the fields below
	taken   map[aggregate]bool // claims of keys that differ
	summary ImportSummary
}

// fileLine is a commit and its line in the file.
type fileLine struct {
	n int64
	*events.Commit
}

// commit passes a commit to the thread's goroutine.
func (i *importer) commit(n int64, a aggregate, c *events.Commit) error {
	if i.lines == nil {
		if events.IsThread(a.id) && !i.threads {
			i.working.Wait() // keys come first: threads depend on their outcome
			i.threads = true
		}
		select {
		case i.places <- struct{}{}:
		case <-i.ctx.Done():
			return context.Cause(i.ctx)
		}
		lines := make(chan fileLine, importAhead)
		i.lines = lines
		i.working.Go(func() {
			defer func() { <-i.places }()
			if err := i.thread(a, lines); err != nil {
				i.cancel(err)
			}
			for range lines { // the rest is discarded
			}
		})
	}
	select {
	case i.lines <- fileLine{n, c}:
		return nil
	case <-i.ctx.Done():
		return context.Cause(i.ctx)
	}
}

func (i *importer) end(int64, aggregate, FileEnd) error {
	i.close()
	return nil
}

// close ends the current thread.
func (i *importer) close() {
	if i.lines != nil {
		close(i.lines)
		i.lines = nil
	}
}

// thread compares the lines of a thread with the log, and writes those that follow.
func (i *importer) thread(a aggregate, lines <-chan fileLine) error {
	next, stop := iter.Pull2(i.log.Raw(i.ctx, i.log.Config().Names.Log(a.tenant, a.id), 1))
	defer stop()
	var last uint64 // the thread's last sequence in the log
	same, written := int64(0), int64(0)
	for c := range lines {
		if i.ctx.Err() != nil {
			return nil // the reason is recorded
		}
		if written == 0 {
			m, err, ok := next()
			if err != nil {
				return fmt.Errorf("read %s/%s: %w", a.tenant, a.id, err)
			}
			if ok && (m.Header.Get(events.HeaderChain) != c.Chain || !bytes.Equal(m.Data, c.Body)) {
				i.differs(a, c.n, m.Seq, i.why(m, same))
				return nil
			}
			if ok {
				last = m.Seq
				same++
				continue
			}
			problem, err := i.keyTaken(a, c.Commit, same)
			if err != nil {
				return err
			}
			if problem != "" {
				i.differs(a, c.n, 0, problem)
				return nil
			}
		}
		c.Seq = 0
		err := i.log.Append(i.ctx, eventlog.Write{Commit: c.Commit, Expected: last})
		var moved *eventlog.ConflictError
		switch {
		case errors.As(err, &moved):
			i.wrote(written, nil)
			i.differs(a, c.n, moved.Last, "somebody else wrote to it meanwhile; run the import again")
			return nil
		case err != nil:
			i.wrote(written, nil)
			return fmt.Errorf("write line %d: %w; what was written is valid; run the import again to continue from there", c.n, err)
		}
		last = c.Seq
		written++
	}
	switch {
	case written == 0:
		i.wrote(0, &i.summary.Unchanged)
	case same == 0:
		i.wrote(written, &i.summary.Imported)
	default:
		i.wrote(written, &i.summary.Continued)
	}
	return nil
}

func (i *importer) wrote(written int64, outcome *int64) {
	i.count(func(s *ImportSummary) {
		s.Commits += written
		if outcome != nil {
			*outcome++
		}
	})
}

func (i *importer) count(add func(*ImportSummary)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	add(&i.summary)
}

// why describes how the log's message differs from the file's.
func (i *importer) why(m streams.Message, same int64) string {
	if c, err := i.log.Decode(m); err == nil && same == 0 && tombstone(c) {
		return "it was purged here"
	}
	return fmt.Sprintf("the log's commit %d differs, after %d equal ones", m.Seq, same)
}

// keyTaken says why a new thread cannot have its key, or returns "".
func (i *importer) keyTaken(a aggregate, c *events.Commit, same int64) (string, error) {
	key := keyOf(c)
	if !events.IsThread(a.id) || same > 0 || key == "" {
		return "", nil
	}
	claim := aggregate{a.tenant, events.KeyAggregate(key)}
	i.mu.Lock()
	taken := i.taken[claim]
	i.mu.Unlock()
	if taken {
		return fmt.Sprintf("its key %.80q is held by another thread here", key), nil
	}
	held, err := i.log.Last(i.ctx, claim.tenant, claim.id)
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
	case err != nil:
		return "", fmt.Errorf("read key of %s/%s: %w", a.tenant, a.id, err)
	case held == nil:
		return fmt.Sprintf("the claim of its key %.80q is not in the file", key), nil
	}
	return "", nil
}

// differs reports a thread that was skipped.
func (i *importer) differs(a aggregate, n int64, seq uint64, detail string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.summary.Different++
	if !events.IsThread(a.id) {
		i.taken[a] = true
	}
	if i.options.Differs != nil {
		i.options.Differs(Difference{Tenant: a.tenant, Thread: a.id, Line: n, Seq: seq, Detail: detail})
	}
}
