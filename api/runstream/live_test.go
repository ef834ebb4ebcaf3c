package runstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
	"github.com/skein-threads/skein/skeintest"
)

// worker starts a server with an agent that answers, refunds with an approval, looks up twice, breaks off
// or fails, as it is told.
func worker(t *testing.T) (*skeintest.Server, *client.Client) {
	t.Helper()
	s := skeintest.Start(t)
	call := func(in *skein.StepInput, tool string) *skein.Reaction {
		r := skein.Answer("let me see")
		id := in.StepID[len(in.StepID)-12:]
		r.ToolCalls = []skein.ToolCall{{CallID: id, Name: tool, Arguments: []byte(`{"n":1}`)}}
		r.AssistantEvent.Content = append(r.AssistantEvent.Content, events.JSON(`{"type":"tool-`+tool+`","toolCallId":"`+id+`","input":{"n":1}}`))
		return r
	}
	s.Must(s.Reactor("worker", func(_ context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		switch said := in.LastText(events.User); {
		case said == "refund" && in.Iteration == 0:
			return call(in, "refund"), nil
		case said == "check" && in.Iteration == 0:
			return call(in, "check"), nil
		case said == "look up" && in.Iteration < 2:
			return call(in, "lookup"), nil
		case said == "fail":
			return nil, errors.New("the model is gone")
		case said == "again" && in.Attempt == 1:
			return nil, &skein.RetryError{Err: errors.New("it broke off"), After: time.Millisecond}
		}
		for _, piece := range []string{"do", "ne"} {
			data, err := events.DeltaData(events.ChunkTextDelta, events.Delta{Key: "t", Text: piece})
			if err != nil {
				return nil, err
			}
			out.Chunk(skein.Chunk{Type: events.ChunkTextDelta, Data: data})
		}
		r := skein.Answer("done")
		r.Usage = &events.Usage{InputTokens: 3, OutputTokens: 2}
		return r, nil
	}))
	s.Must(s.Tool(skein.NewTool("refund", found, skein.Description("Refunds."), skein.Manual())))
	s.Must(s.Tool(skein.NewTool("lookup", found, skein.Description("Looks up."))))
	c := s.Client("acme")
	d := events.ApplyDefinitions{}
	for kind, list := range map[events.DefinitionKind][]string{
		events.ToolKind:  {`{"name":"refund","description":"Refunds.","type":"go","auto":false}`, `{"name":"lookup","description":"Looks up.","type":"go"}`, `{"name":"check","description":"Checks.","type":"go"}`},
		events.AgentKind: {`{"name":"worker","description":"Works.","type":"ai_human","reactor":"worker","tools":["refund","lookup","check"]}`},
	} {
		for _, text := range list {
			d.Definitions = append(d.Definitions, events.NewDefinition{Kind: kind, Definition: events.JSON(text)})
		}
	}
	_, err := c.Send(t.Context(), "", d)
	s.Must(err)
	return s, c
}

// found is a tool.
func found(context.Context, struct {
	N int `json:"n"`
}) (string, error) {
	return "found", nil
}

