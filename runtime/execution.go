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
// events.ExecutionState, and the base of a ThreadState. It always shows the current state
// of the worker. Only Stop and ForceTurn change it. It is safe for concurrent use.
//
// An effect has an execution of its own, with its own flow, and without steps, sides
// and messages.
type Execution struct {
	flow    string
	ctx     context.Context
	scratch *sync.Map
	halted  atomic.Bool // of an effect: it was stopped
	thread  known       // of an effect
	firing  string      // of an effect: the key of its firing
	turn    *turn       // nil if it belongs to an effect
	spot    spot
}

// spot identifies the code that an Execution was created for: a call of a tool, or a hook.
type spot struct {
	agent    *Agent
	side     *Side
	step     string
	call     string // id of the tool's call; empty for a hook
	portable bool
	nested   int          // how many tools deep
	invoked  atomic.Int64 // number of calls made from there
}

// known is what a worker knows about a thread.
type known struct {
	agent, user string
	created     int64
	seq         int64
	rights      *events.Rights // of an effect
}

// execution returns the execution for a tool's call, or for a hook.
func (t *turn) execution(call string, portable bool, nested int) *Execution {
	x := &Execution{flow: t.job.Execution, ctx: t.ctx, scratch: t.scratch, turn: t}
	t.noting.Lock()
	x.spot.agent, x.spot.side, x.spot.step = t.agent, t.agent.side(t.run.Side), t.run.StepID
	t.noting.Unlock()
	x.spot.call, x.spot.portable, x.spot.nested = call, portable, nested
	return x
}

// EffectExecution returns the execution of an effect on a thread with that state, until ctx ends.
func EffectExecution(ctx context.Context, in *EffectInput, s *thread.State) *Execution {
	return &Execution{
		flow: in.FlowID, ctx: ctx, scratch: &sync.Map{}, firing: in.Key,
		thread: known{s.AgentID(), s.UserID(), int64(s.CreatedAt()), int64(s.Seq), in.Rights},
	}
}

// state returns the thread as a hook sees it.
func (t *turn) state() ThreadState {
	return t.stateAt(t.execution("", false, 0))
}

// stateAt returns the thread as the code at a place sees it: a tool, or a hook.
func (t *turn) stateAt(x *Execution) ThreadState {
	return t.w.cfg.State(t.job.Tenant, t.job.Thread, x)
}

// Key returns the idempotency key for commands of this code. It is the same for every attempt at a
// call of a tool, or at a firing of an effect. It is empty for a hook.
func (x *Execution) Key() string {
	if x.turn != nil && x.spot.call != "" {
		return callKey(x.flow, x.spot.step, x.spot.call)
	}
	return x.firing
}

// callKey returns the key of a call: the same for every attempt at it.
func callKey(execution, step, call string) string { return execution + ":" + step + ":" + call }

// InRun reports whether the execution belongs to a run of the thread, and not to an effect. A run
// must not wait for another run of its thread.
func (x *Execution) InRun() bool { return x.turn != nil }

// Portable reports whether it belongs to a portable tool, which must not access values of the
// process.
func (x *Execution) Portable() bool { return x.spot.portable }

// Scratch returns the in-memory store of the execution. It is lost when the execution ends,
// another worker takes over, or the run waits.
func (x *Execution) Scratch() *sync.Map { return x.scratch }

// AgentID returns the agent currently in charge of the thread; empty if there is none.
func (x *Execution) AgentID() string { return x.known().agent }

// UserID returns the user of the thread; nil if there is none.
func (x *Execution) UserID() *string {
	if user := x.known().user; user != "" {
		return &user
	}
	return nil
}

// CreatedAt returns when the thread was created, in microseconds.
func (x *Execution) CreatedAt() int64 { return x.known().created }

// Seq returns the sequence of the run's last commit, which reads must show.
func (x *Execution) Seq() int64 { return x.known().seq }

func (x *Execution) known() known {
	if x.turn == nil {
		return x.thread
	}
	return x.turn.live.threadNow()
}

// Rights returns the rights of the run, or of the effect; nil: those of the tenant.
func (x *Execution) Rights() *events.Rights {
	if x.turn == nil {
		return x.thread.rights
	}
	return x.run().Rights
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

// FlowID returns the id of the execution or effect.
func (x *Execution) FlowID() string { return x.flow }

// CurrentSide returns the side whose turn it is: a, if there are no sides.
func (x *Execution) CurrentSide() events.Side {
	if side := x.run().Side; side != "" {
		return side
	}
	return events.SideA
}

// StepCount returns how many steps have called their reactor, including the current
// one.
func (x *Execution) StepCount() int64 { return x.run().Steps }

// SideAStepCount returns the number of steps of side a; all of them, if there are no sides.
func (x *Execution) SideAStepCount() int64 { return x.run().SideASteps }

// SideBStepCount returns the number of steps of side b.
func (x *Execution) SideBStepCount() int64 { return x.run().SideBSteps }

// Stopped reports whether the execution was stopped.
func (x *Execution) Stopped() bool { return x.halted.Load() || x.run().Stop }

// StoppedBy returns the side that stopped it; empty if no side did.
func (x *Execution) StoppedBy() events.Side { return x.run().StoppedBy }

// MessageHistory returns the messages in the run's context, silent ones included,
// oldest first. It is empty once the worker has released the run.
func (x *Execution) MessageHistory() []events.ThreadMessage {
	if x.turn == nil {
		return []events.ThreadMessage{}
	}
	return x.turn.live.messages(x.run().ContextID)
}

// AbortSignal returns a channel that is closed when current work must stop: the run was
// cancelled, its time is over, or its worker stops. The context of a call ends at the same
// time.
func (x *Execution) AbortSignal() <-chan struct{} { return x.ctx.Done() }

// Stop ends the execution after its current operation. It returns when that is durable;
// if it cannot be recorded, the process logs it.
func (x *Execution) Stop() {
	if x.turn == nil {
		x.halted.Store(true)
		return
	}
	if err := x.command("run.stop", events.StopRun{ExecutionID: x.flow, By: x.CurrentSide()}); err != nil {
		x.turn.logger.Warn().Err(err).Msg("cannot record that a run was stopped")
	}
}

// ForceTurn assigns the next turn to a side. The error is an invalid_request unless the
// agent is a dual_ai one.
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
	}, t.live.noteState(t.job.Execution))
	return err
}

// commandTime is the timeout of recording a command of a running call.
const commandTime = 10 * time.Second
