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
	catalog catalog

	commands     *prometheus.CounterVec
	commandTime  *prometheus.HistogramVec
	limited      *prometheus.CounterVec
	peers        prometheus.Gauge
	forwarded    *prometheus.CounterVec
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

	spans        *prometheus.CounterVec
	deliveries   *prometheus.CounterVec
	hooksBehind  prometheus.Gauge
	hooksFailing prometheus.Gauge
	runs         runs
	web          web

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

// New returns metrics in a registry of their own, with those of Go and the process.
func New() *Metrics {
	fast := prometheus.ExponentialBuckets(0.0001, 2, 17) // 0.1 ms to 6.5 s
	counts := prometheus.ExponentialBuckets(1, 2, 11)    // 1 to 1,024
	bytes := prometheus.ExponentialBuckets(512, 4, 9)    // 512 B to 32 MiB
	c := catalog{registry: prometheus.NewRegistry()}
	c.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &Metrics{
		commands:     c.counter("commands_total", "Commands that ended.", "command", "result"),
		commandTime:  c.histogram("command_seconds", "From a command's arrival to its answer.", fast, "command"),
		limited:      c.counter("limited_total", "Requests refused by limits of a tenant or a credential.", "service", "limit"),
		peers:        c.gauge("peers", "Skeins that share this one's commands, itself included.").With(nil),
		forwarded:    c.counter("forwarded_commands_total", "Commands of threads that another Skein decides: sent, returned because that one was gone, or decided here at once.", "outcome"),
		merged:       single(c.histogram("commit_commands", "Commands that went into one commit.", counts)),
		cacheThreads: c.gauge("cache_threads", "Thread states in memory.").With(nil),
		cacheBytes:   c.gauge("cache_bytes", "Memory of thread states.").With(nil),

		appends:      c.histogram("append_seconds", "From a write to its acknowledgement.", fast, "kind"),
		groupCommits: single(c.histogram("append_commits", "Commits in one write.", counts)),
		groupBytes:   single(c.histogram("append_bytes", "Bytes in one write.", bytes)),
		broken:       c.counter("broken_commits_total", "Commits of the log that could not be read.", "reader"),
		relayed:      c.counter("timeline_commits_total", "Commits that this process put on the timeline.").With(nil),
		leases:       c.gauge("lease_held", "1 while this process has the lease, else 0.", "lease"),
		healed:       c.counter("timeline_healed_total", "Foreign messages removed from the timeline.").With(nil),
		spans:        c.counter("telemetry_spans_total", "Spans for the OTLP endpoint: exported or dropped.", "result"),
		deliveries:   c.counter("webhook_deliveries_total", "Attempts of this process to deliver an event to a webhook.", "result"),
		hooksBehind:  c.gauge("webhook_threads_behind", "Threads with events that a webhook has not accepted, in the process that delivers.").With(nil),
		hooksFailing: c.gauge("webhooks_failing", "Webhooks whose last attempt failed, in the process that delivers.").With(nil),

		damaged: c.gauge("store_damages", "Unreadable places in the embedded server's store.").With(nil),

		placesTaken:   c.gauge("places_taken", "Places taken, of runs and of every kind of --places.", "kind"),
		placesWaiting: c.gauge("places_waiting", "Requests that wait for a place.", "kind"),
		placesRefused: c.counter("places_refused_total", "Times that a tenant got no place at once, and why: share, total, waiting or rate.", "kind", "reason"),

		suspensions: c.counter("suspensions_total", "Suspensions of the loudest users of a flooding tenant.").With(nil),

		queries:       c.counter("queries_total", "Queries that ended.", "query", "result"),
		queryTime:     c.histogram("query_seconds", "From a query's arrival to its answer.", fast, "query"),
		projectionRun: c.histogram("projection_batch_seconds", "From a batch's first read to its last document.", fast),
		projectionDoc: c.counter("projection_documents_total", "Documents that projections wrote.").With(nil),
		endsOpen:      c.gauge("ends_open", "Deleted threads not yet wholly erased.").With(nil),
	}
	m.runs = newRuns(&c)
	m.web = newWeb(&c)
	noteBuild(&c)
	m.catalog = c
	return m
}

// Handler serves the metrics in the formats that Prometheus reads.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.catalog.registry, promhttp.HandlerOpts{Timeout: 10 * time.Second})
}

// Done implements commands.Metrics.
func (m *Metrics) Done(command, result string, seconds float64) {
	m.commands.WithLabelValues(command, result).Inc()
	m.commandTime.WithLabelValues(command).Observe(seconds)
}

// Limited implements service.Limited.
func (m *Metrics) Limited(service, limit string) { m.limited.WithLabelValues(service, limit).Inc() }

// Peers implements service.ForwardingMetrics.
func (m *Metrics) Peers(n int) { m.peers.Set(float64(n)) }

// Forwarded implements service.ForwardingMetrics.
func (m *Metrics) Forwarded(outcome string) { m.forwarded.WithLabelValues(outcome).Inc() }

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

// Delivery implements webhooks.Metrics.
func (m *Metrics) Delivery(failed bool) { m.deliveries.WithLabelValues(outcome(failed)).Inc() }

// Webhooks implements webhooks.Metrics.
func (m *Metrics) Webhooks(behind, failing int) {
	m.hooksBehind.Set(float64(behind))
	m.hooksFailing.Set(float64(failing))
}

// Spans implements telemetry.Metrics.
func (m *Metrics) Spans(result string, n int) { m.spans.WithLabelValues(result).Add(float64(n)) }
