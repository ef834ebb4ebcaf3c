package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// SA-55, SA-56, SA-57: definitions decode into the caller's type. SA-58, SA-59, SA-60:
// the names of each kind, in order. SA-61: an unknown name is an error.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	ctx := t.Context()
	var list []events.NewDefinition
	add := func(kind events.DefinitionKind, raw string) {
		list = append(list, events.NewDefinition{Kind: kind, Definition: []byte(raw)})
	}
	add(events.ModelKind, `{"name":"gpt-4.1","model":"gpt-4.1","temperature":0.5}`)
	add(events.ModelKind, `{"name":"a:b/c","model":"x"}`)
	add(events.PromptKind, `{"name":"support","text":"You help."}`)
	add(events.AgentKind, `{"name":"support","type":"ai_human","model":"gpt-4.1","prompt":"support"}`)
	reply, err := c.Send(ctx, "", events.ApplyDefinitions{Definitions: list}, client.As("ada"))
	if err != nil || len(reply.Result.Definitions) != 4 {
		t.Fatalf("%+v, %v", reply, err)
	}
	c = c.WithMinSeq(reply.Seq)
	model, err := client.LoadModel[events.ModelDefinition](ctx, c, "gpt-4.1")
	if err != nil || *model.Temperature != 0.5 || model.WithDefaults().Reactor != events.DefaultReactor {
		t.Errorf("%+v, %v", model, err)
	}
	prompt, err := client.LoadPrompt[struct {
		Text string `json:"text"`
	}](ctx, c, "support")
	if err != nil || prompt.Text != "You help." {
		t.Errorf("%+v, %v", prompt, err)
	}
	agent, err := client.LoadAgent[map[string]any](ctx, c, "support")
	if err != nil || agent["type"] != "ai_human" {
		t.Errorf("%+v, %v", agent, err)
	}
	if _, err := client.LoadAgent[[]int](ctx, c, "support"); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
		t.Errorf("a type that it is not: %v", err)
	}
	for _, name := range []string{"none", "", "no such name", "gpt-4.1"} {
		if _, err := client.LoadPrompt[events.PromptDefinition](ctx, c, name); !errors.Is(err, &events.Error{Code: events.NotFound}) {
			t.Errorf("%q: %v", name, err)
		}
	}
	models, err1 := c.GetModelNames(ctx)
	prompts, err2 := c.GetPromptNames(ctx)
	agents, err3 := c.GetAgentNames(ctx)
	tools, err4 := c.DefinitionNames(ctx, events.ToolKind)
	if got := fmt.Sprint(models, prompts, agents, tools); got != "[a:b/c gpt-4.1] [support] [support] []" || errors.Join(err1, err2, err3, err4) != nil {
		t.Errorf("%s, %v", got, errors.Join(err1, err2, err3, err4))
	}
	removed, err := c.Send(ctx, "", events.ApplyDefinitions{Remove: []events.DefinitionRef{{Kind: events.AgentKind, Name: "support"}}}, client.ExpectVersion(reply.Version))
	if err != nil {
		t.Fatal(err)
	}
	if agents, err := c.WithMinSeq(removed.Seq).GetAgentNames(ctx); err != nil || !slices.Equal(agents, []string{}) {
		t.Errorf("%v, %v", agents, err)
	}
	version := int64(1)
	if was, err := client.Read(ctx, c, events.GetDefinition{Kind: events.AgentKind, Name: "support", Version: &version}); err != nil || was.Version != 1 {
		t.Errorf("%+v, %v", was, err)
	}
	if _, err := c.Send(ctx, "", events.ApplyDefinitions{Definitions: list}, client.ExpectVersion(1)); !errors.Is(err, &events.Error{Code: events.VersionConflict}) {
		t.Errorf("a version that it has not: %v", err)
	}
}

// Send and Read find the command and the query by the Go type of the data.
func TestSendAndRead_ByType(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	ctx := t.Context()
	made, err := c.Send(ctx, "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := c.Send(ctx, made.ThreadID, events.SetContext{Content: []byte(`{"turns":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Read(ctx, c.WithMinSeq(reply.Seq), events.ListContexts{ThreadID: made.ThreadID})
	if err != nil || len(list.Contexts) != 1 || string(list.Contexts[0].Content) != `{"turns":1}` {
		t.Errorf("%+v, %v", list, err)
	}
	invalid := &events.Error{Code: events.InvalidRequest}
	if _, err := c.Send(ctx, made.ThreadID, events.ListContexts{}); !errors.Is(err, invalid) {
		t.Errorf("a query was sent as a command: %v", err)
	}
}
