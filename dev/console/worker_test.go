package console_test

import (
	"context"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// The page Agents says who serves agents and tools now, also those that threads name and nobody
// defines; the page of one says what to do if nobody does.
func TestAgents_WhoServesThem(t *testing.T) {
	t.Parallel()
	o := startOrder(t, func(o *skein.Options) { o.NATSListen = "127.0.0.1:0" })
	define := func(kind events.DefinitionKind, body string) events.NewDefinition {
		return events.NewDefinition{Kind: kind, Definition: events.JSON(body)}
	}
	_, err := o.client.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		define(events.ToolKind, `{"name":"weigh","type":"nats","description":"Weighs a parcel."}`),
		define(events.AgentKind, `{"name":"far","type":"ai_human","reactor":"shout","tools":["weigh"]}`),
	}})
	o.Must(err)
	made, err := o.client.Send(t.Context(), "", events.CreateThread{AgentID: "clerk"})
	o.Must(err)
	o.settle(made.Seq)
	get := func(path string) string {
		t.Helper()
		status, page := o.ask("acme", "/console/agents"+path)
		if status != 200 {
			t.Fatalf("%s: %d %.500s", path, status, page)
		}
		return page
	}
	// row returns the row of a list in which a name is linked.
	row := func(page, name string) string {
		_, rest, _ := strings.Cut(page, ">"+name+"<")
		row, _, _ := strings.Cut(rest, "</tr>")
		return row
	}
	page := get("")
	for name, says := range map[string]string{"support": "this server", "far": "nobody serves it", "weigh": "skein.tool.weigh", "find_order": "this server"} {
		has(t, row(page, name), says)
	}
	has(t, page, "Agents without a definition", "/console/threads?agentId=clerk", `aria-label="Try clerk"`)
	has(t, o.get("/run"), "gpt-5-mini", "not", ">Cost<", `class="quiet">cost<`) // there are no prices
	has(t, get("?kind=tool"), "weigh", "not", "Agents without a definition")
	has(t, get("/agent/far"), "Who serves it", "skein.reactor.shout", "Start a process that answers on")
	has(t, get("/tool/ask_carrier"), "not", "Who serves it")

	nc := natstest.Dial(t, o.Addresses().NATS)
	c, err := remote.ServeReactor(nc, events.DefaultNames(), "shout", runtime.ReactorFunc(func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
		return skein.Answer("!"), nil
	}))
	o.Must(err)
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	has(t, row(get(""), "far"), "a process", "not", "nobody serves it")
	has(t, get("/agent/far"), "Who serves it", "not", "Start a process")
}
