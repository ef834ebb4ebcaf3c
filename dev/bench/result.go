package bench

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Case is what was measured of one way to write, with a number of clients.
type Case struct {
	Name             string  `json:"name"`
	Clients          int     `json:"clients"`
	CommitsPerSecond float64 `json:"commitsPerSecond"`
	EventsPerSecond  float64 `json:"eventsPerSecond"`
	P50Ms            float64 `json:"p50Ms"`
	P99Ms            float64 `json:"p99Ms"`
	Commits          int     `json:"commits"`
	Refused          int     `json:"refused,omitzero"`

	// Of the case "skein": how far timeline and read models were behind at the
	// last acknowledgement, in commits, and how long they took to catch up.
	TimelineLag       uint64  `json:"timelineLag,omitzero"`
	ProjectionLag     uint64  `json:"projectionLag,omitzero"`
	CatchUpSeconds    float64 `json:"catchUpSeconds,omitzero"`
	LogBytesEvent     float64 `json:"logBytesPerEvent,omitzero"`
	DerivedBytesEvent float64 `json:"derivedBytesPerEvent,omitzero"`

	// Processor time of server and Skein together, the clients' not counted, for
	// each commit: until the last acknowledgement, and until all had caught up. 0
	// where the system does not tell. Other work on the machine does not blur it
	// as it does the rates.
	AckedMicros float64 `json:"processorMicrosAcked,omitzero"`
	TotalMicros float64 `json:"processorMicros,omitzero"`
	// Of the clients, for each commit.
	ClientMicros float64 `json:"clientMicros,omitzero"`

	Intervals []Interval `json:"intervals,omitempty"`
}

// spent notes the processor time that the case took.
func (c *Case) spent(acked, total time.Duration) {
	each := float64(max(c.Commits, 1)) * float64(time.Microsecond)
	c.AckedMicros, c.TotalMicros = float64(acked)/each, float64(total)/each
}

// Ratio compares two figures of the same run.
type Ratio struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Goal  string  `json:"goal,omitzero"` // empty: none
	Met   bool    `json:"met,omitzero"`
}

// Result is one run.
type Result struct {
	Cases      []Case  `json:"cases"`
	PlainP50Ms float64 `json:"plainP50Ms"` // one plain publish of a commit's bytes, fsynced, from another process
	EventBytes float64 `json:"eventBytes"` // of an event, on average
	Ratios     []Ratio `json:"ratios"`

	Versions []string `json:"versions,omitempty"` // of the peers
	Skipped  []string `json:"skipped,omitempty"`  // peers that are not installed here
}

// measured makes a case of the latencies of its commits.
func measured(name string, clients int, took []time.Duration, elapsed time.Duration) Case {
	c := Case{Name: name, Clients: clients, Commits: len(took)}
	if len(took) == 0 {
		return c
	}
	slices.Sort(took)
	c.CommitsPerSecond = float64(len(took)) / elapsed.Seconds()
	c.EventsPerSecond = c.CommitsPerSecond * eventsPerCommit
	c.P50Ms = ms(took[len(took)/2])
	c.P99Ms = ms(took[len(took)*99/100])
	return c
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (r *Result) find(name string, clients int) *Case {
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Name == name && (clients == 0 || c.Clients == clients) {
			return c
		}
	}
	return nil
}

