package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// writing adds a reactor that streams a text and continues until it is interrupted.
func writing(c *server.Config) {
	own := c.Register
	c.Register = func(r *runtime.Registry) error {
		return errors.Join(own(r), r.AddReactor("writer", runtime.ReactorFunc(func(ctx context.Context, _ *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
			for _, delta := range []string{"Once upon ", "a time"} {
				out.Chunk(runtime.Chunk{Type: runtime.ChunkTextDelta, Data: events.JSON(`{"id":"itm_1","delta":"` + delta + `"}`)})
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})))
	}
}

// C-49: a run that is cancelled, or stopped now, keeps its streamed text, marked as
// interrupted; with discard it does not. Neither waits for the model.
func TestInterrupt_KeepsWhatWasStreamed(t *testing.T) {
	t.Parallel()
	d := newDesk(t, writing)
	for name, c := range map[string]struct {
		end    func(thread string) error
		status events.ExecutionStatus
		kept   bool
	}{
		"cancel":  {func(id string) error { return second(d.c.Send(d.ctx, id, events.CancelRun{})) }, events.ExecutionFailed, true},
		"discard": {func(id string) error { return second(d.c.Send(d.ctx, id, events.CancelRun{Discard: true})) }, events.ExecutionFailed, false},
		"now":     {func(id string) error { return second(d.c.Send(d.ctx, id, events.StopRun{Now: true})) }, events.ExecutionCompleted, true},
	} {
		t.Run(name, func(t *testing.T) {
			thread := d.thread("writer")
			reply := d.react(thread, events.ReactThread{Text: new("tell me a story")})
			for chunk, err := range d.c.Chunks(d.ctx, thread, reply.Result.ExecutionID) {
				if err != nil {
					t.Fatal(err)
				}
				if chunk.Type == events.ChunkTextDelta && strings.Contains(string(chunk.Data), "a time") {
					break
				}
			}
			if err := c.end(thread); err != nil {
				t.Fatal(err)
			}
			x := must(d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: thread, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: seqOf(reply)}}))(t)
			seq := x.Seq
			item := must(client.Read(d.ctx, d.c, events.GetItem{ThreadID: thread, ItemID: x.ReactionItemID, Fresh: events.Fresh{MinSeq: &seq}}))(t)
			kept := strings.Contains(string(item.Content), `"Once upon a time"`) && strings.Contains(string(item.Content), `"interrupted":true`)
			if x.Status != c.status || kept != c.kept || !c.kept && strings.Contains(string(item.Content), "Once") {
				t.Errorf("it ended %s with %s", x.Status, item.Content)
			}
		})
	}
}

// The streamed text of a failed attempt is not part of that of the next one.
func TestInterrupt_KeepsTheLastAttemptOnly(t *testing.T) {
	t.Parallel()
	attempts := 0
	d := newDesk(t, func(c *server.Config) {
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			return errors.Join(own(r), r.AddReactor("writer", runtime.ReactorFunc(func(ctx context.Context, _ *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
				attempts++
				if attempts == 1 {
					out.Chunk(runtime.Chunk{Type: runtime.ChunkTextDelta, Data: events.JSON(`{"id":"itm_1","delta":"It was a dark "}`)})
					return nil, &runtime.RetryError{Err: errors.New("overloaded")}
				}
				out.Chunk(runtime.Chunk{Type: runtime.ChunkTextDelta, Data: events.JSON(`{"id":"itm_1","delta":"Once upon a time"}`)})
				<-ctx.Done()
				return nil, ctx.Err()
			})))
		}
	})
	thread := d.thread("writer")
	reply := d.react(thread, events.ReactThread{Text: new("tell me a story")})
	for chunk, err := range d.c.Chunks(d.ctx, thread, reply.Result.ExecutionID) {
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Type == events.ChunkTextDelta && strings.Contains(string(chunk.Data), "a time") {
			break
		}
	}
	must(d.c.Send(d.ctx, thread, events.CancelRun{}))(t)
	x := must(d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: thread, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: seqOf(reply)}}))(t)
	seq := x.Seq
	item := must(client.Read(d.ctx, d.c, events.GetItem{ThreadID: thread, ItemID: x.ReactionItemID, Fresh: events.Fresh{MinSeq: &seq}}))(t)
	if got := string(item.Content); !strings.Contains(got, `"Once upon a time"`) || strings.Contains(got, "dark") {
		t.Errorf("it kept %s", got)
	}
}

