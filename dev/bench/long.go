package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/threads"
)

// LongOptions says what to measure of one long thread.
type LongOptions struct {
	Events []int        // at which numbers of events, each a message; default 10,000, 100,000 and 1,000,000
	Times  int          // how often each is done; default 20
	Dir    string       // where the store is made; default the system's temporary folder
	Log    func(string) // told what is being measured; may be nil
}

// LongPoint is what operations on a thread of so many events cost, one at a time, from a client in
// the same process.
type LongPoint struct {
	Events int           `json:"events"`
	Cases  []ThreadsCase `json:"cases"`
}

// LongResult is one run.
type LongResult struct {
	Points []LongPoint `json:"points"`
}

// longBench is a run of Long.
type longBench struct {
	o      LongOptions
	dir    string
	base   *bench
	stop   func()
	c      *client.Client
	thread string
	have   int // events
	cases  []ThreadsCase
}

// Long measures one thread at several lengths.
func Long(ctx context.Context, o LongOptions) (*LongResult, error) {
	if len(o.Events) == 0 {
		o.Events = []int{10_000, 100_000, 1_000_000}
	}
	if o.Times == 0 {
		o.Times = 20
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	dir, err := os.MkdirTemp(o.Dir, "skein-bench-")
	if err != nil {
		return nil, fmt.Errorf("a folder for the store: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &longBench{o: o, dir: dir}
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	defer func() { b.stop() }()
	t, err := b.c.Send(ctx, "", events.CreateThread{})
	if err != nil {
		return nil, err
	}
	b.thread, b.have = t.ThreadID, int(t.Version)
	result := &LongResult{}
	for _, n := range slices.Sorted(slices.Values(o.Events)) {
		if err := b.grow(ctx, n); err != nil {
			return nil, err
		}
		point := LongPoint{Events: b.have}
		b.cases = nil
		if err := b.point(ctx); err != nil {
			return nil, fmt.Errorf("%d events: %w", n, err)
		}
		point.Cases = b.cases
		result.Points = append(result.Points, point)
	}
	return result, nil
}

// start starts a Skein on the store.
func (b *longBench) start(ctx context.Context) (err error) {
	if b.base, b.stop, err = stageIn(ctx, b.dir, Options{}.withDefaults(), nil); err != nil {
		b.stop = func() {}
		return err
	}
	b.c, err = client.New(b.base.nc, client.Options{Tenant: tenant, Timeout: 5 * time.Minute})
	return err
}

// grow adds messages until the thread has so many events, and waits until all of it shows.
func (b *longBench) grow(ctx context.Context, n int) error {
	b.o.Log(fmt.Sprintf("a thread of %d events", n))
	for b.have < n {
		var parts []events.SubCommand
		for range min(n-b.have, 200) {
			part, err := client.Sub("item.create", events.CreateItem{Item: message(b.have + len(parts))})
			if err != nil {
				return err
			}
			parts = append(parts, part)
		}
		reply, err := b.c.Commit(ctx, b.thread, parts)
		if err != nil {
			return err
		}
		b.have = int(reply.Version)
	}
	return b.base.caughtUp(ctx)
}

// point measures the thread as it is.
func (b *longBench) point(ctx context.Context) error {
	size := b.have
	limit, middle := int64(50), int64(size/2)
	list := func(q events.ListItems) func(int) error {
		return func(int) error {
			q.ThreadID, q.Limit = b.thread, &limit
			page, err := client.Read(ctx, b.c, q)
			if err == nil && len(page.Items) != int(limit) {
				err = fmt.Errorf("a page of %d items, want %d", len(page.Items), limit)
			}
			return err
		}
	}
	halfway, err := b.halfway(ctx)
	if err != nil {
		return err
	}
	var forks []string
	fork := func(int) error {
		index := int64(size / 2)
		reply, err := b.c.Send(ctx, b.thread, events.ForkThread{MessageIndex: &index})
		if err == nil {
			forks = append(forks, reply.Result.ChildID)
		}
		return err
	}
	past := list(events.ListItems{Order: "desc", At: &events.At{Version: &middle}})
	for _, m := range []struct {
		name  string
		times int
		do    func(int) error
	}{
		{"append a message", b.o.Times, func(n int) error {
			reply, err := b.c.Send(ctx, b.thread, events.CreateItem{Item: message(n)})
			if err == nil {
				b.have = int(reply.Version)
			}
			return err
		}},
		{"first page of 50", b.o.Times, list(events.ListItems{})},
		{"a page in the middle", b.o.Times, list(events.ListItems{Cursor: halfway})},
		{"last page", b.o.Times, list(events.ListItems{Order: "desc"})},
		{"first page at half its length", 1, past},
		{"next page at half its length", min(b.o.Times, 5), past},
		{"first fork in the middle", 1, fork},
		{"next fork in the middle", min(b.o.Times, 5), fork},
		{"audit of the thread", 1, func(int) error { return b.audit(ctx) }},
	} {
		if err := b.measure(m.name, m.times, m.do); err != nil {
			return err
		}
	}
	return b.restart(ctx)
}

// halfway returns the cursor of a page in the middle of the items.
func (b *longBench) halfway(ctx context.Context) (cursor string, err error) {
	limit := int64(min(1000, max(b.have/4, 1)))
	for seen := 0; seen < b.have/2; seen += int(limit) {
		page, err := client.Read(ctx, b.c, events.ListItems{ThreadID: b.thread, Limit: &limit, Cursor: cursor})
		if err != nil {
			return "", err
		}
		cursor = page.NextCursor
	}
	return cursor, nil
}

// audit verifies the thread, with what is derived from it.
func (b *longBench) audit(ctx context.Context) error {
	validator, err := schema.New()
	if err != nil {
		return err
	}
	var found error
	sum, err := audit.Verify(ctx, b.base.log, validator, audit.Options{Tenant: tenant, Threads: []string{b.thread}, Finding: func(f audit.Finding) {
		found = errors.Join(found, errors.New(f.String()))
	}})
	if err == nil && int(sum.Events) < b.have {
		err = fmt.Errorf("%d events were verified, want %d", sum.Events, b.have)
	}
	return errors.Join(err, found)
}

// restart measures the first command after a restart, which loads the thread from its snapshot and
// the log after it.
func (b *longBench) restart(ctx context.Context) error {
	if err := b.base.caughtUp(ctx); err != nil {
		return err
	}
	b.stop()
	if err := b.start(ctx); err != nil {
		return err
	}
	if _, err := threads.New(b.c).History(ctx, threads.HistoryOptions{Limit: 1}); err != nil { // it serves
		return err
	}
	return b.measure("first command after a restart", 1, func(n int) error {
		reply, err := b.c.Send(ctx, b.thread, events.CreateItem{Item: message(n)})
		if err == nil {
			b.have = int(reply.Version)
		}
		return err
	})
}

// measure measures a case and tells what it took. One that is refused, or has no answer in time, is
// no failure of the run.
func (b *longBench) measure(name string, times int, do func(int) error) error {
	t := &threadsBench{o: ThreadsOptions{Log: func(string) {}}}
	begun := time.Now()
	err := t.measure(name, times, do, nil)
	if refused := (*events.Error)(nil); errors.As(err, &refused) && (refused.Code == events.Unavailable || refused.Code == events.PayloadTooLarge) {
		t.result.Cases = []ThreadsCase{{Name: name, Failed: failure(refused, time.Since(begun))}}
		err = nil
	}
	for _, c := range t.result.Cases {
		b.o.Log(c.line())
	}
	b.cases = append(b.cases, t.result.Cases...)
	return err
}

// failure returns why an operation was not done. A client asks again until its time is over, so a
// refusal that may be temporary is the last of several.
func failure(refused *events.Error, after time.Duration) string {
	if refused.Retry() {
		return fmt.Sprintf("not done in %.0f s, the last answer: %s: %s", after.Seconds(), refused.Code, refused.Message)
	}
	return fmt.Sprintf("refused after %.0f s: %s: %s", after.Seconds(), refused.Code, refused.Message)
}

// line returns the case as a line.
func (c ThreadsCase) line() string {
	if c.Failed != "" {
		return c.Name + ": " + c.Failed
	}
	return fmt.Sprintf("%s: p50 %.2f ms, at most %.2f ms, %.2f ms of processor time", c.Name, c.P50Ms, c.MaxMs, c.ProcessorMs)
}

// Write prints the run as a table: an operation a line, a length a column.
func (r *LongResult) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "p50 (max; processor) ms, at events\t")
	for _, p := range r.Points {
		fmt.Fprintf(t, "%d\t", p.Events)
	}
	fmt.Fprintln(t)
	for i := range r.Points[0].Cases {
		fmt.Fprintf(t, "%s\t", r.Points[0].Cases[i].Name)
		for _, p := range r.Points {
			if p.Cases[i].Failed != "" {
				fmt.Fprint(t, "failed\t")
				continue
			}
			fmt.Fprintf(t, "%.2f (%.2f; %.2f)\t", p.Cases[i].P50Ms, p.Cases[i].MaxMs, p.Cases[i].ProcessorMs)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range r.Points {
		for _, c := range p.Cases {
			if c.Failed != "" {
				fmt.Fprintf(w, "%d events: %s\n", p.Events, c.line())
			}
		}
	}
	return nil
}
