package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
)

// ReactOptions says what to measure of runs.
type ReactOptions struct {
	Seconds  float64      // a case; default 4
	At       []int        // turns at a time; default 1, 16, 64
	Dir      string       // where the store is made; default the system's temporary folder
	LoadArgs []string     // makes this program run RunLoad
	Log      func(string) // told what is being measured; may be nil
	Profile  string       // file for a profile of the last case; default none
}

// ReactCase is what was measured of turns of three steps and two calls, each on
// a thread of its own, so many at a time. The reactor and the tool take no time:
// all that a turn takes is Skein's own, from the request to the finish chunk.
type ReactCase struct {
	Name            string  `json:"name"`
	Concurrency     int     `json:"concurrency"`
	TurnsPerSecond  float64 `json:"turnsPerSecond"`
	EventsPerSecond float64 `json:"eventsPerSecond"`
	OverheadP50Ms   float64 `json:"overheadP50Ms"`
	OverheadP99Ms   float64 `json:"overheadP99Ms"`
	ChunkP50Ms      float64 `json:"chunkP50Ms"` // from when it was emitted to another process that subscribes
	ChunkP99Ms      float64 `json:"chunkP99Ms"`
	Turns           int     `json:"turns"`
	Chunks          int     `json:"chunks"`
	EventsPerTurn   float64 `json:"eventsPerTurn"`
	Micros          float64 `json:"processorMicros"` // of the server's process, a turn
	Failed          int     `json:"failed,omitzero"`
	CatchUpSeconds  float64 `json:"catchUpSeconds"`
	Work            Work    `json:"work"`
}

// ReactResult is one run.
type ReactResult struct {
	Cases  []ReactCase `json:"cases"`
	Ratios []Ratio     `json:"ratios"`
}

const benchAgent = "bench"

// script is the turn that is measured: three steps, the first two with a call.
func script(r *runtime.Registry) error {
	call := func(n int) runtime.ToolCall {
		return runtime.ToolCall{CallID: fmt.Sprintf("call_%d", n), Name: "lookup", Arguments: events.JSON(`{"order":42,"of":"ada"}`)}
	}
	err := r.AddReactor(benchAgent, transcript.Fixed(
		transcript.Text("I will look the order up in the shop first, one moment please.", call(1)),
		transcript.Text("The order is there. Now I look for where the parcel is.", call(2)),
		transcript.Text("Your order 42 was shipped this morning and should be with you tomorrow by noon."),
	))
	if err != nil {
		return err
	}
	type order struct {
		Order int64  `json:"order"`
		Of    string `json:"of"`
	}
	tool, err := runtime.DefineTool(runtime.ToolSpec{Name: "lookup", Description: "Looks an order up.", ReadOnly: true},
		func(context.Context, *runtime.ToolInput, order) (map[string]string, error) {
			return map[string]string{"status": "shipped", "parcel": "JD014600003828", "carrier": "post"}, nil
		})
	if err != nil {
		return err
	}
	return r.AddTool(tool)
}