// C-50: a request for an approval has a reason, and a person may answer it with a
// result: the tool is not called.
func TestApproval_ResolvedWithAResult(t *testing.T) {
	t.Parallel()
	calls := 0
	d := newDesk(t, func(c *server.Config) {
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			tool := must(runtime.DefineTool(runtime.ToolSpec{Name: "refund", Description: "Refunds.", Manual: true},
				func(context.Context, *runtime.ToolInput, struct{}) (string, error) { calls++; return "refunded", nil }))(t)
			return errors.Join(own(r), r.AddTool(tool), r.AddReactor("clerk", transcript.Fixed(
				transcript.Text("I look.", runtime.ToolCall{CallID: "c1", Name: "refund", Arguments: events.JSON(`{}`)}), transcript.Text("done"),
			)))
		}
	})
	d.apply("tool", `{"name":"refund","description":"Refunds.","type":"go","auto":false}`, "agent", `{"name":"desk","type":"ai_human","reactor":"clerk","tools":["refund"]}`)
	reply := d.react(d.thread("desk"), events.ReactThread{Text: new("hello")})
	told, ended := d.watch(reply)
	w := d.until(told, func(w client.Waiting) bool { return len(w.Approvals) == 1 })
	if a := w.Approvals[0]; a.CallID != "c1" || a.Name != "refund" || a.Reason != events.ApprovalManual {
		t.Errorf("%+v", a)
	}
	for _, bad := range []events.ResolveApproval{
		{CallID: "c1"}, {CallID: "c1", Grant: true, Deny: true}, {CallID: "c1", Deny: true, Result: events.JSON(`1`)},
		{CallID: "c1", Deny: true, Arguments: events.JSON(`{}`)},
	} {
		if err := second(d.c.Send(d.ctx, reply.ThreadID, bad)); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	must(d.c.Send(d.ctx, reply.ThreadID, events.ResolveApproval{CallID: "c1", Result: events.JSON(`{"done":"by hand"}`)}))(t)
	x, err := ended()
	if err != nil || x.Status != events.ExecutionCompleted || calls != 0 {
		t.Fatalf("%+v, %v, after %d calls", x, err, calls)
	}
	seq := x.Seq
	list := must(client.Read(d.ctx, d.c, events.ListItems{ThreadID: reply.ThreadID, Type: events.ActionResult, Fresh: events.Fresh{MinSeq: &seq}}))(t)
	if len(list.Items) != 1 || !strings.Contains(string(list.Items[0].Content), "by hand") {
		t.Errorf("%+v", list)
	}
	if err := second(d.c.Send(d.ctx, reply.ThreadID, events.ResolveApproval{CallID: "c1", Grant: true})); !events.HasCode(err, events.IllegalTransition) {
		t.Errorf("another answer: %v", err)
	}
	must(d.c.Send(d.ctx, reply.ThreadID, events.ResolveApproval{CallID: "c1", Result: events.JSON(`{"done": "by hand"}`)}))(t) // the same again
}

// A client that starts to watch a waiting run is told immediately of every approval
// that it waits for, however long ago it was requested.
func TestWatchRun_ApprovalAskedForBefore(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *server.Config) {
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			tool := must(runtime.DefineTool(runtime.ToolSpec{Name: "refund", Description: "Refunds.", Manual: true},
				func(context.Context, *runtime.ToolInput, struct{}) (string, error) { return "refunded", nil }))(t)
			return errors.Join(own(r), r.AddTool(tool), r.AddReactor("clerk", transcript.Fixed(transcript.Text("I look.",
				runtime.ToolCall{CallID: "c1", Name: "refund", Arguments: events.JSON(`{}`)}, runtime.ToolCall{CallID: "c2", Name: "refund", Arguments: events.JSON(`{}`)},
			), transcript.Text("done"))))
		}
	})
	d.apply("tool", `{"name":"refund","description":"Refunds.","type":"go","auto":false}`, "agent", `{"name":"desk","type":"ai_human","reactor":"clerk","tools":["refund"]}`)
	reply := d.react(d.thread("desk"), events.ReactThread{Text: new("hello")})
	told, ended := d.watch(reply)
	d.until(told, func(w client.Waiting) bool { return len(w.Approvals) == 2 })
	must(d.c.Send(d.ctx, reply.ThreadID, events.GrantApproval{CallID: "c1"}))(t)
	for now := range d.versions(reply) { // until the run waits again, and its document has advanced
		x := must(client.Read(d.ctx, d.c.WithMinSeq(int64(now)), events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID}))(t)
		if len(x.Waiting) == 1 && x.Waiting[0] == "c2" {
			break
		}
	}
	late, _ := d.watch(reply)
	if w := <-late; len(w.Approvals) != 1 || w.Approvals[0].CallID != "c2" || w.Approvals[0].Name != "refund" || w.Approvals[0].Reason != events.ApprovalManual {
		t.Errorf("%+v", w)
	}
	must(d.c.Send(d.ctx, reply.ThreadID, events.GrantApproval{CallID: "c2"}))(t)
	if x, err := ended(); err != nil || x.Status != events.ExecutionCompleted {
		t.Errorf("%+v, %v", x, err)
	}
}
