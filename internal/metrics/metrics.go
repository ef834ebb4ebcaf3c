package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics counts and measures. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	commands     *prometheus.CounterVec
	commandTime  *prometheus.HistogramVec
	limited      *prometheus.CounterVec
	merged       prometheus.Histogram
	cacheThreads prometheus.Gauge
	cacheBytes   prometheus.Gauge

	appends      *prometheus.HistogramVec
	groupCommits prometheus.Histogram
	groupBytes   prometheus.Histogram
	broken       *prometheus.CounterVec
	damaged      prometheus.Gauge
	relayed      prometheus.Counter
	healed       prometheus.Counter
	leases       *prometheus.GaugeVec

	spans *prometheus.CounterVec

	placesTaken   *prometheus.GaugeVec
	placesWaiting *prometheus.GaugeVec
	placesRefused *prometheus.CounterVec
	suspensions   prometheus.Counter

	queries       *prometheus.CounterVec
	queryTime     *prometheus.HistogramVec
	projectionRun *prometheus.HistogramVec
	projectionDoc prometheus.Counter
	endsOpen      prometheus.Gauge
}

// New gives metrics in a registry of their own, with those of Go and the process.
func New() *Metrics {
	fast := prometheus.ExponentialBuckets(0.0001, 2, 17) // 0.1 ms to 6.5 s
	counts := prometheus.ExponentialBuckets(1, 2, 11)    // 1 to 1,024
	bytes := prometheus.ExponentialBuckets(512, 4, 9)    // 512 B to 32 MiB
	m := &Metrics{
		registry: prometheus.NewRegistry(),

		commands:     counter("commands_total", "Commands, by name and how they ended.", "command", "result"),
		commandTime:  histogram("command_seconds", "From a command's arrival to its answer.", fast, "command"),
		limited:      counter("limited_total", "Requests that the limits of their tenant refused, by service and limit.", "service", "limit"),
		merged:       histogram("commit_commands", "Commands that went into one commit.", counts).With(nil).(prometheus.Histogram),
		cacheThreads: gauge("cache_threads", "Thread states in memory.").With(nil),
		cacheBytes:   gauge("cache_bytes", "Memory that thread states take.").With(nil),

		appends:      histogram("append_seconds", "From a write to its acknowledgement.", fast, "kind"),
		groupCommits: histogram("append_commits", "Commits in one write.", counts).With(nil).(prometheus.Histogram),
		groupBytes:   histogram("append_bytes", "Bytes in one write.", bytes).With(nil).(prometheus.Histogram),
		damaged:      gauge("store_damages", "Places in the store of the embedded server that cannot be read.").With(nil),
		broken:       counter("broken_commits_total", "Commits of the log that could not be read, by who met them.", "reader"),
		relayed:      counter("timeline_commits_total", "Commits that this process put on the timeline.").With(nil),
		healed:       counter("timeline_healed_total", "Messages on the timeline that Skein did not write and that were removed.").With(nil),
		leases:       gauge("lease_held", "1 while this process does the work of which there is to be one, else 0.", "lease"),

		spans: counter("telemetry_spans_total", "Spans of runs for the OTLP endpoint, by what became of them: exported or dropped.", "result"),

		placesTaken:   gauge("places_taken", "Places for runs, effects, uploads, searches and images that are taken.", "kind"),
		placesWaiting: gauge("places_waiting", "Requests that wait for a place.", "kind"),
		placesRefused: counter("places_refused_total", "Times that a tenant got no place at once, by kind and why: share, total, waiting or rate.", "kind", "reason"),

		suspensions: counter("suspensions_total", "Times that the loudest users of a tenant that floods were kept from the server for a while.").With(nil),

		queries:       counter("queries_total", "Queries, by name and how they ended.", "query", "result"),
		queryTime:     histogram("query_seconds", "From a query's arrival to its answer.", fast, "query"),
		projectionRun: histogram("projection_batch_seconds", "From the first read of a batch of commits to its last document.", fast),
		projectionDoc: counter("projection_documents_total", "Documents that projections wrote.").With(nil),
		endsOpen:      gauge("ends_open", "Deleted threads of which something is still to be deleted or erased.").With(nil),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.commands, m.commandTime, m.limited, m.merged, m.cacheThreads, m.cacheBytes,
		m.appends, m.groupCommits, m.groupBytes, m.broken, m.damaged, m.relayed, m.healed, m.leases, m.spans,
		m.placesTaken, m.placesWaiting, m.placesRefused, m.suspensions,
		m.queries, m.queryTime, m.projectionRun, m.projectionDoc, m.endsOpen,
	)
	return m
}

// Handler serves the metrics in the formats that Prometheus reads.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Timeout: 10 * time.Second})
}

const namespace = "skein"

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// Done implements commands.Metrics.
func (m *Metrics) Done(command, result string, seconds float64) {
	m.commands.WithLabelValues(command, result).Inc()
	m.commandTime.WithLabelValues(command).Observe(seconds)
}

// Limited implements commands.Limited.
func (m *Metrics) Limited(service, limit string) { m.limited.WithLabelValues(service, limit).Inc() }

// Cached implements commands.Metrics.
func (m *Metrics) Cached(threads int, bytes int64) {
	m.cacheThreads.Set(float64(threads))
	m.cacheBytes.Set(float64(bytes))
}

// Merged implements commands.Metrics.
func (m *Metrics) Merged(commands int) { m.merged.Observe(float64(commands)) }

// Appended implements eventlog.Metrics.
func (m *Metrics) Appended(commits, bytes int, batch bool, seconds float64) {
	kind := "plain"
	if batch {
		kind = "batch"
	}
	m.appends.WithLabelValues(kind).Observe(seconds)
	m.groupCommits.Observe(float64(commits))
	m.groupBytes.Observe(float64(bytes))
}

// Broken implements eventlog.Metrics.
func (m *Metrics) Broken(reader string, _ uint64) { m.broken.WithLabelValues(reader).Inc() }

// Damaged says how many places of the store cannot be read.
func (m *Metrics) Damaged(places int) { m.damaged.Set(float64(places)) }

// Relayed implements eventlog.Metrics.
func (m *Metrics) Relayed(uint64) { m.relayed.Inc() }

// Lease notes whether this process holds a lease.
func (m *Metrics) Lease(name string, held bool) {
	value := 0.0
	if held {
		value = 1
	}
	m.leases.WithLabelValues(name).Set(value)
}

// Healed implements eventlog.Metrics.
func (m *Metrics) Healed(messages int) { m.healed.Add(float64(messages)) }

// Spans implements telemetry.Metrics.
func (m *Metrics) Spans(result string, n int) { m.spans.WithLabelValues(result).Add(float64(n)) }
