package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lagTimeout bounds how long a scrape waits for the positions.
const lagTimeout = 3 * time.Second

// Lag is how far something that is derived from the log is behind it.
type Lag struct {
	Seq     uint64  // of the log's last commit that it shows
	Commits uint64  // of the log that it does not show yet; an upper bound, since sequences may have gaps
	Seconds float64 // since the first of those was stored
}

// Lags is where the log stands, and what is derived from it.
type Lags struct {
	Log         uint64
	Timeline    Lag
	Projections map[string]Lag
}

// WatchLags has each scrape ask how far the timeline and the read models are, so
// that the answer is of that moment in every process, whichever of them does the
// work. It is called once.
func (m *Metrics) WatchLags(ask func(context.Context) (Lags, error)) {
	m.catalog.registry.MustRegister(&lagCollector{
		ask:   ask,
		known: m.catalog.scraped("lag_known", "1 if this scrape knows the lags, else 0."),
		log:   m.catalog.scraped("log_seq", "The log's last sequence."),
		timeline: lagDescs{
			m.catalog.scraped("timeline_seq", "The log's sequence that the timeline shows."),
			m.catalog.scraped("timeline_lag_commits", "Commits not on the timeline yet."),
			m.catalog.scraped("timeline_lag_seconds", "Age of the first commit not on the timeline yet, else 0."),
		},
		projection: lagDescs{
			m.catalog.scraped("projection_seq", "The log's sequence that a projection shows.", "projection"),
			m.catalog.scraped("projection_lag_commits", "Commits not in a projection yet.", "projection"),
			m.catalog.scraped("projection_lag_seconds", "Age of the first commit not in a projection yet, else 0.", "projection"),
		},
	})
}

type lagDescs struct{ seq, commits, seconds *prometheus.Desc }

func (d lagDescs) collect(out chan<- prometheus.Metric, lag Lag, labels ...string) {
	out <- prometheus.MustNewConstMetric(d.seq, prometheus.GaugeValue, float64(lag.Seq), labels...)
	out <- prometheus.MustNewConstMetric(d.commits, prometheus.GaugeValue, float64(lag.Commits), labels...)
	out <- prometheus.MustNewConstMetric(d.seconds, prometheus.GaugeValue, lag.Seconds, labels...)
}

// lagCollector implements prometheus.Collector.
type lagCollector struct {
	ask                  func(context.Context) (Lags, error)
	known, log           *prometheus.Desc
	timeline, projection lagDescs
}

// Describe implements prometheus.Collector.
func (c *lagCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.known
	out <- c.log
	for _, d := range []lagDescs{c.timeline, c.projection} {
		out <- d.seq
		out <- d.commits
		out <- d.seconds
	}
}

// Collect implements prometheus.Collector.
func (c *lagCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), lagTimeout)
	defer cancel()
	lags, err := c.ask(ctx)
	if err != nil { // better no value than an old one
		out <- prometheus.MustNewConstMetric(c.known, prometheus.GaugeValue, 0)
		return
	}
	out <- prometheus.MustNewConstMetric(c.known, prometheus.GaugeValue, 1)
	out <- prometheus.MustNewConstMetric(c.log, prometheus.GaugeValue, float64(lags.Log))
	c.timeline.collect(out, lags.Timeline)
	for name, lag := range lags.Projections {
		c.projection.collect(out, lag, name)
	}
}
