package runtime

import (
	"context"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/service"
)

// Begin joins the commands of the dispatcher of this worker's process, see [commands.Intake]: a
// run that a command requests is claimed in that command's commit, if a place is free and its
// agent is cached. Such a run does not wait for the queue. Its message is queued anyway, in case
// this process crashes; a worker that receives it forwards it, see [queues.Run]. It needs Stored.
func (w *Worker) Begin(made []events.Event) *commands.Joined {
	for i := range made {
		if d, ok := made[i].Data.(events.RunRequested); ok {
			return w.beginRun(&made[i], d.AgentID)
		}
	}
	return nil
}

// beginRun takes a place for a run, and returns the command that claims it.
func (w *Worker) beginRun(e *events.Event, name string) *commands.Joined {
	taking := w.takePlace()
	if taking == nil {
		return nil
	}
	leave, err := w.shares.Try(e.Tenant)
	if err != nil { // the run waits in the queue
		w.freePlace()
		return nil
	}
	agent, err := w.agent(cachedOnly(), e.Tenant, name)
	if err != nil {
		leave()
		w.freePlace()
		return nil
	}
	job := queues.RunsOf(w.log).Begin(e.Tenant, e.ThreadID, e.Version, e.Subject, name, taking.inbox)
	t := &turn{w: w, job: job, agent: agent, leave: leave}
	return &commands.Joined{
		Command: t.command(job.Execution+":"+w.newID(), "claim", t.claimFor(agent, nil)), Look: t.noteRun,
		Done: func(c *events.Commit, err error) {
			if err != nil { // if it was stored nevertheless, the sweeper finds it
				leave()
				w.freePlace()
				return
			}
			w.queueBegun(job)
			go func() {
				service.GrowStack()
				t.claimed = c
				w.runOne(taking, t)
			}()
		},
	}
}

// cachedOnly returns a context that has ended: only cached answers are available.
func cachedOnly() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// takePlace takes a place for a run that this process begins by itself, if more places are free
// than the queue needs.
func (w *Worker) takePlace() *intake {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.intake
	if t == nil || t.ctx.Err() != nil || len(w.places)+t.queue.Coming() > cap(w.places) {
		return nil
	}
	select {
	case w.places <- struct{}{}:
		w.running.Add(1)
		return t
	default:
		return nil
	}
}

func (w *Worker) freePlace() {
	<-w.places
	w.running.Done()
}

// setIntake sets the intake with which the worker accepts runs; nil: it accepts none.
func (w *Worker) setIntake(t *intake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.intake = t
}

// maxKept bounds the runs whose messages are tracked. When the message of an untracked run
// arrives, the run is claimed again, unless it has ended.
const maxKept = 10_000

// holdMessages tracks the messages of a run that this worker executes.
func (w *Worker) holdMessages(job *queues.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) >= maxKept {
		clear(w.held)
	}
	w.held[queuedRef{job.Tenant, job.Execution}] = job
}

// queueBegun waits for the message of a run that this process has begun, and puts it into the
// queue.
func (w *Worker) queueBegun(job *queues.Run) {
	w.holdMessages(job)
	if err := queues.RunsOf(w.log).PutBegun(job); err != nil {
		w.logger.Warn().Err(err).Str("execution", job.Execution).Msg("cannot queue a run; the sweeper will")
	}
}

// consumeHeld consumes a message if this worker already executes its run. The queue redelivers it
// if the process was suspended for too long, and the worker would take the run from itself. A run
// that was requested again meanwhile is a new job.
func (w *Worker) consumeHeld(m *queues.Run) bool {
	w.mu.Lock()
	job := w.held[queuedRef{m.Tenant, m.Execution}]
	w.mu.Unlock()
	if job == nil || m.Version > job.Version || m.Thread != "" && m.Thread != job.Thread {
		return false
	}
	if err := job.Adopt(m); err != nil {
		w.logger.Warn().Err(err).Str("execution", m.Execution).Msg("cannot settle the message of a run; it is redelivered")
	}
	w.stopHolding(job, job.Settled)
	return true
}

// stopHolding stops tracking the messages of a run if so returns true.
func (w *Worker) stopHolding(job *queues.Run, so func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := queuedRef{job.Tenant, job.Execution}
	if w.held[ref] == job && so() {
		delete(w.held, ref)
	}
}

// forward forwards a message to the worker that has begun its run. If the message is redelivered,
// that worker has crashed.
func (w *Worker) forward(m *queues.Run, inbox string) bool {
	if m.Keeper == "" || m.Keeper == inbox || m.Again {
		return false
	}
	w.running.Go(func() {
		if err := m.HandOver(); err != nil {
			w.logger.Warn().Err(err).Str("execution", m.Execution).Msg("cannot forward a run to the worker that has begun it; it is redelivered")
		}
	})
	return true
}

// begunWith reports whether the run that an event of a commit requests was claimed in
// the same commit.
func begunWith(c *events.Commit, i int) bool {
	for _, e := range c.Events[i+1:] {
		if e.Type == events.RunClaimedType && e.Subject == c.Events[i].Subject {
			return true
		}
	}
	return false
}

// claimFor returns the claim of a run, with the MCP servers that its agent needs and cannot reach.
func (t *turn) claimFor(agent *Agent, lacks []thread.MissingServer) thread.ClaimRun {
	c := thread.ClaimRun{ExecutionID: t.job.Execution, Worker: t.w.name, Definitions: agent.Refs, Missing: lacks}
	if agent.Type == DualAgent {
		c.Side = events.SideA
	}
	return c
}

// park releases a run until its tenant may have a place. The run stays in the queue, since another
// worker may have a place for it.
func (w *Worker) park(job *queues.Run) {
	if err := job.Release(w.parked.Next(job.Tenant)); err != nil {
		w.logger.Warn().Err(err).Str("execution", job.Execution).Msg("cannot settle the message of a run; it is redelivered")
	}
}
