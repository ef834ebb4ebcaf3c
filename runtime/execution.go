package runtime

import (
	"context"
	"maps"
	"sync"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Scratch is the store of one execution (SA-16, SA-91..SA-93): what one tool
// puts there a later one of the same execution finds. It is memory: it ends with
// the execution, and does not follow it to another worker.
type Scratch struct {
	mu     sync.Mutex
	values map[string]any
}

// Get gives a value.
func (s *Scratch) Get(key string) (any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[key]
	return v, ok
}

// Set puts a value.
func (s *Scratch) Set(key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string]any{}
	}
	s.values[key] = value
}

// All gives a copy of what is there.
func (s *Scratch) All() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}

// Execution is the execution under way as tools and hooks see it (SA-137..SA-149).
// It shows the run as it was when it was asked for; all of it is read-only.
type Execution struct {
	FlowID         string          // the execution's id (SA-137)
	CurrentSide    events.Side     // of a dual_ai agent (SA-138)
	StepCount      int64           // SA-139
	SideAStepCount int64           // SA-140
	SideBStepCount int64           // SA-141
	Stopped        bool            // SA-142
	StoppedBy      events.Side     // SA-143
	History        []events.Item   // what the model was shown (SA-144)
	Scratch        *Scratch        // SA-16
	AbortSignal    context.Context // ends when the run is cancelled (SA-145, SA-149)
	turn           *turn
}

// state gives the thread as a tool of the turn sees it.
func (w *Worker) state(t *turn) ThreadState {
	x := Execution{
		FlowID: t.job.Execution, CurrentSide: t.run.Side, StepCount: t.run.Iteration + 1, SideAStepCount: t.run.SideASteps,
		SideBStepCount: t.run.SideBSteps, Stopped: t.run.Stop, StoppedBy: t.run.StoppedBy,
		History: t.talk.shown(t.run.ContextID, t.run.Side, t.agent.MaxItems), Scratch: t.scratch, AbortSignal: t.ctx, turn: t,
	}
	return w.cfg.State(t.job.Tenant, t.job.Thread, x)
}

// Stop ends the execution after what it does now (SA-148).
func (x Execution) Stop(ctx context.Context) error {
	return x.command(ctx, "run.stop", events.StopRun{ExecutionID: x.FlowID, By: x.CurrentSide})
}

// ForceTurn gives the next turn to a side (SA-147). The error is an
// invalid_request unless the agent is a dual_ai one.
func (x Execution) ForceTurn(ctx context.Context, side events.Side) error {
	return x.command(ctx, "run.turn", events.TurnRun{ExecutionID: x.FlowID, Side: side})
}

func (x Execution) command(ctx context.Context, name string, data any) error {
	t := x.turn
	_, err := t.w.commands.Run(ctx, &thread.Command{
		ID: t.w.newID(), Tenant: t.job.Tenant, ThreadID: t.job.Thread, Actor: "skein:" + t.w.name,
		Parts: []thread.Part{{Name: name, Data: data}},
	}, nil)
	return err
}
