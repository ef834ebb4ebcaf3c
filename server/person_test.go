package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// asker adds a reactor that makes one call, named by its input, and then answers with
// the result of the call.
func asker(dir string) func(*server.Config) {
	return func(c *server.Config) {
		c.Store, c.Volatile = dir, false
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			return errors.Join(own(r), r.AddReactor("clerk", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
				out := &runtime.Reaction{}
				text := "I ask."
				last := string(in.Items[len(in.Items)-1].Content)
				if in.Iteration == 0 {
					said := string(in.Items[0].Content)
					name, arguments, _ := strings.Cut(said[strings.Index(said, `"text":"`)+8:len(said)-3], " ")
					out.ToolCalls = []runtime.ToolCall{{CallID: "c1", Name: name, Arguments: events.JSON(strings.ReplaceAll(arguments, `\"`, `"`))}}
				} else {
					text = "It came to " + last
				}
				quoted, err := jsontext.AppendQuote(nil, text)
				out.AssistantEvent.Content = []events.JSON{events.JSON(`{"type":"output_text","text":` + string(quoted) + `}`)}
				return out, err
			})))
		}
	}
}

// A tool of type person asks; the run waits, without a worker, also over a restart; an
// answer that does not fit is refused with its path, and the one that fits is the
// result of the call.
func TestPerson_AnswerIsTheResult(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := newDesk(t, asker(dir))
	d.apply("tool", `{"name":"refund_ok","description":"Asks how much may be refunded.","type":"person","question":"How much of order {{order}} is refunded?",
			"parameters":{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]},
			"answer":{"type":"object","properties":{"eur":{"$ref":"#/$defs/eur"}},"required":["eur"],"$defs":{"eur":{"type":"integer","minimum":1}}}}`,
		"tool", `{"name":"ask","description":"Asks a person anything.","type":"person"}`,
		"agent", `{"name":"desk","type":"ai_human","reactor":"clerk","tools":["refund_ok","ask"]}`)
	reply := d.react(d.thread("desk"), events.ReactThread{Text: new(`refund_ok {"order":"o-1"}`)})
	told, _ := d.watch(reply)
	w := d.until(told, func(w client.Waiting) bool { return len(w.Approvals) == 1 })
	if one := w.Approvals[0]; one.Question != "How much of order o-1 is refunded?" || one.Reason != events.ApprovalQuestion {
		t.Errorf("the waiting client is told %+v", one)
	}
	d.waits(reply, events.RunWaitsApproval)
	d.stop()

	d = newDesk(t, asker(dir))
	list := must(client.Read(d.ctx, d.c, events.ListApprovals{}))(t)
	if len(list.Approvals) != 1 || list.Approvals[0].Question != "How much of order o-1 is refunded?" || !strings.Contains(string(list.Approvals[0].Answer), `"minimum":1`) ||
		list.Approvals[0].Reason != events.ApprovalQuestion {
		t.Errorf("%+v", list.Approvals)
	}
	for name, wrong := range map[string]struct {
		answer events.ResolveApproval
		path   string
		says   string
	}{
		"an answer that does not fit": {events.ResolveApproval{CallID: "c1", Result: events.JSON(`{"eur":0}`)}, "/data/result", "/eur: "},
		"an answer of another kind":   {events.ResolveApproval{CallID: "c1", Result: events.JSON(`5`)}, "/data/result", "object"},
		"a grant":                     {events.ResolveApproval{CallID: "c1", Grant: true}, "/data/callId", "is a question"},
	} {
		_, err := d.c.Send(d.ctx, reply.ThreadID, wrong.answer)
		if e := events.AsError(err); err == nil || e.Code != events.InvalidRequest || e.Details == nil || e.Details.Path != wrong.path || !strings.Contains(e.Message, wrong.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(d.c.Send(d.ctx, reply.ThreadID, events.ResolveApproval{CallID: "c1", Result: events.JSON(`{"eur":5}`)}))(t)
	if text := d.said(reply); !strings.Contains(text, `{"eur":5}`) && !strings.Contains(text, `\"eur\":5`) {
		t.Errorf("the model was shown: %s", text)
	}

	// Without a question of its own, the tool asks the model's question, and accepts
	// any JSON; a refusal is an error that the model is shown; a call with invalid
	// arguments asks no question.
	for text, answer := range map[string]events.ResolveApproval{
		`ask {"question":"Which colour?"}`: {CallID: "c1", Result: events.JSON(`"blue"`)},
		`ask {"question":"Which size?"}`:   {CallID: "c1", Deny: true, Reason: "blue is no size"},
		`ask {"size":1}`:                   {},
	} {
		reply := d.react(d.thread("desk"), events.ReactThread{Text: &text})
		want := "blue"
		if answer.CallID == "" {
			want = "do not fit"
		} else {
			d.waits(reply, events.RunWaitsApproval)
			must(d.c.Send(d.ctx, reply.ThreadID, answer))(t)
		}
		if got := d.said(reply); !strings.Contains(got, want) {
			t.Errorf("%s: the model was shown %s", text, got)
		}
	}
	for _, wrong := range []string{
		`{"name":"a","description":"x","type":"person","auto":false}`, `{"name":"a","description":"x","type":"person","timeoutMs":5}`, `{"name":"a","description":"x","type":"nats","question":"Why?"}`,
		`{"name":"a","description":"x","type":"person","answer":{"type":"nothing"}}`, `{"name":"a","description":"x","type":"person","answer":{"$ref":"https://x.example"}}`,
		`{"name":"a","description":"x","type":"person","parameters":{"type":"object"}}`, `{"name":"a","description":"x","type":"go","answer":{}}`,
	} {
		if _, err := d.c.Send(d.ctx, "", events.ApplyDefinitions{Definitions: []events.NewDefinition{{Kind: events.ToolKind, Definition: events.JSON(wrong)}}}); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// said waits for a run's end, and returns the content of its answer.
func (d *desk) said(reply *events.Reply) string {
	d.t.Helper()
	seq := reply.Seq
	x := must(d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &seq}}))(d.t)
	now := x.Seq
	return string(must(client.Read(d.ctx, d.c, events.GetItem{ThreadID: reply.ThreadID, ItemID: x.ReactionItemID, Fresh: events.Fresh{MinSeq: &now}}))(d.t).Content)
}
