package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

const namespace = "skein"

// Metric describes one metric.
type Metric struct {
	Name       string
	Type       string // counter, gauge or histogram
	Help       string
	LabelNames []string
}

// Labels returns the labels as the site of the documentation writes them.
func (m Metric) Labels() string {
	if len(m.LabelNames) == 0 {
		return ""
	}
	return " by `" + strings.Join(m.LabelNames, "`, `") + "`"
}

// List returns every metric of Skein's own, by name.
func List() []Metric {
	m := New()
	m.WatchLags(nil)
	m.WatchWork(nil)
	m.WatchStore(func() Store { return Store{} })
	slices.SortFunc(m.catalog.rows, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return m.catalog.rows
}

// catalog makes metrics, registers them and remembers them. What is made twice
// panics.
type catalog struct {
	registry *prometheus.Registry
	rows     []Metric
}

func (c *catalog) add(kind, name, help string, labels []string) {
	c.rows = append(c.rows, Metric{namespace + "_" + name, kind, help, labels})
}

func (c *catalog) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	c.add("counter", name, help, labels)
	c.registry.MustRegister(v)
	return v
}

func (c *catalog) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	c.add("gauge", name, help, labels)
	c.registry.MustRegister(v)
	return v
}

func (c *catalog) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	c.add("histogram", name, help, labels)
	c.registry.MustRegister(v)
	return v
}

// single returns the one series of a histogram without labels.
func single(v *prometheus.HistogramVec) prometheus.Histogram {
	return v.With(nil).(prometheus.Histogram)
}

// scraped describes a gauge whose value is asked for when it is scraped.
func (c *catalog) scraped(name, help string, labels ...string) *prometheus.Desc {
	c.add("gauge", name, help, labels)
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}
