package commands

import (
	"context"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Run does a command of this process itself, which came from no request: its
// parts may be those of workers, and it is validated by its decision alone. It
// gives the stored commit, which may hold the events of other commands too, and
// lets look see the state after it. look must not keep the state, or wait.
//
// The error is a refusal, as Do gives it, or a *thread.LostRunError. The
// command's id makes a repeat safe; a repeat gives the first commit.
func (d *Dispatcher) Run(ctx context.Context, c *thread.Command, look func(*thread.State)) (*events.Commit, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	start := time.Now()
	c.Time = events.TimeOf(d.cfg.Now())
	a := d.wait(&job{ctx: ctx, command: c, look: look, done: make(chan answer, 1)})
	result := "ok"
	if a.err != nil {
		result = string(events.AsError(a.err).Code)
	}
	d.metrics.Done(label(c.Parts[0].Name), result, time.Since(start).Seconds())
	if a.err != nil {
		return nil, a.err
	}
	if a.commit == nil { // it was done before
		return d.log.Get(ctx, a.reply.Seq)
	}
	return a.commit, nil
}

// Look lets look see the state of a thread as the log has it now. look must not
// keep the state, or wait.
func (d *Dispatcher) Look(ctx context.Context, tenant, id string, look func(*thread.State)) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	c := &thread.Command{Tenant: tenant, ThreadID: id}
	return d.wait(&job{ctx: ctx, command: c, look: look, done: make(chan answer, 1)}).err
}
