package metrics

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
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
	families map[string]*dto.MetricFamily
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
	families, err := h.metrics.catalog.registry.Gather()
	if err != nil && len(families) == 0 {
		return
	}
	now := reading{at, map[string]*dto.MetricFamily{}}
	for _, f := range families {
		now.families[f.GetName()] = f
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
	for _, m := range f.GetMetric() {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return total
}

func (r reading) largest(name string) float64 {
	out := math.NaN()
	for _, m := range r.families[name].GetMetric() {
		if v := m.GetGauge().GetValue(); math.IsNaN(out) || v > out {
			out = v
		}
	}
	return out
}

// bucket is how many values are not above a limit.
type bucket struct {
	limit float64
	count float64
}

// buckets returns the buckets of a histogram, of all its labels together.
func (r reading) buckets(name string) []bucket {
	var out []bucket
	for _, m := range r.families[name].GetMetric() {
		for i, b := range m.GetHistogram().GetBucket() {
			if i == len(out) {
				out = append(out, bucket{limit: b.GetUpperBound()})
			}
			out[i].count += float64(b.GetCumulativeCount())
		}
	}
	return out
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

// Values returns the values of a family, by its one label; those of no label under an empty name.
func (m *Metrics) Values(name string) map[string]float64 {
	families, err := m.catalog.registry.Gather()
	if err != nil && len(families) == 0 {
		return nil
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, one := range f.GetMetric() {
			label := ""
			if len(one.GetLabel()) > 0 {
				label = one.GetLabel()[0].GetValue()
			}
			out[label] += one.GetCounter().GetValue() + one.GetGauge().GetValue()
		}
	}
	return out
}
