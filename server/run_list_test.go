package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// asking adds a reactor that makes two calls of a tool that requires an approval, and
// then one of another agent.
func asking(t *testing.T) func(*server.Config) {
	return func(c *server.Config) {
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			tool := must(runtime.DefineTool(runtime.ToolSpec{Name: "refund", Description: "Refunds.", Manual: true},
				func(context.Context, *runtime.ToolInput, struct{}) (string, error) { return "refunded", nil }))(t)
			return errors.Join(own(r), r.AddTool(tool), r.AddReactor("clerk", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
				out := &runtime.Reaction{}
				out.AssistantEvent.Content = []events.JSON{events.JSON(`{"type":"output_text","text":"I look."}`)}
				switch in.Iteration {
				case 0:
					out.ToolCalls = []runtime.ToolCall{{CallID: "c1", Name: "refund", Arguments: events.JSON(`{}`)}, {CallID: "c2", Name: "refund", Arguments: events.JSON(`{}`)}}
				case 1:
					out.ToolCalls = []runtime.ToolCall{{CallID: "c3", Name: "panel", Arguments: events.JSON(`{}`)}}
				}
				return out, nil
			})))
		}
	}
}

// The tenant's runs are listed with what each waits for, and its approvals with their
// answers, page by page, to this tenant only.
func TestRunList_WaitingFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t, asking(t))
	d.apply("tool", `{"name":"refund","description":"Refunds.","type":"go","auto":false}`,
		"agent", `{"name":"talkers","type":"dual_ai","sideA":{"reactor":"slow"},"sideB":{"reactor":"slow"}}`,
		"tool", `{"name":"panel","description":"Discusses.","type":"agent","agent":"talkers"}`,
		"agent", `{"name":"desk","type":"ai_human","reactor":"clerk","tools":["refund","panel"]}`,
		"agent", `{"name":"away","type":"ai_human","reactor":"nobody"}`)
	begin := func(agent string, kind events.RunWaitKind) *events.Reply {
		reply := d.react(d.thread(agent), events.ReactThread{Text: new("hello")})
		d.waits(reply, kind)
		return reply
	}
	first, second := begin("desk", events.RunWaitsApproval), begin("desk", events.RunWaitsApproval)
	away := begin("away", events.RunWaitsWorker)
	if w := d.waits(away, events.RunWaitsWorker); w.Worker != events.ReactorWorker || w.Name != "nobody" {
		t.Errorf("%+v", w)
	}

	// A scrape counts them by what they wait for.
	shows := func(want ...string) {
		t.Helper()
		text := scrape(t, d.http)
		for _, line := range want {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("the metrics do not show %s", line)
			}
		}
	}
	shows(`skein_runs_waiting{reason="approval"} 2`, `skein_runs_waiting{reason="worker"} 1`, `skein_runs_waiting{reason="thread"} 0`)

	// Pages of one: each of the four once.
	var got []string
	q := events.ListApprovals{Limit: new(int64(1))}
	for {
		page := must(client.Read(d.ctx, d.c, q))(t)
		for _, one := range page.Approvals {
			if one.Status != events.ApprovalWaiting || one.Reason != events.ApprovalManual || one.Name != "refund" || one.AgentID != "desk" || string(one.Arguments) != `{}` {
				t.Errorf("%+v", one)
			}
			got = append(got, one.ThreadID+" "+one.CallID)
		}
		if len(page.Approvals) > 1 {
			t.Fatalf("%d on a page of one", len(page.Approvals))
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	want := []string{second.ThreadID + " c2", second.ThreadID + " c1", first.ThreadID + " c2", first.ThreadID + " c1"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if list := must(client.Read(d.ctx, d.c, events.ListRuns{AgentID: "away", Status: events.Executing}))(t); len(list.Runs) != 1 || list.Runs[0].ThreadID != away.ThreadID {
		t.Errorf("%+v", list)
	}

	// Other fields are another list, and an invalid cursor is refused.
	page := must(client.Read(d.ctx, d.c, events.ListApprovals{Limit: new(int64(1))}))(t)
	for _, cursor := range []string{page.NextCursor, "x", page.NextCursor + "9999999999999", ".0"} {
		if _, err := client.Read(d.ctx, d.c, events.ListApprovals{AgentID: "desk", Cursor: cursor}); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("%q: %v", cursor, err)
		}
	}
	other := must(client.Connect(d.url, client.Options{Tenant: "other", Timeout: 5 * time.Minute}))(t)
	defer other.Close()
	if list := must(client.Read(d.ctx, other, events.ListRuns{}))(t); len(list.Runs) != 0 {
		t.Errorf("another tenant sees %+v", list)
	}

	// Answered ones are not listed as waiting, and the run continues with the other
	// agent.
	must(d.c.Send(d.ctx, first.ThreadID, events.ResolveApproval{CallID: "c1", Result: events.JSON(`1`)}))(t)
	must(d.c.Send(d.ctx, first.ThreadID, events.ResolveApproval{CallID: "c2", Deny: true}))(t)
	if w := d.waits(first, events.RunWaitsThread); w.CallID != "c3" {
		t.Errorf("%+v", w)
	}
	shows(`skein_runs_waiting{reason="approval"} 1`, `skein_runs_waiting{reason="worker"} 1`, `skein_runs_waiting{reason="thread"} 1`)
	stopped := must(d.c.Send(d.ctx, second.ThreadID, events.CancelRun{}))(t)
	for status, want := range map[events.ApprovalStatus]string{
		events.ApprovalWaiting: "", events.ApprovalResult: first.ThreadID + " c1,", events.ApprovalDenial: first.ThreadID + " c2,", events.ApprovalGrant: "",
		events.ApprovalWithdrawn: second.ThreadID + " c2," + second.ThreadID + " c1,",
	} {
		is := ""
		for _, one := range must(client.Read(d.ctx, d.c, events.ListApprovals{Status: status, Fresh: events.Fresh{MinSeq: seqOf(stopped)}}))(t).Approvals {
			is += fmt.Sprintf("%s %s,", one.ThreadID, one.CallID)
			if one.AnsweredAt == "" || one.Arguments != nil {
				t.Errorf("%+v", one)
			}
		}
		if is != want {
			t.Errorf("%s: %q, not %q", status, is, want)
		}
	}
	shows(`skein_runs_waiting{reason="approval"} 0`)
	if doc := must(client.Read(d.ctx, d.c.WithMinSeq(stopped.Seq), events.GetThread{ThreadID: second.ThreadID}))(t); doc.Run != nil {
		t.Errorf("a thread whose run was cancelled shows %+v", doc.Run)
	}
	failed := must(client.Read(d.ctx, d.c, events.ListRuns{Status: events.ExecutionFailed}))(t)
	if len(failed.Runs) != 1 || failed.Runs[0].ExecutionID != second.Result.ExecutionID || len(failed.Runs[0].WaitingFor) != 0 {
		t.Errorf("%+v", failed)
	}
}

// waits waits until a run is listed as waiting for something of a kind.
func (d *desk) waits(reply *events.Reply, kind events.RunWaitKind) events.RunWait {
	d.t.Helper()
	for now := range d.versions(reply) {
		list := must(client.Read(d.ctx, d.c, events.ListRuns{Status: events.Executing, Fresh: events.Fresh{MinSeq: &now}}))(d.t)
		for _, r := range list.Runs {
			if i := slices.IndexFunc(r.WaitingFor, func(w events.RunWait) bool { return w.Kind == kind }); r.ExecutionID == reply.Result.ExecutionID && i >= 0 {
				return r.WaitingFor[i]
			}
		}
	}
	d.t.Fatalf("it never waited for a %s", kind)
	return events.RunWait{}
}

// versions tells of each event of a run's thread, by its sequence.
func (d *desk) versions(reply *events.Reply) func(func(int64) bool) {
	return func(yield func(int64) bool) {
		line := must(d.c.Timeline(d.ctx, client.SubscribeOptions{Thread: reply.ThreadID}))(d.t)
		defer line.Close()
		for e, err := range line.All(d.ctx) {
			if err != nil {
				d.t.Fatal(err)
			}
			if !yield(e.Seq) {
				return
			}
		}
	}
}