// React measures turns of an agent that takes no time itself.
func React(ctx context.Context, o ReactOptions) (*ReactResult, error) {
	if o.Seconds == 0 {
		o.Seconds = 4
	}
	if len(o.At) == 0 {
		o.At = []int{1, 16, 64}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	b, strike, err := stage(ctx, Options{Seconds: o.Seconds, Dir: o.Dir, LoadArgs: o.LoadArgs, Profile: o.Profile}.withDefaults(), script)
	if err != nil {
		return nil, err
	}
	defer strike()
	result := &ReactResult{}
	for i, at := range o.At {
		o.Log(fmt.Sprintf("turns of 3 steps and 2 calls, %d at a time", at))
		c, err := b.turns(ctx, at, i == len(o.At)-1)
		if err != nil {
			return nil, fmt.Errorf("turns, %d at a time: %w", at, err)
		}
		result.Cases = append(result.Cases, *c)
	}
	result.compare()
	return result, nil
}

// turns measures one case.
func (b *bench) turns(ctx context.Context, at int, last bool) (*ReactCase, error) {
	threads, err := b.create(ctx, max(500, int(b.o.Seconds*1000))*at/(at+8)+100)
	if err != nil {
		return nil, err
	}
	if err := b.caughtUp(ctx); err != nil {
		return nil, err
	}
	settle()
	stop, err := b.profile(last)
	if err != nil {
		return nil, err
	}
	first, err := b.log.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	was, err := b.work(ctx)
	if err != nil {
		return nil, err
	}
	begun := processor()
	got, err := Load{URL: b.url, Clients: at, Threads: threads, Millis: b.duration().Milliseconds(), React: true}.start(ctx, b.o.LoadArgs)
	if err != nil {
		_ = stop() // the first error says more
		return nil, err
	}
	spent := processor() - begun
	if err := stop(); err != nil {
		return nil, err
	}
	var behind Case
	if err := b.behind(ctx, &behind); err != nil {
		return nil, err
	}
	is, err := b.work(ctx)
	if err != nil {
		return nil, err
	}
	n, err := b.eventsAfter(ctx, first)
	if err != nil {
		return nil, err
	}
	took, chunks := got.durations(), make([]time.Duration, len(got.ChunkNanos))
	for i, d := range got.ChunkNanos {
		chunks[i] = time.Duration(d)
	}
	slices.Sort(took)
	slices.Sort(chunks)
	if len(took) == 0 || len(chunks) == 0 {
		return nil, fmt.Errorf("no turn ended: %s", got.Error)
	}
	c := &ReactCase{
		Name: "react", Concurrency: at, Turns: len(took), Chunks: len(chunks), Failed: got.Refused,
		TurnsPerSecond: float64(len(took)) / time.Duration(got.Elapsed).Seconds(),
		OverheadP50Ms:  ms(took[len(took)/2]), OverheadP99Ms: ms(took[len(took)*99/100]),
		ChunkP50Ms: ms(chunks[len(chunks)/2]), ChunkP99Ms: ms(chunks[len(chunks)*99/100]),
		EventsPerTurn: float64(n) / float64(len(took)), Micros: float64(spent.Microseconds()) / float64(len(took)),
		CatchUpSeconds: behind.CatchUpSeconds,
	}
	c.EventsPerSecond = c.TurnsPerSecond * c.EventsPerTurn
	c.Work = is.since(was, len(took))
	return c, nil
}

// eventsAfter counts the events of the log after a sequence.
func (b *bench) eventsAfter(ctx context.Context, seq uint64) (n int, err error) {
	for m, err := range b.log.Raw(ctx, events.DefaultNames().Log("*", "*"), seq+1) {
		if err != nil {
			return n, err
		}
		c, err := b.log.Decode(m)
		if err != nil {
			return n, err
		}
		n += len(c.Events)
	}
	return n, nil
}

// compare works out the goals that the cases allow.
func (r *ReactResult) compare() {
	for _, c := range r.Cases {
		switch c.Concurrency {
		case 1:
			r.Ratios = append(r.Ratios, Ratio{Name: "ms of overhead of a lone turn (p50)", Value: c.OverheadP50Ms, Goal: "at most 8", Met: c.OverheadP50Ms <= 8})
		case 64:
			r.Ratios = append(r.Ratios, Ratio{Name: "turns/s, 64 at a time", Value: c.TurnsPerSecond, Goal: "at least 600", Met: c.TurnsPerSecond >= 600})
		}
	}
}

// Write prints the run as tables.
func (r *ReactResult) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "case\tat a time\tturns/s\tevents/s\tevents/turn\toverhead p50 ms\tp99 ms\tchunk p50 ms\tp99 ms\tcpu us/turn\tcaught up s\t\n")
	for _, c := range r.Cases {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.2f\t\n", c.Name, c.Concurrency, c.TurnsPerSecond, c.EventsPerSecond,
			c.EventsPerTurn, c.OverheadP50Ms, c.OverheadP99Ms, c.ChunkP50Ms, c.ChunkP99Ms, c.Micros, c.CatchUpSeconds)
	}
	fmt.Fprintf(t, "\na turn, of\tat a time\tcommits\ttimeline\tchunks\tdocuments\tqueue\tallocations\tallocated KB\t\n")
	for _, c := range r.Cases {
		w := c.Work
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t\n", c.Name, c.Concurrency, w.Commits, w.Timeline, w.Chunks, w.Documents, w.Queue, w.Allocations, w.Kilobytes)
	}
	fmt.Fprintln(t)
	for _, x := range r.Ratios {
		verdict := "missed"
		if x.Met {
			verdict = "met"
		}
		fmt.Fprintf(t, "%s\t%.2f\t%s\t%s\t\n", x.Name, x.Value, x.Goal, verdict)
	}
	return t.Flush()
}
