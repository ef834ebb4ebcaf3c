package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/skein-threads/skein/dev/bench/traffic"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// quickAgent answers at once, in one step.
const quickAgent = "quick"

// HTTPOptions says what to measure of HTTP.
type HTTPOptions struct {
	Seconds  float64      // a case; default 4
	Cases    []string     // of traffic.Cases; default all
	Clients  []int        // of commands and queries; default 1, 64
	Readers  []int        // of one thread's events; default 1, 100, 1,000
	Events   int          // for each number of readers; default 100
	Dir      string       // where the store is made; default the system's temporary folder
	LoadArgs []string     // makes this program run RunLoad
	Log      func(string) // told what is being measured; may be nil
	Profile  string       // file for a profile of the last case over HTTP; default none
}

// HTTPCase is what clients in another process saw of one operation.
type HTTPCase struct {
	Name       string  `json:"name"`    // http- or nats-, and the case
	Clients    int     `json:"clients"` // or readers
	PerSecond  float64 `json:"perSecond"`
	P50Ms      float64 `json:"p50Ms"`
	P99Ms      float64 `json:"p99Ms"`
	MaxMs      float64 `json:"maxMs"`
	FirstP50Ms float64 `json:"firstP50Ms,omitzero"` // until the first byte, or chunk
	FirstP99Ms float64 `json:"firstP99Ms,omitzero"`
	Times      int     `json:"times"`
	Micros     float64 `json:"processorMicros"` // of the server's process, each
	Refused    int     `json:"refused,omitzero"`
}

// HTTPResult is one run.
type HTTPResult struct {
	Cases  []HTTPCase `json:"cases"`
	Ratios []Ratio    `json:"ratios"`
}

// httpBench is a run of HTTP.
type httpBench struct {
	*bench
	o HTTPOptions
}

