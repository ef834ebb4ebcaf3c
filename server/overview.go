package server

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/console"
	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/internal/build"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/server/metrics"
)

// maxStores is how many streams and buckets an overview lists.
const maxStores = 500

// overview tells the console of this process and of what it stores: nothing of any
// tenant, but the name of one that was audited.
type overview struct {
	server  *Server
	history *metrics.History
	started time.Time
}

// openOverview starts to keep what the process measures.
func (s *Server) openOverview(background context.Context) *overview {
	o := &overview{server: s, history: s.metrics.History(), started: time.Now()}
	s.running.Go(func() { o.history.Run(background) })
	return o
}

// Overview implements console.System.
func (o *overview) Overview(ctx context.Context) (*console.Overview, error) {
	s := o.server
	stores, err := o.stores(ctx)
	if err != nil {
		return nil, err
	}
	out := &console.Overview{Version: build.This().String(), Started: o.started, Stores: stores, Terms: o.terms()}
	for _, c := range s.Checks(ctx) {
		note := c.Note
		if !c.OK {
			note = c.Reason
		}
		out.Checks = append(out.Checks, console.Check{Name: c.Name, OK: c.OK, Note: note})
	}
	for _, line := range o.history.Series() {
		out.Series = append(out.Series, console.Series{Name: line.Name, Unit: line.Unit, Points: line.Points})
	}
	values := s.metrics.Values("skein_lease_held", "skein_places_taken", "skein_places_waiting")
	held, taken, waiting := values[0], values[1], values[2]
	for _, name := range slices.Sorted(maps.Keys(held)) {
		out.Leases = append(out.Leases, console.Lease{Name: name, Held: held[name] > 0})
	}
	for _, kind := range slices.Sorted(maps.Keys(taken)) {
		out.Places = append(out.Places, console.Place{Kind: kind, Taken: int64(taken[kind]), Waiting: int64(waiting[kind])})
	}
	out.Faults = o.faults()
	done, err := s.operations.List(ctx)
	if err != nil {
		return nil, err
	}
	out.Operations = done.Operations
	return out, nil
}

// openOperations opens the store of what operators' programs report, and answers them. It has a
// connection of its own: a report must not delay commands.
func (s *Server) openOperations(ctx context.Context) error {
	log, err := s.open("operations")
	if err != nil {
		return err
	}
	if s.operations, err = eventlog.OpenOperations(ctx, log.Streams(), time.Now); err != nil {
		return err
	}
	return s.operations.Answer(log.Conn())
}

// stores lists the streams, buckets and object stores, by name.
func (o *overview) stores(ctx context.Context) ([]console.Store, error) {
	var out []console.Store
	list := o.server.reading.log.Streams().JetStream().ListStreams(ctx)
	for info := range list.Info() {
		if len(out) < maxStores {
			out = append(out, storeOf(info))
		}
	}
	slices.SortFunc(out, func(a, b console.Store) int { return strings.Compare(a.Name, b.Name) })
	return out, list.Err()
}

func storeOf(info *jetstream.StreamInfo) console.Store {
	s := console.Store{
		Name: info.Config.Name, Messages: info.State.Msgs, Bytes: info.State.Bytes, Last: info.State.LastSeq,
		Consumers: info.State.Consumers, Replicas: info.Config.Replicas, Keeps: info.Config.MaxAge,
	}
	if info.Cluster != nil {
		s.Leader = info.Cluster.Leader
		for _, r := range info.Cluster.Replicas {
			s.Lag = max(s.Lag, r.Lag)
		}
	}
	return s
}

// faults counts what the audit would find, as far as this process has met it.
func (o *overview) faults() []console.Fault {
	count := func(name string) (sum int64) {
		for _, values := range o.server.metrics.Values(name) {
			for _, v := range values {
				sum += int64(v)
			}
		}
		return sum
	}
	return []console.Fault{
		{Name: "Commits that cannot be read", Count: count("skein_broken_commits_total"), Next: "skein audit verify names them"},
		{Name: "Places of the store that cannot be read", Count: count("skein_store_damages"), Next: "stop Skein, and repair it with skein store repair"},
		{Name: "Foreign messages removed from the timeline", Count: count("skein_timeline_healed_total"), Next: "something else than Skein publishes there; see docs/access.md"},
		{Name: "Suspensions of users that flood", Count: count("skein_suspensions_total"), Next: "the log of the process names their tenant"},
	}
}

// terms says what is kept for how long, and how it is copied.
func (o *overview) terms() []console.Term {
	cfg := o.server.cfg
	backup := "with skein backup, of the cluster's streams"
	if o.server.nats != nil {
		backup = "with skein backup, or a copy of " + cfg.Store + " while Skein is stopped"
	}
	return []console.Term{
		{Name: "Retention policies are applied", Value: "every " + chart.Duration(cfg.ArchiveEvery.Microseconds())},
		{Name: "Backup", Value: backup},
	}
}

// lags queries how far the timeline and the read models lag behind the log. What is
// derived is queried first: it cannot be ahead of the log then.
func (s *Server) lags(ctx context.Context) (metrics.Lags, error) {
	log := s.reading.log
	shown, err := timeline.Of(log).LastSeq(ctx)
	if err != nil {
		return metrics.Lags{}, err
	}
	positions, err := buckets.Positions(ctx, log)
	if err != nil {
		return metrics.Lags{}, err
	}
	last, err := log.LastSeq(ctx)
	if err != nil {
		return metrics.Lags{}, err
	}
	stored := map[uint64]float64{} // seconds since the first commit after a sequence was stored
	lag := func(seq uint64) (metrics.Lag, error) {
		if seq >= last {
			return metrics.Lag{Seq: seq}, nil
		}
		seconds, ok := stored[seq]
		if !ok {
			at, err := log.StoredAt(ctx, seq+1)
			if err != nil {
				return metrics.Lag{}, err
			}
			if !at.IsZero() {
				seconds = max(time.Since(at).Seconds(), 0)
			}
			stored[seq] = seconds
		}
		return metrics.Lag{Seq: seq, Commits: last - seq, Seconds: seconds}, nil
	}
	out := metrics.Lags{Log: last, Projections: map[string]metrics.Lag{}}
	if out.Timeline, err = lag(shown); err != nil {
		return metrics.Lags{}, err
	}
	for name, seq := range positions {
		if out.Projections[name], err = lag(seq); err != nil {
			return metrics.Lags{}, err
		}
	}
	return out, nil
}
