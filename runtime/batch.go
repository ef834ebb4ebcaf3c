package runtime

import (
	"context"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/service"
)

// callBatch holds the calls of the open step that this claim begins.
type callBatch struct {
	stepCalls
	side *Side // the side with the tools of the calls
	open []thread.Call
	hold thread.HoldCalls // the calls that wait for people or other threads
	done chan callOutcome // buffered for one outcome of each call
}

// begin begins a call, unless it is done or waits.
func (b *callBatch) begin(ctx context.Context, c thread.Call) error {
	switch {
	case c.Done || c.Waits:
		return nil
	case c.Ended:
		e, err := b.delegation().endedCall(ctx, c)
		if err != nil {
			return err
		}
		b.done <- e
		b.open = append(b.open, c)
		return nil
	case c.Solved:
		b.settle(c, bounded(Done(b.talk.Solved[c.CallID])))
		return nil
	case c.Denied:
		b.settle(c, Failed(events.Denial(b.talk.Denied[c.CallID])))
		return nil
	case b.run.Stop: // a stopped run makes no other call
		return nil
	}
	tool, err := b.tool(ctx, b.side, c.Name)
	if err != nil {
		b.settle(c, Failed(events.AsError(err).Message))
		return nil
	}
	if refused := b.locked(b.side, c.Name); refused != nil {
		b.settle(c, *refused)
		return nil
	}
	switch tool := tool.(type) {
	case AgentTool:
		return b.callAgent(ctx, c, tool)
	case PersonTool:
		if asks, result := b.askPerson(c, tool); result == nil {
			b.hold.Approve = append(b.hold.Approve, asks)
		} else {
			b.settle(c, *result)
		}
		return nil
	}
	b.callTool(c, tool)
	return nil
}

// settle ends a call that already has a result.
func (b *callBatch) settle(c thread.Call, result ToolResult) {
	b.done <- b.streamOutcome(b.run.StepID, callOutcome{call: c, result: result, started: time.Now()})
	b.open = append(b.open, c)
}

// requestApproval makes a call wait for approval, unless its arguments are invalid.
func (b *callBatch) requestApproval(c thread.Call, spec ToolSpec, reason events.ApprovalReason) {
	asks, failed := b.asks(c, spec, reason)
	if failed == nil {
		b.hold.Approve = append(b.hold.Approve, asks)
		return
	}
	b.settle(c, *failed)
}

// callAgent begins a call of another agent.
func (b *callBatch) callAgent(ctx context.Context, c thread.Call, agent AgentTool) error {
	if spec := agent.Spec(); spec.Manual && !c.Granted { // a caller has queued it
		spec.Parameters = nil // the parameters are for the model: a caller may send any object
		b.requestApproval(c, spec, events.ApprovalManual)
		return nil
	}
	waits, err := b.delegation().callAgent(ctx, c, agent, b.done)
	if err != nil {
		return err
	}
	if waits {
		b.hold.Wait = append(b.hold.Wait, c.CallID)
	} else {
		b.open = append(b.open, c)
	}
	return nil
}

// callTool begins a call of any other tool, or asks a person first.
func (b *callBatch) callTool(c thread.Call, tool Tool) {
	spec := tool.Spec()
	unmade := c.Fresh || b.fresh && !c.Granted // no earlier claim can have made it
	if spec.Manual && !c.Granted || !unmade && !spec.Idempotent && !spec.ReadOnly {
		reason := events.ApprovalManual
		if !unmade && !spec.Idempotent && !spec.ReadOnly {
			reason = events.ApprovalMayHaveRun
		}
		b.requestApproval(c, spec, reason)
		return
	}
	b.open = append(b.open, c)
	asked := b.arguments(c)
	in, at := b.toolInput(c, asked), b.execution(c.CallID, !spec.NotPortable, 0)
	go func() {
		service.GrowStack()
		e := b.makeCall(c, tool, in, at)
		if e.asked = asked; !e.unmade {
			e = b.streamOutcome(in.StepID, e)
		}
		b.done <- e
	}()
}

// toApprove returns the ids of the calls that need an approval before they are made.
func (t stepCalls) toApprove(side *Side, calls []events.ToolCall) (ids []string) {
	for _, c := range calls {
		tool := side.tool(c.Name)
		if tool == nil || !tool.Spec().Manual || t.locked(side, c.Name) != nil || !t.permitted(c.Name) {
			continue
		}
		if t.invalidArguments(tool.Spec(), &ToolInput{Arguments: c.Arguments}) == nil { // calls with invalid arguments fail without an approval
			ids = append(ids, c.CallID)
		}
	}
	return ids
}
