package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// A run whose reactor no process serves releases its place while it waits: with one
// place, others run meanwhile. It continues when a process serves the reactor, and
// fails when its time is over, counted from the start of the wait.
func TestPark_AbsentReactorHoldsNoPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *server.Config) { c.Workers = 1 })
	d.apply("agent", `{"name":"loud","type":"ai_human","reactor":"shout"}`,
		"agent", `{"name":"brief","type":"ai_human","reactor":"nobody","limits":{"workerWaitMs":5000}}`)
	first := d.react(d.thread("loud"), events.ReactThread{Text: new("hello")})
	d.parks(first)
	second := d.react(d.thread("loud"), events.ReactThread{Text: new("hello")})
	d.parks(second)
	hasty := d.react(d.thread("brief"), events.ReactThread{Text: new("hello")})
	other := d.react(d.thread("slow"), events.ReactThread{Text: new("hello")})
	d.answer <- "done"
	if x := d.ends(other); x.Status != events.ExecutionCompleted {
		t.Errorf("the other run ended %s: %s", x.Status, x.ErrorText)
	}
	if x := d.ends(hasty); x.Status != events.ExecutionFailed {
		t.Errorf("the run whose time was over ended %s", x.Status)
	}
	told, _ := d.watch(second)
	d.until(told, func(w client.Waiting) bool { return len(w.Workers) == 1 && w.Workers[0].Name == "shout" })
	defer d.shout("shout")()
	for _, reply := range []*events.Reply{first, second} {
		if x := d.ends(reply); x.Status != events.ExecutionCompleted {
			t.Errorf("a run that was parked ended %s: %s", x.Status, x.ErrorText)
		}
	}
}

// A run whose remaining calls wait for a tool that no process serves releases its place, too.
// The call is made once, without asking a person, when a process serves the tool; it fails when
// its time is over, counted from the start of the wait.
func TestPark_AbsentToolHoldsNoPlace(t *testing.T) {
	t.Parallel()
	call := transcript.Text("I look.", runtime.ToolCall{CallID: "c1", Name: "refund", Arguments: events.JSON(`{}`)})
	short := transcript.Text("I look.", runtime.ToolCall{CallID: "c1", Name: "hasty", Arguments: events.JSON(`{}`)})
	d := newDesk(t, func(c *server.Config) {
		c.Workers = 1
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			return errors.Join(own(r), r.AddReactor("clerk", transcript.Fixed(call, transcript.Text("done"))), r.AddReactor("brief", transcript.Fixed(short, transcript.Text("done"))))
		}
	})
	d.apply("tool", `{"name":"refund","description":"Refunds.","type":"nats"}`, "tool", `{"name":"hasty","description":"Nobody.","type":"nats","workerWaitMs":5000}`,
		"agent", `{"name":"desk","type":"ai_human","reactor":"clerk","tools":["refund"]}`, "agent", `{"name":"quick","type":"ai_human","reactor":"brief","tools":["hasty"]}`)
	first := d.react(d.thread("desk"), events.ReactThread{Text: new("hello")})
	d.parks(first)
	hasty := d.react(d.thread("quick"), events.ReactThread{Text: new("hello")})
	d.parks(hasty)
	other := d.react(d.thread("slow"), events.ReactThread{Text: new("hello")})
	d.answer <- "done"
	if x := d.ends(other); x.Status != events.ExecutionCompleted {
		t.Errorf("the other run ended %s: %s", x.Status, x.ErrorText)
	}
	if x := d.ends(hasty); x.Status != events.ExecutionCompleted {
		t.Errorf("the run whose call's time was over ended %s: %s", x.Status, x.ErrorText)
	}
	items := must(client.Read(d.ctx, must(d.c.UpToDate(d.ctx))(t), events.ListItems{ThreadID: hasty.ThreadID, Type: events.ActionResult}))(t)
	if len(items.Items) != 1 || !strings.Contains(string(items.Items[0].Content), "no process served the tool hasty for") {
		t.Errorf("the call whose time was over: %+v", items.Items)
	}
	nc := natstest.Dial(t, d.url)
	defer nc.Close()
	var calls atomic.Int32
	tool := must(runtime.DefineTool(runtime.ToolSpec{Name: "refund", Description: "Refunds."},
		func(context.Context, *runtime.ToolInput, struct{}) (string, error) {
			calls.Add(1)
			return "refunded", nil
		}))(t)
	must(remote.ServeTool(nc, events.DefaultNames(), tool))(t)
	if x := d.ends(first); x.Status != events.ExecutionCompleted || calls.Load() != 1 {
		t.Errorf("the run that was parked ended %s after %d calls: %s", x.Status, calls.Load(), x.ErrorText)
	}
}

// parks waits until a run is parked.
func (d *desk) parks(reply *events.Reply) {
	d.t.Helper()
	for now := range d.versions(reply) {
		if doc := must(client.Read(d.ctx, d.c.WithMinSeq(now), events.GetThread{ThreadID: reply.ThreadID}))(d.t); doc.Run != nil && doc.Run.Parked {
			return
		} else if x, err := client.Read(d.ctx, d.c, events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID}); err == nil && x.Status != events.Executing {
			d.t.Fatalf("it ended %s, and did not wait: %s", x.Status, x.ErrorText)
		}
	}
}

// ends waits for a run's end.
func (d *desk) ends(reply *events.Reply) *events.Execution {
	d.t.Helper()
	seq := reply.Seq
	return must(d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &seq}}))(d.t)
}
