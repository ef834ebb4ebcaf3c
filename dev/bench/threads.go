package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/threads"
)

// ThreadsOptions says what to measure of threads as documents.
type ThreadsOptions struct {
	Messages int          // of the thread that is read and forked; default 1,000
	Threads  int          // among which summaries are listed; default 1,000
	Times    int          // how often each is done; default 50
	Dir      string       // where the store is made; default the system's temporary folder
	Log      func(string) // told what is being measured; may be nil
}

// ThreadsCase is how long one operation took, one at a time, from a client in the same process.
type ThreadsCase struct {
	Name  string  `json:"name"`
	Times int     `json:"times"`
	P50Ms float64 `json:"p50Ms"`
	P99Ms float64 `json:"p99Ms"`
	MaxMs float64 `json:"maxMs"`

	// ProcessorMs is the processor time of one, of server, Skein and client together; 0 if unknown.
	ProcessorMs float64 `json:"processorMs"`

	// Failed says why a case of one long thread was not measured: what was refused, or that there
	// was no answer in time.
	Failed string `json:"failed,omitzero"`
}

// ThreadsResult is one run.
type ThreadsResult struct {
	Cases []ThreadsCase `json:"cases"`
}

// threadsBench is a run of Threads.
type threadsBench struct {
	o      ThreadsOptions
	c      *client.Client
	s      *threads.Service
	thread string // that has messages
	result ThreadsResult
}

// Threads measures what package threads and the state of threads do.
func Threads(ctx context.Context, o ThreadsOptions) (*ThreadsResult, error) {
	if o.Messages == 0 {
		o.Messages = 1000
	}
	if o.Threads == 0 {
		o.Threads = 1000
	}
	if o.Times == 0 {
		o.Times = 50
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	base, strike, err := stage(ctx, Options{Dir: o.Dir}.withDefaults(), nil)
	if err != nil {
		return nil, err
	}
	defer strike()
	c, err := client.New(base.nc, client.Options{Tenant: "bench", Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	b := &threadsBench{o: o, c: c, s: threads.New(c)}
	o.Log(fmt.Sprintf("a thread of %d messages, and %d others", o.Messages, o.Threads))
	if err := b.create(ctx); err != nil {
		return nil, err
	}
	index := int64(o.Messages - 1)
	value := events.JSON(`{"items":2,"note":"` + strings.Repeat("x", 200) + `"}`)
	var forked string
	fork := func(int) error {
		reply, err := b.c.Send(ctx, b.thread, events.ForkThread{MessageIndex: &index})
		forked = reply.Result.ChildID
		return err
	}
	shown := func() error { // so that the next fork does not pay for the documents of this one
		_, err := b.s.Get(ctx, forked)
		return err
	}
	for _, m := range []struct {
		name  string
		times int
		do    func(n int) error
		after func() error
	}{
		{fmt.Sprintf("document of %d messages", o.Messages), o.Times, func(int) error {
			_, err := b.s.Get(ctx, b.thread)
			return err
		}, nil},
		{fmt.Sprintf("first fork of %d messages", o.Messages), 1, fork, shown},
		{fmt.Sprintf("fork of %d messages", o.Messages), o.Times, fork, shown},
		{fmt.Sprintf("history, 50 of %d threads", o.Threads), o.Times, func(int) error {
			_, err := b.s.History(ctx, threads.HistoryOptions{Limit: 50})
			return err
		}, nil},
		{"state.merge of one key", o.Times, func(n int) error {
			_, err := b.c.Send(ctx, b.thread, events.MergeState{Operations: []events.StateOperation{{Op: events.SetOp, Key: fmt.Sprint("key", n%10), Value: value}}})
			return err
		}, nil},
	} {
		if err := b.measure(m.name, m.times, m.do, m.after); err != nil {
			return nil, err
		}
	}
	if err := b.observe(ctx); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	return &b.result, nil
}

// create creates the threads.
func (b *threadsBench) create(ctx context.Context) error {
	for i := range b.o.Threads {
		if _, err := b.c.Send(ctx, "", events.CreateThread{Title: fmt.Sprint("thread ", i)}); err != nil {
			return err
		}
	}
	t, err := b.s.Create(ctx, "")
	if err != nil {
		return err
	}
	b.thread = t.ID
	for left := b.o.Messages; left > 0; {
		var parts []events.SubCommand
		for ; left > 0 && len(parts) < 50; left-- {
			part, err := client.Sub("item.create", events.CreateItem{Item: message(left)})
			if err != nil {
				return err
			}
			parts = append(parts, part)
		}
		if _, err := b.c.Commit(ctx, b.thread, parts); err != nil {
			return err
		}
	}
	_, err = b.s.Get(ctx, b.thread)
	return err
}

// message returns a message of some 200 bytes.
func message(n int) events.NewItem {
	role := events.User
	if n%2 == 0 {
		role = events.Assistant
	}
	return events.NewItem{Type: events.Message, Role: role, Content: events.JSON(fmt.Sprintf(`[{"type":"%s","text":"message %d %s"}]`, map[events.Role]string{events.User: events.InputText, events.Assistant: events.OutputText}[role], n, strings.Repeat("word ", 30)))}
}

// measure does something so many times. What is done after each, if anything, is not measured.
func (b *threadsBench) measure(name string, times int, do func(n int) error, after func() error) error {
	b.o.Log(name)
	settle()
	took, used := make([]time.Duration, 0, times), processor()
	for n := range times {
		begun := time.Now()
		if err := do(n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took = append(took, time.Since(begun))
		if after == nil {
			continue
		}
		if err := after(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	used = (processor() - used) / time.Duration(times)
	slices.Sort(took)
	b.result.Cases = append(b.result.Cases, ThreadsCase{
		Name: name, Times: len(took), P50Ms: ms(took[len(took)/2]), P99Ms: ms(took[len(took)*99/100]), MaxMs: ms(took[len(took)-1]),
		ProcessorMs: ms(used),
	})
	return nil
}

// observe measures how long it takes from a write of a message until an observer has the thread
// with it.
func (b *threadsBench) observe(ctx context.Context) error {
	t, err := b.s.Create(ctx, "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, failed := make(chan int), make(chan error, 1)
	go func() {
		for change, err := range b.s.ObserveRaw(ctx, t.ID) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case seen <- len(change.Thread.Messages):
			case <-ctx.Done():
				return
			}
		}
		failed <- errors.New("the observation ended")
	}()
	until := func(n int) error {
		for {
			select {
			case have := <-seen:
				if have >= n {
					return nil
				}
			case err := <-failed:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if err := until(0); err != nil {
		return err
	}
	return b.measure("from a write to an observer", b.o.Times, func(n int) error {
		if _, err := b.c.Send(ctx, t.ID, events.CreateItem{Item: message(n)}); err != nil {
			return err
		}
		return until(n + 1)
	}, nil)
}

// Write prints the run as a table.
func (r *ThreadsResult) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "what\ttimes\tp50 ms\tp99 ms\tmax ms\t\n")
	for _, c := range r.Cases {
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%.2f\t\n", c.Name, c.Times, c.P50Ms, c.P99Ms, c.MaxMs)
	}
	return t.Flush()
}
