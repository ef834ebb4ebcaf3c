package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// Arguments that replace those of a call are refused with the field at fault if the tool does not
// take them: by its definition, or, of a Go tool, by its own schema. The call waits on, and the
// grant of arguments that fit makes it.
func TestApproval_ArgumentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	type in struct {
		EUR int64 `json:"eur"`
	}
	paid := make(chan int64, 10)
	d := newDesk(t, func(c *server.Config) {
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			list := []error{own(r)}
			for _, name := range []string{"pay", "refund"} {
				list = append(list, r.AddTool(must(runtime.DefineTool(runtime.ToolSpec{Name: name, Description: "Pays.", Manual: true},
					func(_ context.Context, _ *runtime.ToolInput, a in) (string, error) {
						paid <- a.EUR
						return "paid", nil
					}))(t)))
			}
			ask := func(name string) runtime.ToolCall {
				return runtime.ToolCall{CallID: name, Name: name, Arguments: events.JSON(`{"eur":5}`)}
			}
			return errors.Join(append(list, r.AddReactor("clerk", transcript.Fixed(
				transcript.Text("I look.", ask("pay"), ask("refund"), ask("colleague")), transcript.Text("done"),
			)))...)
		}
	})
	d.apply("tool", `{"name":"pay","description":"Pays.","type":"go","auto":false}`,
		"tool", `{"name":"refund","description":"Pays back.","type":"go","auto":false,"parameters":{"type":"object","properties":{"eur":{"type":"integer","maximum":100}},"required":["eur"]}}`,
		"agent", `{"name":"other","type":"ai_human","reactor":"other"}`,
		"tool", `{"name":"colleague","description":"Another agent.","type":"agent","agent":"other","auto":false,"parameters":{"type":"object","properties":{"eur":{"type":"string"}}}}`,
		"agent", `{"name":"desk","type":"ai_human","reactor":"clerk","tools":["pay","refund","colleague"]}`)
	reply := d.react(d.thread("desk"), events.ReactThread{Text: new("hello")})
	told, ended := d.watch(reply)
	d.until(told, func(w client.Waiting) bool { return len(w.Approvals) == 3 })
	send := func(data any) error { return second(d.c.Send(d.ctx, reply.ThreadID, data)) }
	grant := func(call, arguments string) error {
		return send(events.GrantApproval{CallID: call, Arguments: events.JSON(arguments)})
	}
	resolve := func(call, arguments string) error {
		return send(events.ResolveApproval{CallID: call, Grant: true, Arguments: events.JSON(arguments)})
	}
	commit := func(call, arguments string) error {
		_, err := d.c.Commit(d.ctx, reply.ThreadID, []events.SubCommand{
			{Command: "thread.update", Data: events.JSON(`{"title":"x"}`)},
			{Command: "approval.grant", Data: events.JSON(fmt.Sprintf(`{"callId":%q,"arguments":%s}`, call, arguments))},
		})
		return err
	}
	for name, c := range map[string]struct {
		err  error
		path string
		says []string
	}{
		"a type of the tool's own":    {grant("pay", `{"eur":"ten"}`), "/data/arguments", []string{"pay", "/eur: "}},
		"a member that it lacks":      {grant("pay", `{"eur":5,"usd":1}`), "/data/arguments", []string{"usd"}},
		"a limit of the definition":   {resolve("refund", `{"eur":101}`), "/data/arguments", []string{"refund", "/eur: ", "100"}},
		"a member that is missing":    {grant("refund", `{}`), "/data/arguments", []string{"eur"}},
		"a part of a commit":          {commit("refund", `{"eur":1000}`), "/data/commands/1/data/arguments", []string{"/eur: "}},
		"a call that does not exist":  {grant("none", `{"eur":"ten"}`), "", []string{"none"}},
		"too much for a JSON Schema":  {grant("refund", `{"eur":`+strings.Repeat("9", 400)+`}`), "/data/arguments", nil},
		"a number that is no integer": {grant("refund", `{"eur":1.5}`), "/data/arguments", []string{"/eur: "}},
	} {
		e := events.AsError(c.err)
		if c.err == nil || c.path != "" && (e.Code != events.InvalidRequest || e.Details == nil || e.Details.Path != c.path) {
			t.Errorf("%s: %v", name, c.err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(e.Message, s) {
				t.Errorf("%s: %q does not say %q", name, e.Message, s)
			}
		}
	}
	if t.Failed() { // the call may have been made
		return
	}
	d.waits(reply, events.RunWaitsApproval)
	for _, err := range []error{grant("pay", `{"eur":7}`), resolve("refund", `{"eur":100}`)} {
		if err != nil {
			t.Error(err)
		}
	}
	if sum := <-paid + <-paid; sum != 107 {
		t.Errorf("the calls were made with %d in all", sum)
	}
	// An agent takes any object: its parameters are for the model.
	if err := grant("colleague", `{"eur":5}`); err != nil {
		t.Error(err)
	}
	if err := send(events.CancelRun{}); err != nil {
		t.Error(err)
	}
	if x, err := ended(); err != nil || x.Status == events.Executing {
		t.Errorf("%+v, %v", x, err)
	}
}
