package files

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/pattern"
)

// Bounds of one search.
const (
	GrepPattern = 10_000          // instructions of the compiled pattern; a larger one is refused
	GrepBytes   = 2 << 30         // searched; beyond that the reply says that it is incomplete
	GrepSteps   = 1 << 38         // instructions times bytes of the lines on which they are tried; likewise
	GrepTime    = 6 * time.Second // likewise
	LineBytes   = 1000            // returned of a line
	LongLine    = 1 << 20         // a longer line is searched in parts of this size
	answerMax   = 2 << 20         // of all lines together

	binaryLook  = 8000 // a NUL within these first bytes makes a file binary
	filesAtOnce = 4
)

// Grep searches files for a pattern (RE2), line by line: in the order of the files, lines counted
// from 1, without their ends, cut to LineBytes. A file with a NUL among its first bytes is binary
// and skipped. Invalid UTF-8 is shown as U+FFFD. Grep returns only after all of its goroutines
// have ended, so that its quota is held for as long as it uses resources.
func (v *Viewer) Grep(ctx context.Context, tenant string, list []events.FileRecord, pattern string, limit int) (*events.GrepList, error) {
	find, err := newFinder(pattern)
	if err != nil {
		return nil, err
	}
	leave, err := place(ctx, v.searches, tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, GrepTime)
	defer cancel()
	g := search{viewer: v, tenant: tenant, find: find, limit: limit}
	return g.run(ctx, list)
}

// search is the state of one call of Grep.
type search struct {
	viewer *Viewer
	tenant string
	find   *finder
	limit  int
	bytes  atomic.Int64
	steps  atomic.Int64
}

// searched is the result for one file.
type searched struct {
	matches []events.GrepMatch
	binary  bool
	cut     bool // not all of it was searched, or returned
	err     error
}

// run searches several files at a time, and merges their results in order.
func (g *search) run(ctx context.Context, list []events.FileRecord) (*events.GrepList, error) {
	var working sync.WaitGroup
	defer working.Wait() // they end soon, because all of them watch the context
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &events.GrepList{Results: []events.GrepResult{}}
	results := make([]chan searched, len(list))
	for i := range results {
		results[i] = make(chan searched, 1)
	}
	places := make(chan struct{}, filesAtOnce)
	working.Go(func() {
		for i := range list {
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			working.Go(func() {
				defer func() { <-places }()
				results[i] <- g.file(ctx, list[i].Digest)
			})
		}
	})
	lines, room := 0, answerMax
	for i := range list {
		var got searched
		select {
		case got = <-results[i]:
		case <-ctx.Done():
			out.Truncated = true
			out.Bytes = g.bytes.Load()
			return out, nil
		}
		if got.err != nil {
			if ctx.Err() != nil {
				out.Truncated = true
				break
			}
			return nil, refusal(got.err)
		}
		if got.binary {
			continue
		}
		out.Files++
		out.Truncated = out.Truncated || got.cut
		for n, m := range got.matches {
			if room -= len(m.Content) + 32; room < 0 || lines == g.limit {
				got.matches, out.Truncated = got.matches[:n], true
				break
			}
			lines++
		}
		if len(got.matches) > 0 {
			out.Results = append(out.Results, events.GrepResult{Path: list[i].Path, Matches: got.matches})
		}
		if lines == g.limit && i+1 < len(list) || room < 0 {
			out.Truncated = true
			break
		}
	}
	out.Bytes = g.bytes.Load()
	return out, nil
}

// file searches one file.
func (g *search) file(ctx context.Context, digest string) searched {
	s := scan{find: g.find, spend: g.spending(ctx), limit: g.limit, line: 1}
	first := true
	for piece, err := range g.viewer.store.All(ctx, g.tenant, digest) {
		switch {
		case err != nil:
			return searched{err: err}
		case first && bytes.IndexByte(piece[:min(len(piece), binaryLook)], 0) >= 0:
			return searched{binary: true}
		case g.bytes.Add(int64(len(piece))) > GrepBytes:
			s.cut = true
		}
		first = false
		if s.cut || !s.add(piece) {
			return searched{matches: s.matches, cut: true}
		}
	}
	s.end()
	return searched{matches: s.matches, cut: s.cut}
}

// spending returns the function that counts the work of one file's search, and stops the search if
// the limit is reached or ctx has ended. It batches small amounts, to be cheap.
func (g *search) spending(ctx context.Context) pattern.Spend {
	pending := 0
	return func(steps int) bool {
		if pending += steps; pending < pattern.Window {
			return true
		}
		total := g.steps.Add(int64(pending))
		pending = 0
		return total <= GrepSteps && ctx.Err() == nil
	}
}
