package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// runs measures what the workers of this process do.
type runs struct {
	ended       *prometheus.CounterVec
	endTime     *prometheus.HistogramVec
	reactorTime *prometheus.HistogramVec
	embedTime   *prometheus.HistogramVec
	toolTime    *prometheus.HistogramVec
	toolRetries prometheus.Counter
	effects     *prometheus.CounterVec
	effectLate  prometheus.Histogram
}

func newRuns(c *catalog) runs {
	slow := prometheus.ExponentialBuckets(0.001, 2, 20) // 1 ms to 9 min
	return runs{
		ended:       c.counter("runs_total", "Executions that this process let go: completed, failed, waits, lost or again.", "result"),
		endTime:     c.histogram("run_seconds", "From a run's request to its end.", slow, "result"),
		reactorTime: c.histogram("reactor_seconds", "From a reactor's call to its answer.", slow, "result"),
		embedTime:   c.histogram("embedding_seconds", "From a request for embeddings to the answer of the model's endpoint, with all attempts.", slow, "result"),
		toolTime:    c.histogram("tool_seconds", "From a tool's call to its result, with all attempts.", slow, "result"),
		toolRetries: c.counter("tool_retries_total", "Attempts at calls of tools after the first.").With(nil),
		effects:     c.counter("effects_total", "Attempts at effects that ended.", "result"),
		effectLate:  single(c.histogram("effect_late_seconds", "From when an effect was due to its start.", slow)),
	}
}

// Runs is the same metrics as the workers know them.
type Runs struct{ m *Metrics }

// Runs returns the metrics for the workers.
func (m *Metrics) Runs() Runs { return Runs{m} }

// Run implements runtime.Metrics.
func (r Runs) Run(result string, asked time.Duration) {
	r.m.runs.ended.WithLabelValues(result).Inc()
	if result == "completed" || result == "failed" {
		r.m.runs.endTime.WithLabelValues(result).Observe(max(asked, 0).Seconds())
	}
}

// Reactor implements runtime.Metrics.
func (r Runs) Reactor(failed bool, took time.Duration) {
	r.m.runs.reactorTime.WithLabelValues(outcome(failed)).Observe(took.Seconds())
}

// Embedding is called after a request for embeddings, with its duration.
func (r Runs) Embedding(failed bool, took time.Duration) {
	r.m.runs.embedTime.WithLabelValues(outcome(failed)).Observe(took.Seconds())
}

// Tool implements runtime.Metrics.
func (r Runs) Tool(failed bool, took time.Duration, attempts int) {
	r.m.runs.toolTime.WithLabelValues(outcome(failed)).Observe(took.Seconds())
	r.m.runs.toolRetries.Add(float64(max(attempts-1, 0)))
}

// Effect implements runtime.Metrics.
func (r Runs) Effect(failed bool, late time.Duration) {
	r.m.runs.effects.WithLabelValues(outcome(failed)).Inc()
	r.m.runs.effectLate.Observe(max(late, 0).Seconds())
}

func outcome(failed bool) string {
	if failed {
		return "failed"
	}
	return "ok"
}

// Work is what the workers have to do at the moment of a scrape.
type Work struct {
	Places        int            // executions that this process may work at
	Queued, Taken uint64         // executions that wait for a worker, and that one has, of all processes
	Waiting       map[string]int // executions of all processes that wait for something, by what it is
	Due           uint64         // effects that are due and have not ended, of all processes
}

// WatchWork has each scrape ask what the workers have to do. It is called once.
func (m *Metrics) WatchWork(ask func() (Work, error)) {
	m.catalog.registry.MustRegister(&workCollector{
		ask:    ask,
		places: m.catalog.scraped("runs_places", "Executions that this process may work at."),
		queued: m.catalog.scraped("runs_queued", "Executions that wait for a worker, of all processes."),
		taken:  m.catalog.scraped("runs_taken", "Executions that a worker has, of all processes."),
		waits:  m.catalog.scraped("runs_waiting", "Executions of all processes that wait for an approval, a worker, a thread or several.", "reason"),
		due:    m.catalog.scraped("effects_due", "Effects of all processes that are due and not ended."),
	})
}

// workCollector implements prometheus.Collector.
type workCollector struct {
	ask                               func() (Work, error)
	places, queued, taken, waits, due *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *workCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.places, c.queued, c.taken, c.waits, c.due} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *workCollector) Collect(out chan<- prometheus.Metric) {
	w, err := c.ask()
	gauge := func(d *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	gauge(c.places, float64(w.Places))
	if err != nil { // better no value than an old one
		return
	}
	gauge(c.queued, float64(w.Queued))
	gauge(c.taken, float64(w.Taken))
	gauge(c.due, float64(w.Due))
	for reason, n := range w.Waiting {
		out <- prometheus.MustNewConstMetric(c.waits, prometheus.GaugeValue, float64(n), reason)
	}
}