// begin begins a run on a new thread, with a command of an id, and returns how it is followed.
func begin(t *testing.T, s *skeintest.Server, c *client.Client, id, text string) (*events.Execution, *events.Reply, *runstream.Live) {
	t.Helper()
	thread := events.DeriveThreadID("acme", id)
	item := events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"` + text + `"}]`)}
	create, err := client.Sub("thread.create", events.CreateThread{})
	s.Must(err)
	react, err := client.Sub("thread.react", events.ReactThread{Item: &item, AgentID: "worker", Policy: events.Enqueue, ExecutionID: "exe_one"})
	s.Must(err)
	live := runstream.Ahead(t.Context(), c, thread)
	reply, err := c.Commit(t.Context(), "", []events.SubCommand{create, react}, client.CommandID(id))
	s.Must(err)
	x := &events.Execution{ID: "exe_one", AgentID: "worker"}
	if !runstream.Begin(x, reply) {
		t.Fatal("the commit began no run")
	}
	return x, reply, live.Begun(reply)
}

// What is folded of a run as it happens is what queries tell of it: when it waits, when it has ended, and
// when another run of the thread has ended after it.
func TestRecord(t *testing.T) {
	s, c := worker(t)
	send := func(command any) func(*events.Execution) {
		return func(x *events.Execution) { s.Must(sendTo(t, c, x.ThreadID, command)) }
	}
	call := func(command func(call string) any) func(*events.Execution) {
		return func(x *events.Execution) { send(command(x.Waiting[0]))(x) }
	}
	for _, one := range []struct {
		name, text string
		waiting    func(x *events.Execution) // what is done when it waits; nil: it does not
	}{
		{"answer", "answer", nil},
		{"look up", "look up", nil},
		{"fail", "fail", nil},
		{"again", "again", nil},
		{"grant", "refund", call(func(id string) any { return events.GrantApproval{CallID: id} })},
		{"deny", "refund", call(func(id string) any { return events.DenyApproval{CallID: id} })},
		{"resolve", "refund", call(func(id string) any { return events.ResolveApproval{CallID: id, Result: events.JSON(`"refunded"`)} })},
		{"stop", "refund", send(events.StopRun{Reason: "enough"})},
		{"cancel", "refund", send(events.CancelRun{})},
		{"not served", "check", func(*events.Execution) { s.Must(s.Tool(skein.NewTool("check", found))) }},
	} {
		t.Run(one.name, func(t *testing.T) {
			x, _, live := begin(t, s, c, "record-"+strings.ReplaceAll(one.name, " ", "-"), one.text)
			if live == nil {
				t.Fatal("the run is not followed")
			}
			waited, end := false, int64(0)
			record, err := live.Record(t.Context(), x, func(r *runstream.Record) bool {
				switch x := r.Execution; {
				case !waited && (runview.AwaitsPeople(x) || len(x.WaitingFor) > 0):
					waited = true
					checkRecord(t, c, r)
					one.waiting(x)
				case x.Finished && end == 0:
					checkRecord(t, c, r)
					end = runAnother(t, s, c, x.ThreadID)
				}
				return end > 0 && r.Execution.Version >= end
			})
			s.Must(err)
			checkRecord(t, c, record)
			if waited != (one.waiting != nil) {
				t.Errorf("it waited: %v", waited)
			}
		})
	}
}

// The run of a thread that is deleted ends as one that is cancelled, also if its events are erased.
func TestRecord_ThreadIsDeleted(t *testing.T) {
	s, c := worker(t)
	x, _, live := begin(t, s, c, "deleted", "refund")
	deleted := false
	record, err := live.Record(t.Context(), x, func(r *runstream.Record) bool {
		if !deleted && runview.AwaitsPeople(r.Execution) {
			deleted = true
			s.Must(sendTo(t, c, x.ThreadID, events.DeleteThread{Purge: true}))
		}
		return r.Execution.Finished
	})
	s.Must(err)
	if x := record.Execution; x.Status != events.ExecutionFailed || !x.Stopped {
		t.Errorf("it ended as %s", encoded(t, x))
	}
}

func sendTo(t *testing.T, c *client.Client, thread string, command any) error {
	t.Helper()
	_, err := c.Send(t.Context(), thread, command)
	return err
}

// runAnother runs the worker again on a thread, and returns the version with which the run has ended.
func runAnother(t *testing.T, s *skeintest.Server, c *client.Client, thread string) int64 {
	t.Helper()
	item := events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"look up"}]`)}
	s.Must(sendTo(t, c, thread, events.ReactThread{Item: &item, AgentID: "worker", Policy: events.Enqueue}))
	s.WaitIdle()
	page, err := client.Read(t.Context(), c, events.ListEvents{ThreadID: thread, FromVersion: new(int64(1)), Types: []string{string(events.ThreadFinishedType)}})
	s.Must(err)
	if len(page.Events) != 2 {
		t.Fatalf("the ends of runs are %s", page.Events)
	}
	e, err := events.DecodeEvent(page.Events[1])
	s.Must(err)
	return e.Version
}

