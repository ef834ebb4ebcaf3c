package server_test

import (
	"context"
	"slices"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// worker.list says who serves what a tenant defines, and what its threads name: the server, a
// process on NATS in an account of its own, or nobody.
func TestWorkers_WhoServesWhat(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	c := g.client("acme", "app")
	define := func(kind events.DefinitionKind, body string) events.NewDefinition {
		return events.NewDefinition{Kind: kind, Definition: events.JSON(body)}
	}
	applied := must(c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		define(events.AgentKind, `{"name":"clerk","type":"ai_human","reactor":"shout","tools":["add","lookup","ask","web"]}`),
		define(events.AgentKind, `{"name":"pair","type":"dual_ai","sideA":{"reactor":"shout"},"sideB":{"reactor":"gone"}}`),
		define(events.ModelKind, `{"name":"fast","model":"gpt-5-mini"}`),
		define(events.PromptKind, `{"name":"kind","text":"Be kind."}`),
		define(events.ReactorKind, `{"name":"away","type":"http","http":{"url":"https://agents.example/react","secretEnv":["SECRET"]}}`),
		define(events.ToolKind, `{"name":"add","description":"Adds.","type":"nats"}`),
		define(events.ToolKind, `{"name":"lookup","description":"Looks up.","type":"go"}`),
		define(events.ToolKind, `{"name":"ask","description":"Asks.","type":"person"}`),
		define(events.ToolKind, `{"name":"web","description":"Fetches.","type":"http","http":{"url":"https://tools.example/web","secretEnv":["SECRET"]}}`),
	}}))(t)
	list := func(q events.ListWorkers) map[string]string {
		t.Helper()
		got := map[string]string{}
		for {
			page := must(client.Read(t.Context(), c.WithMinSeq(applied.Seq), q))(t)
			for _, s := range page.Serving {
				text := ""
				for _, w := range s.Workers {
					text += string(w.Kind) + " " + w.Name + " " + string(w.Place) + " " + string(w.State) + ";"
				}
				got[string(s.Kind)+"/"+s.Name] = text
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				return got
			}
		}
	}
	want := map[string]string{
		"agent/clerk": "reactor shout nats absent;", "agent/pair": "reactor gone nats absent;reactor shout nats absent;",
		"model/fast": "reactor openai server served;", "reactor/away": "reactor away http unchecked;",
		"tool/add": "tool add nats absent;", "tool/lookup": "tool lookup server absent;", "tool/ask": "", "tool/web": "tool web http unchecked;",
	}
	same := func(when string, got map[string]string) {
		t.Helper()
		for name, text := range want {
			if one, ok := got[name]; !ok || one != text {
				t.Errorf("%s: %s is %q, want %q", when, name, one, text)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v", when, got)
		}
	}
	same("without processes", list(events.ListWorkers{}))

	nc, _ := g.plain("", "shouter")
	shout := must(remote.ServeReactor(nc, events.DefaultNames(), "shout", runtime.ReactorFunc(func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
		t.Error("the reactor was called")
		return runtime.Answer("no"), nil
	})))(t)
	add := must(remote.ServeTool(nc, events.DefaultNames(), must(runtime.DefineTool(runtime.ToolSpec{Name: "add", Description: "Adds."}, func(context.Context, *runtime.ToolInput, struct{}) (int, error) { return 0, nil }))(t)))(t)
	want["agent/clerk"], want["agent/pair"], want["tool/add"] = "reactor shout nats served;", "reactor gone nats absent;reactor shout nats served;", "tool add nats served;"
	same("with a process", list(events.ListWorkers{Limit: new(int64(3))}))
	if got := list(events.ListWorkers{Kind: events.ServedTool}); len(got) != 4 {
		t.Errorf("the tools: %v", got)
	}
	if got := list(events.ListWorkers{Kind: events.ServedAgent, Names: []string{"shout"}}); len(got) != 1 || got["agent/shout"] != "reactor shout nats served;" {
		t.Errorf("an agent without a definition: %v", got)
	}
	if got := list(events.ListWorkers{Kind: events.ServedTool, Names: []string{"no_such"}}); len(got) != 0 {
		t.Errorf("a tool that does not exist: %v", got)
	}
	if _, err := client.Read(t.Context(), c, events.ListWorkers{Names: []string{"clerk"}}); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("a name without its kind: %v", err)
	}

	// An agent that a thread names, and that nobody defines.
	made := must(c.Send(t.Context(), "", events.CreateThread{AgentID: "shout"}))(t)
	applied.Seq = made.Seq
	must(client.Read(t.Context(), c.WithMinSeq(made.Seq), events.GetThread{ThreadID: made.ThreadID}))(t)
	want["agent/shout"] = "reactor shout nats served;"
	same("with a thread", list(events.ListWorkers{}))
	if other := must(client.Read(t.Context(), g.client("globex", "app"), events.ListWorkers{}))(t); len(other.Serving) > 0 {
		t.Errorf("another tenant sees %+v", other.Serving)
	}

	if err := shout.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := add.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := list(events.ListWorkers{})
	if slices.Contains([]string{got["agent/clerk"], got["tool/add"]}, "") || got["agent/clerk"] != "reactor shout nats absent;" || got["tool/add"] != "tool add nats absent;" {
		t.Errorf("after the process has gone: %v", got)
	}
}
