package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// web measures what is asked over HTTP.
type web struct {
	answers *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	streams prometheus.Gauge
}

func newWeb(c *catalog) web {
	return web{
		answers: c.counter("http_requests_total", "Requests over HTTP; the surface is api, v1, chat, threads, console, agui, a2a, mcp, ops or other.", "surface", "status"),
		seconds: c.histogram("http_seconds", "From a request's arrival to the beginning of its answer.", prometheus.ExponentialBuckets(0.0001, 2, 17), "surface"),
		streams: c.gauge("http_streams", "Open streams and sockets over HTTP.").With(nil),
	}
}

// Answered implements edge.Metrics.
func (m *Metrics) Answered(surface string, status int, seconds float64) {
	m.web.answers.WithLabelValues(surface, strconv.Itoa(status)).Inc()
	m.web.seconds.WithLabelValues(surface).Observe(seconds)
}

// OpenStreams implements edge.Metrics.
func (m *Metrics) OpenStreams(n int) { m.web.streams.Set(float64(n)) }
