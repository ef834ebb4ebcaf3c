package runtime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Execution is the execution as tools, hooks and effects see it: an
// events.ExecutionState, and what else a ThreadState is made of. It is live: it shows what the worker knows at the moment, and
// after Stop it is stopped. All of it is read-only, but for Stop and ForceTurn. Safe
// for concurrent use.
//
// An effect has one of its own, with its own flow: it has no steps,
// no sides and no messages.
type Execution struct {
	flow    string
	ctx     context.Context
	scratch *sync.Map
	halted  atomic.Bool // of an effect
	thread  known       // of an effect
	turn    *turn       // nil: an effect's
	spot    spot
}

// spot is where in a run an Execution was handed out.
type spot struct {
	agent    *Agent
	side     *Side
	step     string
	call     string // the tool's; empty for a hook
	portable bool
	nested   int          // how many tools deep
	invoked  atomic.Int64 // how many calls were made from there
}

// known is what a worker knows of a thread.
type known struct {
	agent, user string
	created     int64
	seq         int64
}

// execution hands out the run to a tool's call, or to a hook.
func (t *turn) execution(call string, portable bool, nested int) *Execution {
	x := &Execution{flow: t.job.Execution, ctx: t.ctx, scratch: t.scratch, turn: t}
	x.spot.agent, x.spot.side, x.spot.step = t.agent, t.agent.side(t.run.Side), t.run.StepID
	x.spot.call, x.spot.portable, x.spot.nested = call, portable, nested
	return x
}

// state gives the thread as a hook sees it.
func (t *turn) state() ThreadState {
	return t.w.cfg.State(t.job.Tenant, t.job.Thread, t.execution("", false, 0))
}

// toolState gives the thread as a tool sees it.
func (t *turn) toolState(call string, spec ToolSpec) ThreadState {
	return t.w.cfg.State(t.job.Tenant, t.job.Thread, t.execution(call, !spec.NotPortable, 0))
}

// InRun reports whether it is that of a run of the thread, and of no effect: what
// is done there must not wait for another run of the thread.
func (x *Execution) InRun() bool { return x.turn != nil }

// Portable reports whether it was handed to a tool that says that it is portable,
// and so must not see the process.
func (x *Execution) Portable() bool { return x.spot.portable }

// Scratch gives the store of the execution. It is memory: it ends with
// the execution, and follows it neither to another worker nor over a wait.
func (x *Execution) Scratch() *sync.Map { return x.scratch }

// AgentID gives the agent in charge of the thread now; empty if none is.
func (x *Execution) AgentID() string { return x.known().agent }

// UserID gives the user that the thread belongs to; nil if to none.
func (x *Execution) UserID() *string {
	if user := x.known().user; user != "" {
		return &user
	}
	return nil
}

// CreatedAt gives when the thread was made, in microseconds.
func (x *Execution) CreatedAt() int64 { return x.known().created }

// Seq gives the last commit of the run, as far as it has got: what reads must show.
func (x *Execution) Seq() int64 { return x.known().seq }

func (x *Execution) known() known {
	if x.turn == nil {
		return x.thread
	}
	l := &x.turn.live
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.thread
}

func (x *Execution) run() thread.Run {
	if x.turn == nil {
		return thread.Run{Status: events.Executing}
	}
	l := &x.turn.live
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run
}

// FlowID gives the execution's id; of an effect, the effect's.
func (x *Execution) FlowID() string { return x.flow }

// CurrentSide gives whose turn it is: a, where there are no sides.
func (x *Execution) CurrentSide() events.Side {
	if side := x.run().Side; side != "" {
		return side
	}
	return events.SideA
}

// StepCount gives how many steps there were whose reactor was asked, with the one
// under way.
func (x *Execution) StepCount() int64 { return x.run().Steps }

// SideAStepCount gives those of side a, which has all where there are no sides.
func (x *Execution) SideAStepCount() int64 { return x.run().SideASteps }

// SideBStepCount gives those of side b.
func (x *Execution) SideBStepCount() int64 { return x.run().SideBSteps }

// Stopped reports whether the execution was told to stop.
func (x *Execution) Stopped() bool { return x.halted.Load() || x.run().Stop }

// StoppedBy gives the side that stopped it; empty if nobody did, or no side.
func (x *Execution) StoppedBy() events.Side { return x.run().StoppedBy }

// MessageHistory gives what has been said in the run's context, silent messages
// too, oldest first. It is empty when the worker has given the run up.
func (x *Execution) MessageHistory() []events.ThreadMessage {
	if x.turn == nil {
		return []events.ThreadMessage{}
	}
	return x.turn.live.messages(x.run().ContextID)
}

// AbortSignal gives what is closed when work under way is to be given up: the run
// was cancelled, its time is over, or its worker ends. The context of
// a call ends then, too.
func (x *Execution) AbortSignal() <-chan struct{} { return x.ctx.Done() }

// Stop ends the execution after what it does now. It returns when that
// is durable; where it cannot be, the log of the process says so.
func (x *Execution) Stop() {
	if x.turn == nil {
		x.halted.Store(true)
		return
	}
	if err := x.command("run.stop", events.StopRun{ExecutionID: x.flow, By: x.CurrentSide()}); err != nil {
		x.turn.logger.Warn().Err(err).Msg("a run was told to stop, which could not be recorded")
	}
}

// ForceTurn gives the next turn to a side. The error is an
// invalid_request unless the agent is a dual_ai one.
func (x *Execution) ForceTurn(side events.Side) error {
	switch {
	case side != events.SideA && side != events.SideB:
		return events.Invalid("/side", "a side is a or b, and not %.20q", side)
	case x.turn == nil:
		return events.Invalid("/side", "only a dual_ai agent has sides")
	}
	return x.command("run.turn", events.TurnRun{ExecutionID: x.flow, Side: side})
}

func (x *Execution) command(name string, data any) error {
	t := x.turn
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), commandTime)
	defer cancel()
	_, err := t.w.commands.Run(ctx, &thread.Command{
		ID: t.w.newID(), Tenant: t.job.Tenant, ThreadID: t.job.Thread, Actor: "skein:" + t.w.name,
		Parts: []thread.Part{{Name: name, Data: data}},
	}, t.live.see(t.job.Execution))
	return err
}

// commandTime is how long what steers a run may take to be recorded.
const commandTime = 10 * time.Second
