package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// clerk registers a reactor that calls the Go tool count once, and then answers.
func clerk(r *runtime.Registry) error {
	call := transcript.Text("I count.", runtime.ToolCall{CallID: "c1", Name: "count", Arguments: events.JSON(`{}`)})
	return r.AddReactor("clerk", transcript.Fixed(call, transcript.Text("done")))
}

// counter is the Go tool count.
func counter(t *testing.T, calls *atomic.Int64) runtime.Tool {
	t.Helper()
	return must(runtime.DefineTool(runtime.ToolSpec{Name: "count"}, func(context.Context, *runtime.ToolInput, struct{}) (string, error) {
		calls.Add(1)
		return "counted", nil
	}))(t)
}

// result returns what the call of a run came to.
func result(t *testing.T, c *client.Client, thread string) string {
	t.Helper()
	items := must(client.Read(t.Context(), must(c.UpToDate(t.Context()))(t), events.ListItems{ThreadID: thread, Type: events.ActionResult}))(t)
	if len(items.Items) != 1 {
		t.Errorf("the results are %+v", items.Items)
		return ""
	}
	return string(items.Items[0].Content)
}

// Of two processes one lacks a Go tool. Whichever takes a run, its call is made, once, by the one
// that has the tool, and nobody is asked.
func TestGoTool_AnotherProcessHasIt(t *testing.T) {
	t.Parallel()
	ns := natstest.Start(t)
	var calls atomic.Int64
	lacks := server.Config{NATS: ns.URL(), HTTPListen: "127.0.0.1:0", Register: clerk}
	has := lacks
	has.Register = func(r *runtime.Registry) error { return errors.Join(clerk(r), r.AddTool(counter(t, &calls))) }
	a, b := run(t, has), run(t, lacks)
	defer stop(t, a)
	defer stop(t, b)
	c := must(client.Connect(ns.URL(), client.Options{Tenant: "acme", Timeout: time.Minute}))(t)
	defer c.Close()
	must(c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"count","description":"Counts.","type":"go"}`)},
		{Kind: events.AgentKind, Definition: events.JSON(`{"name":"desk","type":"ai_human","reactor":"clerk","tools":["count"]}`)},
	}}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const runs = 12
	for i := range runs {
		made := must(c.Send(t.Context(), "", events.CreateThread{AgentID: "desk"}))(t)
		if answer, err := c.Ask(ctx, made.ThreadID, "go"); err != nil || !strings.HasSuffix(answer.Text, "done") {
			t.Fatalf("run %d: %+v, %v", i, answer, err)
		}
		if got := result(t, c, made.ThreadID); !strings.Contains(got, "counted") {
			t.Errorf("run %d: the call came to %s", i, got)
		}
	}
	if calls.Load() != runs {
		t.Errorf("the tool was called %d times", calls.Load())
	}
}

// A run that calls a Go tool which no process has waits for it, without a place: its call is made
// when the tool is registered, and fails when its time is over.
func TestGoTool_RegisteredLate(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var registry *runtime.Registry
	d := newDesk(t, func(c *server.Config) {
		c.Workers = 1
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			registry = r
			hasty := transcript.Text("I count.", runtime.ToolCall{CallID: "c1", Name: "hasty", Arguments: events.JSON(`{}`)})
			return errors.Join(own(r), clerk(r), r.AddReactor("brief", transcript.Fixed(hasty, transcript.Text("done"))))
		}
	})
	d.apply("tool", `{"name":"count","description":"Counts.","type":"go"}`, "tool", `{"name":"hasty","description":"Nobody has it.","type":"go","workerWaitMs":3000}`,
		"agent", `{"name":"desk","type":"ai_human","reactor":"clerk","tools":["count"]}`, "agent", `{"name":"quick","type":"ai_human","reactor":"brief","tools":["hasty"]}`)
	first := d.react(d.thread("desk"), events.ReactThread{Text: new("hello")})
	d.parks(first)
	told, _ := d.watch(first)
	d.until(told, waitsForWorker("go:count"))
	hasty := d.react(d.thread("quick"), events.ReactThread{Text: new("hello")})
	if x := d.ends(hasty); x.Status != events.ExecutionCompleted {
		t.Errorf("the run whose call's time was over ended %s: %s", x.Status, x.ErrorText)
	}
	if got := result(t, d.c, hasty.ThreadID); !strings.Contains(got, "no process served the tool go:hasty for ") {
		t.Errorf("the call whose time was over came to %s", got)
	}
	if err := registry.AddTool(counter(t, &calls)); err != nil {
		t.Fatal(err)
	}
	if x := d.ends(first); x.Status != events.ExecutionCompleted {
		t.Errorf("the run ended %s: %s", x.Status, x.ErrorText)
	}
	if got := result(t, d.c, first.ThreadID); calls.Load() != 1 || !strings.Contains(got, "counted") {
		t.Errorf("%d calls, which came to %s", calls.Load(), got)
	}
}
