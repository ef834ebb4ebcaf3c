package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/buckets"
)

// process is a Skein process: the real log, dispatcher, relay and runner, on a
// connection of its own.
type process struct {
	run  *Run
	name string
	rng  *rand.Rand // of its runner's pauses

	conn       *Conn
	log        *eventlog.Log
	dispatcher *commands.Dispatcher
	died       chan struct{}
	leading    context.CancelFunc // ends its relay and its runner; nil: they do not run
	progress   *buckets.Progress

	upAt, mendAt, restAt time.Time
}

func (p *process) dead() bool { return p.conn.IsClosed() }

// start starts the process, also after it has died.
func (p *process) start() {
	r := p.run
	p.conn, p.died = newConn(r, p.name), make(chan struct{})
	r.conns = append(r.conns, p.conn)
	var err error
	logCfg := eventlog.Config{AckTimeout: ackTimeout, QueueCommits: 64}
	if r.seed%8 == 0 { // it takes long to make
		logCfg.Recent = &eventlog.Recent{}
	}
	p.log, err = eventlog.OpenOn(p.conn, &jet{conn: p.conn}, logCfg, zerolog.Nop(), nil)
	if err != nil {
		panic(err) // the configuration above is ours
	}
	cfg := commands.Config{Now: time.Now, SnapshotEvery: 6, InFlight: 64}
	if r.shape.small {
		cfg.CacheBytes = 1
	}
	p.dispatcher = commands.NewDispatcher(p.log, r.Validator, cfg, zerolog.Nop(), nil)
}

// takeLead starts the relay and the runner.
func (p *process) takeLead() {
	p.rest()
	r := p.run
	r.lead = p
	ctx, cancel := context.WithCancel(context.Background())
	p.leading, p.restAt, p.progress = cancel, time.Time{}, buckets.NewProgress()
	cfg := projections.Config{BatchCommits: 1 + p.rng.IntN(6), Progress: p.progress, Now: time.Now, Jitter: p.rng.IntN}
	if r.shape.small {
		cfg.CacheBytes = 1
	}
	log := p.log
	runner := projections.New(log, cfg, zerolog.Nop(), nil)
	r.under.Go(func() { _ = timeline.Of(log).Relay(ctx) })
	r.under.Go(func() { _ = runner.Run(ctx) })
}

// rest ends the relay and the runner.
func (p *process) rest() {
	if p.leading != nil {
		p.leading()
	}
	p.leading, p.restAt = nil, time.Time{}
}

// die ends the process: nothing it does from here on reaches anybody.
func (p *process) die() {
	close(p.died)
	p.conn.end()
	p.rest()
	p.run.under.Go(p.log.Close)
	p.run.under.Go(p.dispatcher.Close)
}

// end ends it in peace.
func (p *process) end() {
	if p.dead() {
		return
	}
	p.rest()
	p.run.under.Go(func() {
		p.dispatcher.Close()
		p.log.Close()
		p.conn.end()
	})
}

// shown reports whether the read side shows all of the log.
func (r *Run) shown() bool {
	if !r.shape.readSide {
		return true
	}
	end := r.server.streams["SKEIN_LOG"].last()
	if seq, whole := r.server.timelineAt(); r.lead == nil || r.lead.progress.Seq() < end || seq < end || !whole {
		r.settled = time.Time{}
		return false
	}
	if r.settled.IsZero() { // it may have forgotten since what a failure of the power took
		r.settled = time.Now()
	}
	return time.Since(r.settled) > 10*time.Second // longer than anybody waits for an answer that is lost
}