// checkRecord fails the test unless queries show what a record does.
func checkRecord(t *testing.T, c *client.Client, r *runstream.Record) {
	t.Helper()
	now := c.WithMinSeq(r.Execution.Seq)
	of := *r.Execution
	x, err := client.Read(t.Context(), now, events.GetExecution{ThreadID: of.ThreadID, ExecutionID: of.ID})
	if err != nil {
		t.Fatal(err)
	}
	of.Stamp, x.Stamp = events.Stamp{}, events.Stamp{}
	if encoded(t, &of) != encoded(t, x) {
		t.Errorf("the execution is\n%s, not\n%s", encoded(t, &of), encoded(t, x))
	}
	steps, err := client.Read(t.Context(), now, events.ListSteps{ThreadID: of.ThreadID, ExecutionID: of.ID})
	if err != nil {
		t.Fatal(err)
	}
	if len(steps.Steps) != len(r.Steps) {
		t.Fatalf("the steps are %v, not %v", r.Steps, steps.Steps)
	}
	for i, step := range steps.Steps {
		parts, err := client.Read(t.Context(), now, events.ListParts{ThreadID: of.ThreadID, StepID: step.ID})
		if err != nil {
			t.Fatal(err)
		}
		var list []events.JSON
		for _, p := range parts.Parts {
			list = append(list, p.Part)
		}
		if r.Steps[i] != step.ID || !reflect.DeepEqual(r.Parts(step.ID), list) {
			t.Errorf("step %d is %s with %s, not %s with %s", i, r.Steps[i], r.Parts(step.ID), step.ID, list)
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A view of a run that is followed from before its beginning shows what it shows of the run that is read
// afterwards. The repeat of a command is not followed so: its run began before.
func TestLive(t *testing.T) {
	s, c := worker(t)
	show := func(o runstream.Options) (text string) {
		t.Helper()
		source, err := runstream.Subscribe(t.Context(), c, o)
		s.Must(err)
		defer source.Close()
		view := runview.New("exe_one")
		s.Must(runstream.Play(t.Context(), source, view, func(frames []runview.Frame) error {
			for _, f := range frames {
				if d, ok := f.(runview.TextDelta); ok {
					text += d.Delta
				}
			}
			return nil
		}))
		return text
	}
	for _, text := range []string{"answer", "look up", "again"} {
		_, reply, live := begin(t, s, c, "live-"+strings.ReplaceAll(text, " ", "-"), text)
		if live == nil {
			t.Fatal("the run is not followed")
		}
		o := runstream.Options{Thread: reply.ThreadID, Execution: "exe_one", From: runstream.From(reply), Live: live}
		followed := show(o)
		_, _, again := begin(t, s, c, "live-"+strings.ReplaceAll(text, " ", "-"), text)
		if o.Live = nil; followed == "" || followed != show(o) {
			t.Errorf("%q shows %q live, and %q afterwards", text, followed, show(o))
		}
		if again != nil {
			t.Errorf("%q: a repeat is followed as if it began the run", text)
		}
	}
}

// A command that has failed ends the following at once, and not only with the request.
func TestLive_CommandFailed(t *testing.T) {
	s := skeintest.Start(t)
	c := s.Client("acme")
	reply, err := c.Send(t.Context(), "", events.CreateThread{})
	s.Must(err)
	state, err := c.Thread(t.Context(), reply.ThreadID)
	s.Must(err)
	nc, ok := state.RuntimeContext()["nats"].(*nats.Conn)
	if !ok {
		t.Fatal("the client shows no connection")
	}
	before := nc.NumSubscriptions()
	live := runstream.Ahead(t.Context(), c, reply.ThreadID)
	if live == nil || nc.NumSubscriptions() != before+1 {
		t.Fatalf("%d subscriptions, and %d before", nc.NumSubscriptions(), before)
	}
	reply, err = c.Send(t.Context(), reply.ThreadID, events.ReactThread{Text: new("hello"), AgentID: "nobody"})
	if err == nil {
		t.Fatal("an agent that is not there was asked")
	}
	if live.Begun(reply) != nil || nc.NumSubscriptions() != before {
		t.Errorf("%d subscriptions, and %d before", nc.NumSubscriptions(), before)
	}
}
