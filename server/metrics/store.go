package metrics

import "github.com/prometheus/client_golang/prometheus"

// Store says whether something can be stored.
type Store struct {
	Full    bool // there is no room
	Failing bool // writes of the log are not stored
	Free    uint64
	Known   bool // Free is known
}

// WatchStore has each scrape ask about the store. ask must return at once. It is called once.
func (m *Metrics) WatchStore(ask func() Store) {
	m.catalog.registry.MustRegister(&storeCollector{
		ask:     ask,
		full:    m.catalog.scraped("store_full", "1 while commands are refused for lack of space, else 0."),
		failing: m.catalog.scraped("store_failing", "1 from a write that the log did not store until one that it did, else 0."),
		free:    m.catalog.scraped("store_free_bytes", "Bytes that are free on the disk of the embedded server's store."),
	})
}

// storeCollector implements prometheus.Collector.
type storeCollector struct {
	ask                 func() Store
	full, failing, free *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.full
	out <- c.failing
	out <- c.free
}

// Collect implements prometheus.Collector.
func (c *storeCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	flag := map[bool]float64{true: 1}
	store := c.ask()
	gauge(c.full, flag[store.Full])
	gauge(c.failing, flag[store.Failing])
	if store.Known {
		gauge(c.free, float64(store.Free))
	}
}
