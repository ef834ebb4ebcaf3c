package console

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// System reports on the process and its stores. It knows no tenants, and is for operators of the
// server. It is safe for concurrent use.
type System interface {
	Overview(ctx context.Context) (*Overview, error)
}

// Overview is the report of a System.
type Overview struct {
	Version string
	Started time.Time
	Checks  []Check
	Series  []Series
	Stores  []Store
	Leases  []Lease
	Places  []Place
	Faults  []Fault
	Terms   []Term

	// Operations are the operations that operators' programs have reported, the latest first.
	Operations []events.Operation
}

// Check says whether a part works.
type Check struct {
	Name string
	OK   bool
	Note string // why not, or a warning
}

// Series is a measurement over time.
type Series struct {
	Name, Unit string
	Points     []float64 // oldest first; NaN: nothing was measured
}

// Store is a stream, a bucket or an object store.
type Store struct {
	Name      string
	Messages  uint64
	Bytes     uint64
	Last      uint64 // sequence
	Consumers int
	Replicas  int
	Leader    string        // in a cluster
	Lag       uint64        // of its slowest replica
	Keeps     time.Duration // 0: for ever
}

// Lease is work that one process does.
type Lease struct {
	Name string
	Held bool // by this process
}

// Place says how much of a bounded resource of the process is in use.
type Place struct {
	Kind           string
	Taken, Waiting int64
}

// Fault is a fault that the process has found.
type Fault struct {
	Name  string
	Count int64
	Next  string // what to do
}

// Term is a setting of retention or backup.
type Term struct{ Name, Value string }

// system is the page of the process. Without a System, as in a gateway, there is none.
func system(s System, operators edge.Operators) []page.Page {
	if s == nil {
		return nil
	}
	return []page.Page{{
		Path: "/system", Name: "System", In: page.Navigation, Template: "system", For: operators.May,
		JSON: "/metrics", CLI: "skein health",
		Load: func(a *page.Ask) (any, error) { return loadSystem(a.Context(), s) },
	}}
}

// systemData is the data of the page.
type systemData struct {
	*Overview
	Running   string
	Lines     []template.HTML
	Standings []*standing
}

func loadSystem(ctx context.Context, s System) (any, error) {
	o, err := s.Overview(ctx)
	if err != nil {
		return nil, err
	}
	d := &systemData{Overview: o, Running: chart.Duration(time.Since(o.Started).Microseconds()), Standings: standingsOf(o.Operations, time.Now())}
	for i, line := range o.Series {
		d.Lines = append(d.Lines, chart.Sparkline{
			ID: "line-" + strconv.Itoa(i), Title: line.Name, Points: line.Points,
			Format: func(v float64) string { return shortNumber(v) + unit(line.Unit) },
		}.HTML())
	}
	return d, nil
}

func unit(u string) string {
	if u == "" || u[0] == '/' {
		return u
	}
	return " " + u
}

func shortNumber(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return chart.Count(int64(v))
	}
	return fmt.Sprintf("%.1f", v)
}

// Time returns when the process started, for the template.
func (d *systemData) Time() events.Time { return events.TimeOf(d.Started) }

// Age returns how long a store keeps messages, for the template.
func (s Store) Age() string {
	if s.Keeps == 0 {
		return "for ever"
	}
	return chart.Duration(s.Keeps.Microseconds())
}

// Size returns the bytes of a store, for the template.
func (s Store) Size() int64 { return int64(min(s.Bytes, math.MaxInt64)) }
