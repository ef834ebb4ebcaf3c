package metrics

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"
)

// A History keeps an hour.
const (
	historyEvery = 15 * time.Second
	historyKeeps = 240
)

// Series is a measurement over time.
type Series struct {
	Name, Unit string
	Points     []float64 // oldest first, 15 s apart; NaN: nothing was measured
}

// History keeps what metrics were in the last hour, in memory: a fixed number of values. It is
// safe for concurrent use.
type History struct {
	metrics *Metrics

	mu     sync.Mutex // guards the fields below
	series []Series
	last   reading
}

// reading is what was gathered at a time.
type reading struct {
	at       time.Time
	families map[string]*family
}

// family is what was measured under one name.
type family struct {
	values  map[string]float64 // counters and gauges by their first label; empty: none
	largest float64            // of them
	buckets []bucket           // of a histogram, of all its labels together
}

// bucket is how many values are not above a limit.
type bucket struct {
	limit float64
	count float64
}

// gather returns the families by their names; none if nothing could be measured.
func (m *Metrics) gather() map[string]*family {
	gathered, err := m.catalog.registry.Gather()
	if err != nil && len(gathered) == 0 {
		return nil
	}
	out := make(map[string]*family, len(gathered))
	for _, g := range gathered {
		f := &family{values: map[string]float64{}, largest: math.Inf(-1)}
		out[g.GetName()] = f
		for _, one := range g.GetMetric() {
			label := ""
			if len(one.GetLabel()) > 0 {
				label = one.GetLabel()[0].GetValue()
			}
			v := one.GetCounter().GetValue() + one.GetGauge().GetValue()
			f.values[label] += v
			f.largest = max(f.largest, v)
			for i, b := range one.GetHistogram().GetBucket() {
				if i == len(f.buckets) {
					f.buckets = append(f.buckets, bucket{limit: b.GetUpperBound()})
				}
				f.buckets[i].count += float64(b.GetCumulativeCount())
			}
		}
	}
	return out
}

// History returns a history of the metrics, which is empty until it runs.
func (m *Metrics) History() *History { return &History{metrics: m} }

// Run measures until ctx ends.
func (h *History) Run(ctx context.Context) {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	h.measure(time.Now())
	for {
		select {
		case <-tick.C:
			h.measure(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// Series returns what was measured.
func (h *History) Series() []Series {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Series, len(h.series))
	for i, s := range h.series {
		out[i] = Series{s.Name, s.Unit, append([]float64(nil), s.Points...)}
	}
	return out
}

// measured are the values between two readings.
func measured(before, now reading) []Series {
	seconds := now.at.Sub(before.at).Seconds()
	rate := func(name string) float64 { return (now.sum(name) - before.sum(name)) / seconds }
	late := func(name string) float64 { return 1000 * quantile(before.buckets(name), now.buckets(name), 0.95) }
	one := func(name, unit string, value float64) Series { return Series{name, unit, []float64{value}} }
	return []Series{
		one("Commands", "/s", rate("skein_commands_total")),
		one("Command, 95th percentile", "ms", late("skein_command_seconds")),
		one("Queries", "/s", rate("skein_queries_total")),
		one("Query, 95th percentile", "ms", late("skein_query_seconds")),
		one("Write to the log, 95th percentile", "ms", late("skein_append_seconds")),
		one("Timeline behind the log", "commits", now.largest("skein_timeline_lag_commits")),
		one("Slowest read model behind the log", "commits", now.largest("skein_projection_lag_commits")),
		one("Places taken", "", now.sum("skein_places_taken")),
		one("Memory", "MB", now.sum("process_resident_memory_bytes")/1e6),
		one("Goroutines", "", now.sum("go_goroutines")),
	}
}

func (h *History) measure(at time.Time) {
	now := reading{at, h.metrics.gather()}
	if now.families == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.last
	h.last = now
	if before.families == nil || !at.After(before.at) {
		return
	}
	for i, s := range measured(before, now) {
		if i == len(h.series) {
			h.series = append(h.series, Series{Name: s.Name, Unit: s.Unit})
		}
		points := append(h.series[i].Points, s.Points...)
		h.series[i].Points = points[max(0, len(points)-historyKeeps):]
	}
}

// sum returns the sum of a family, whatever its labels; NaN if it was not measured.
func (r reading) sum(name string) float64 {
	f := r.families[name]
	if f == nil {
		if strings.HasSuffix(name, "_total") { // nothing was counted yet
			return 0
		}
		return math.NaN()
	}
	total := 0.0
	for _, v := range f.values {
		total += v
	}
	return total
}

// largest returns the largest value of a family; NaN if it was not measured.
func (r reading) largest(name string) float64 {
	if f := r.families[name]; f != nil && len(f.values) > 0 {
		return f.largest
	}
	return math.NaN()
}

// buckets returns the buckets of a histogram; none if it was not measured.
func (r reading) buckets(name string) []bucket {
	if f := r.families[name]; f != nil {
		return f.buckets
	}
	return nil
}

// quantile returns the limit of the bucket in which a share of the values between two readings
// ends; NaN if there was none.
func quantile(before, now []bucket, share float64) float64 {
	if len(now) == 0 {
		return math.NaN()
	}
	count := func(i int) float64 {
		if i < len(before) {
			return now[i].count - before[i].count
		}
		return now[i].count
	}
	total := count(len(now) - 1)
	if total <= 0 {
		return math.NaN()
	}
	for i := range now {
		if count(i) >= share*total {
			return now[i].limit
		}
	}
	return now[len(now)-1].limit
}

// Values returns the values of families at one time, of each by its one label; those of no label under
// an empty name.
func (m *Metrics) Values(names ...string) []map[string]float64 {
	families := m.gather()
	values := make([]map[string]float64, len(names))
	for i, name := range names {
		if f := families[name]; f != nil {
			values[i] = f.values
		}
	}
	return values
}
