package runtime

import (
	"context"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
)

// Begin is for the dispatcher's Joins, if it is this worker's: a run that a
// command asks for is claimed with that command's commit, if there is a place
// for it and its agent is known without asking anybody. So nothing waits for the
// queue. The run's message goes there all the same, for when this process dies;
// whoever is given it hands it over, see [queues.Run]. It needs Stored.
func (w *Worker) Begin(made []events.Event) *commands.Joined {
	for i := range made {
		if d, ok := made[i].Data.(events.RunRequested); ok {
			return w.begin(&made[i], d.AgentID)
		}
	}
	return nil
}

// begin takes a place for a run, and makes its claim.
func (w *Worker) begin(e *events.Event, name string) *commands.Joined {
	taking := w.room()
	if taking == nil {
		return nil
	}
	leave, err := w.shares.Try(e.Tenant)
	if err != nil { // it waits in the queue
		w.leave()
		return nil
	}
	agent, err := w.agent(asksNobody(), e.Tenant, name)
	if err != nil {
		leave()
		w.leave()
		return nil
	}
	job := queues.RunsOf(w.log).Begin(e.Tenant, e.ThreadID, e.Version, e.Subject, name, taking.inbox)
	t := &turn{w: w, job: job, agent: agent, leave: leave}
	return &commands.Joined{
		Command: t.command(job.Execution+":"+w.newID(), "claim", t.claims(agent)), Look: t.see,
		Done: func(c *events.Commit, err error) {
			if err != nil { // if it was stored all the same, the sweeper finds it
				leave()
				w.leave()
				return
			}
			w.keep(job)
			w.crew.do(func() {
				t.claimed = c
				w.runOne(taking, t)
			})
		},
	}
}

// asksNobody gives a context that has ended: what would have to ask somebody fails
// at once.
func asksNobody() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// room takes a place for a run that this process begins by itself, if one is
// free that no run on its way from the queue wants.
func (w *Worker) room() *taking {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.taking
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

func (w *Worker) leave() {
	<-w.places
	w.running.Done()
}

// takes says with what the worker takes runs from now on; nil: it takes none.
func (w *Worker) takes(t *taking) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taking = t
}

// maxKept bounds the runs whose messages are kept. What is forgotten is found to
// have ended when its message comes, or is claimed again.
const maxKept = 10_000

// hold keeps the messages of a run that this worker has in hand.
func (w *Worker) hold(job *queues.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) >= maxKept {
		clear(w.held)
	}
	w.held[job.Execution] = job
}

// keep waits for the message of a run that this process has begun, and puts it
// into the queue.
func (w *Worker) keep(job *queues.Run) {
	w.hold(job)
	if err := queues.RunsOf(w.log).PutBegun(job); err != nil {
		w.logger.Warn().Err(err).Str("execution", job.Execution).Msg("a run could not be queued; the sweeper will")
	}
}

// keeps takes a message, if it is of a run that this worker has in hand: it comes
// again when the process stood still for longer than the queue waits, and the run
// would be taken from itself. A run that was asked for once more since is another
// piece of work.
func (w *Worker) keeps(m *queues.Run) bool {
	w.mu.Lock()
	job := w.held[m.Execution]
	w.mu.Unlock()
	if job == nil || m.Version > job.Version {
		return false
	}
	if err := job.Adopt(m); err != nil {
		w.logger.Warn().Err(err).Str("execution", m.Execution).Msg("the queue of runs was not told; the run comes again")
	}
	w.forget(job, job.Settled)
	return true
}

// forget waits for the message of a run no more, if that is so.
func (w *Worker) forget(job *queues.Run, so func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[job.Execution] == job && so() {
		delete(w.held, job.Execution)
	}
}

// handsOver gives a message to the worker that has begun its run by itself. If
// it comes again, that worker has died.
func (w *Worker) handsOver(m *queues.Run, inbox string) bool {
	if m.Keeper == "" || m.Keeper == inbox || m.Again {
		return false
	}
	if err := m.HandOver(); err != nil {
		w.logger.Warn().Err(err).Str("execution", m.Execution).Msg("a run could not be handed to who has begun it; it comes again")
	}
	return true
}

// begunWith reports whether the run that an event of a commit asks for was
// claimed with it.
func begunWith(c *events.Commit, i int) bool {
	for _, e := range c.Events[i+1:] {
		if e.Type == events.RunClaimedType && e.Subject == c.Events[i].Subject {
			return true
		}
	}
	return false
}

// claims gives the claim of a run for an agent.
func (t *turn) claims(agent *Agent) thread.ClaimRun {
	c := thread.ClaimRun{ExecutionID: t.job.Execution, Worker: t.w.name, Definitions: agent.Refs}
	if agent.Type == DualAgent {
		c.Side = events.SideA
	}
	return c
}
