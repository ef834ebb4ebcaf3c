package serve_test

import (
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/serve"
)

// A run whose reactor no process serves releases its place while it waits: with one
// place, others run meanwhile. It continues when a process serves the reactor, and
// fails when its time is over, counted from the start of the wait.
func TestPark_AbsentReactorHoldsNoPlace(t *testing.T) {
	d := newDesk(t, func(c *serve.Config) { c.Workers = 1 })
	d.apply("agent", `{"name":"loud","type":"ai_human","reactor":"shout"}`,
		"agent", `{"name":"brief","type":"ai_human","reactor":"nobody","limits":{"workerWaitMs":5000}}`)
	parked := func(reply *events.Reply) {
		t.Helper()
		for now := range d.versions(reply) {
			if doc := must(d.c.WithMinSeq(int64(now)).GetThread(d.ctx, events.GetThread{ThreadID: reply.ThreadID}))(t); doc.Run != nil && doc.Run.Parked {
				return
			}
		}
	}
	first := d.react(d.thread("loud"), events.ReactThread{Text: new("hello")})
	parked(first)
	second := d.react(d.thread("loud"), events.ReactThread{Text: new("hello")})
	parked(second)
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

// ends waits for a run's end.
func (d *desk) ends(reply *events.Reply) *events.Execution {
	d.t.Helper()
	seq := reply.Seq
	return must(d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &seq}}))(d.t)
}