// HTTP measures operations over HTTP and over NATS, in turns.
func HTTP(ctx context.Context, o HTTPOptions) (*HTTPResult, error) {
	o = o.withDefaults()
	b, strike, err := stageHTTP(ctx, o)
	if err != nil {
		return nil, err
	}
	defer strike()
	result := &HTTPResult{}
	for _, name := range o.Cases {
		numbers := o.Clients
		if name == traffic.FanOut {
			numbers = o.Readers
		}
		for i, n := range numbers {
			last := name == o.Cases[len(o.Cases)-1] && i == len(numbers)-1
			for _, over := range []string{"NATS", "HTTP"} {
				o.Log(fmt.Sprintf("%s over %s, %d at a time", name, over, n))
				c, err := b.measure(ctx, name, over, n, last)
				if err != nil {
					return nil, fmt.Errorf("%s over %s: %w", name, over, err)
				}
				result.Cases = append(result.Cases, *c)
			}
		}
	}
	result.compare()
	return result, nil
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	if o.Seconds == 0 {
		o.Seconds = 4
	}
	if len(o.Cases) == 0 {
		o.Cases = traffic.Cases()
	}
	if len(o.Clients) == 0 {
		o.Clients = []int{1, 64}
	}
	if len(o.Readers) == 0 {
		o.Readers = []int{1, 100, 1000}
	}
	if o.Events == 0 {
		o.Events = 100
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

// stageHTTP starts a Skein whose HTTP has one tenant, without limits of rates.
func stageHTTP(ctx context.Context, o HTTPOptions) (b *httpBench, strike func(), err error) {
	dir, err := os.MkdirTemp(o.Dir, "skein-bench-")
	if err != nil {
		return nil, nil, fmt.Errorf("a folder for the store: %w", err)
	}
	unlimited := map[string]int{"rate": -1}
	inner, stop, err := stageAs(ctx, server.Config{
		Store: dir, Tenant: tenant, HTTPKeyLimits: unlimited, HTTPTenantLimits: unlimited,
		Register: func(r *runtime.Registry) error {
			return r.AddReactor(quickAgent, transcript.Fixed(transcript.Text("Your order 42 was shipped this morning and should be with you tomorrow by noon.")))
		},
	}, Options{Seconds: o.Seconds, LoadArgs: o.LoadArgs, Profile: o.Profile}.withDefaults())
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, nil, err
	}
	return &httpBench{bench: inner, o: o}, func() {
		stop()
		_ = os.RemoveAll(dir)
	}, nil
}

// measure measures one case.
func (b *httpBench) measure(ctx context.Context, name, over string, n int, last bool) (c *HTTPCase, err error) {
	work := &traffic.Work{Case: name, Tenant: tenant, Agent: quickAgent, Clients: n, Millis: b.duration().Milliseconds()}
	if over == "HTTP" {
		work.URL = b.http
	}
	threads := n
	if name == traffic.FanOut {
		work.Readers, work.Events, threads = n, b.o.Events, 1
	}
	if work.Threads, err = b.create(ctx, threads); err != nil {
		return nil, err
	}
	if name == traffic.GetPage {
		if err := traffic.Fill(ctx, b.nc, tenant, work.Threads[0], 4*traffic.PageItems); err != nil {
			return nil, err
		}
	}
	if err := b.caughtUp(ctx); err != nil {
		return nil, err
	}
	settle()
	stop, err := b.profile(last && over == "HTTP")
	if err != nil {
		return nil, err
	}
	begun := processor()
	got, err := Load{URL: b.url, Traffic: work}.start(ctx, b.o.LoadArgs)
	spent := processor() - begun
	if err = errors.Join(err, stop()); err != nil {
		return nil, err
	}
	if len(got.Nanos) == 0 {
		return nil, fmt.Errorf("nothing was done: %s", got.Error)
	}
	return httpCase(name, over, n, got, spent), nil
}

func httpCase(name, over string, n int, got *Loaded, spent time.Duration) *HTTPCase {
	m := measured("", n, got.durations(), time.Duration(got.Elapsed))
	c := &HTTPCase{
		Name: caseOver(name, over), Clients: n, PerSecond: m.CommitsPerSecond, P50Ms: m.P50Ms, P99Ms: m.P99Ms, MaxMs: ms(time.Duration(slices.Max(got.Nanos))),
		Times: len(got.Nanos), Refused: got.Refused, Micros: float64(spent.Microseconds()) / float64(len(got.Nanos)+got.WarmUps),
	}
	if first := slices.Sorted(slices.Values(got.ChunkNanos)); len(first) > 0 {
		c.FirstP50Ms, c.FirstP99Ms = ms(time.Duration(first[len(first)/2])), ms(time.Duration(first[len(first)*99/100]))
	}
	return c
}

// Write prints the run as tables.
func (r *HTTPResult) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "case\tat a time\tper second\tp50 ms\tp99 ms\tmax ms\tfirst p50 ms\tp99 ms\tprocessor us\trefused\t\n")
	for _, c := range r.Cases {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.2f\t%.2f\t%.1f\t%.2f\t%.2f\t%.0f\t%d\t\n", c.Name, c.Clients, c.PerSecond, c.P50Ms, c.P99Ms, c.MaxMs, c.FirstP50Ms, c.FirstP99Ms, c.Micros, c.Refused)
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

// caseOver returns the name of a case over HTTP or NATS.
func caseOver(name, over string) string { return strings.ToLower(over) + "-" + name }

func (r *HTTPResult) find(name, over string, clients int) *HTTPCase {
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Name == caseOver(name, over) && c.Clients == clients {
			return c
		}
	}
	return nil
}

// compare works out the figures that have a goal, of the cases that were measured.
func (r *HTTPResult) compare() {
	add := func(name string, value, goal float64, most bool) {
		text, met := fmt.Sprintf("at least %g", goal), value >= goal
		if most {
			text, met = fmt.Sprintf("at most %g", goal), value <= goal
		}
		r.Ratios = append(r.Ratios, Ratio{Name: name, Value: value, Goal: text, Met: met})
	}
	if over, under := r.find(traffic.PostItem, "HTTP", 1), r.find(traffic.PostItem, "NATS", 1); over != nil && under != nil {
		add("ms that HTTP adds to a command, p50", over.P50Ms-under.P50Ms, 0.3, true)
	}
	if over, under := r.find(traffic.PostItem, "HTTP", 64), r.find(traffic.PostItem, "NATS", 64); over != nil && under != nil {
		add("commands/s of 64 clients, HTTP to NATS", over.PerSecond/max(under.PerSecond, 0.001), 0.7, false)
	}
	if c := r.find(traffic.ResponseSSE, "HTTP", 1); c != nil {
		add("ms to the first event of a response, p50", c.FirstP50Ms, 15, true)
	}
	if c := r.find(traffic.FanOut, "HTTP", 1000); c != nil {
		add("ms to 1,000 readers of a thread, p99", c.P99Ms, 50, true)
	}
}