// compare works out the ratios that the cases allow.
func (r *Result) compare() {
	add := func(name string, value, goal float64, most bool) {
		text, met := fmt.Sprintf("at least %g", goal), value >= goal
		if most {
			text, met = fmt.Sprintf("at most %g", goal), value <= goal
		}
		r.Ratios = append(r.Ratios, Ratio{Name: name, Value: value, Goal: text, Met: met})
	}
	single, ceiling := r.find("one-by-one", 0), r.find("ceiling", 0)
	for _, c := range r.Cases {
		if c.Name != "skein" {
			continue
		}
		switch {
		case c.Clients == 256 && single != nil && ceiling != nil:
			add("skein, 256 clients, to one-by-one (events/s)", c.EventsPerSecond/single.EventsPerSecond, 8, false)
			add("skein, 256 clients, to the ceiling (events/s)", c.EventsPerSecond/ceiling.EventsPerSecond, 0.35, false)
		case c.Clients == 64 && single != nil:
			add("skein, 64 clients, to one-by-one (events/s)", c.EventsPerSecond/single.EventsPerSecond, 5, false)
		case c.Clients == 1 && r.PlainP50Ms > 0:
			add("skein, 1 client, to a plain publish (p50)", c.P50Ms/r.PlainP50Ms, 3, true)
		}
		for _, other := range r.Cases {
			if other.Clients == c.Clients && other.CommitsPerSecond > 0 && strings.Contains(other.Name, ": ") {
				r.Ratios = append(r.Ratios, Ratio{Name: fmt.Sprintf("skein, %d clients, to %s (commits/s)", c.Clients, other.Name), Value: c.CommitsPerSecond / other.CommitsPerSecond})
			}
		}
		add(fmt.Sprintf("seconds to catch up after %d clients", c.Clients), c.CatchUpSeconds, 3, true)
	}
}

// Write prints the run as tables.
func (r *Result) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "case\tclients\tcommits/s\tevents/s\tp50 ms\tp99 ms\ttimeline lag\tread model lag\tcaught up s\tcpu us/commit\tof clients\tlog B/event\tderived B/event\t\n")
	for _, c := range r.Cases {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.2f\t", c.Name, c.Clients, c.CommitsPerSecond, c.EventsPerSecond, c.P50Ms, c.P99Ms)
		switch {
		case c.Name == "skein":
			fmt.Fprintf(t, "%d\t%d\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", c.TimelineLag, c.ProjectionLag, c.CatchUpSeconds, c.TotalMicros, c.ClientMicros, c.LogBytesEvent, c.DerivedBytesEvent)
		case c.TotalMicros > 0:
			fmt.Fprintf(t, "\t\t\t%.0f\t%.0f\t\t\t\n", c.TotalMicros, c.ClientMicros)
		default:
			fmt.Fprintf(t, "\t\t\t\t\t\t\t\n")
		}
	}
	if err := errors.Join(t.Flush(), r.writeIntervals(w)); err != nil {
		return err
	}
	for _, why := range r.Skipped {
		fmt.Fprintf(t, "\nskipped: %s\n", why)
	}
	if len(r.Versions) > 0 {
		fmt.Fprintf(t, "\nmeasured with %s\n", strings.Join(r.Versions, " and "))
	}
	if r.PlainP50Ms > 0 {
		fmt.Fprintf(t, "\nan event has %.0f bytes on average; one plain publish of a commit takes %.2f ms (p50)\n", r.EventBytes, r.PlainP50Ms)
	}
	fmt.Fprintln(t)
	for _, x := range r.Ratios {
		verdict := "missed"
		if x.Goal == "" {
			verdict = ""
		} else if x.Met {
			verdict = "met"
		}
		fmt.Fprintf(t, "%s\t%.2f\t%s\t%s\t\n", x.Name, x.Value, x.Goal, verdict)
	}
	return t.Flush()
}

// writeIntervals prints the intervals of each case that has them.
func (r *Result) writeIntervals(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range r.Cases {
		if len(c.Intervals) == 0 {
			continue
		}
		fmt.Fprintf(t, "\n%s, %d clients\n\nat s\tcommits/s\tto the first\tcpu us/commit\tto the first\tgc us/commit\tlive heap MB\tread model lag\t\n", c.Name, c.Clients)
		first := c.Intervals[0]
		for _, i := range c.Intervals {
			fmt.Fprintf(t, "%.0f\t%.0f\t%.2f\t%.0f\t%.2f\t%.0f\t%.0f\t%d\t\n", i.Seconds, i.CommitsPerSecond, i.CommitsPerSecond/max(first.CommitsPerSecond, 1),
				i.Micros, i.Micros/max(first.Micros, 1), i.GCMicros, i.HeapMB, i.ReadModelLag)
		}
	}
	return t.Flush()
}
