package thread

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// newTenant is the story of a tenant's own aggregate.
func newTenant(t testing.TB) *story {
	k := newStory(t)
	k.thread = events.TenantAggregate
	return k
}

// define returns a definition in canonical form, as the schema check does.
func define(value any) events.NewDefinition {
	raw, err := events.EncodeDefinition(value)
	if err != nil {
		panic(err)
	}
	d := events.NewDefinition{Name: events.DefinitionName(value), Definition: raw}
	for _, row := range events.DefinitionRows() {
		if reflect.TypeOf(row.New()) == reflect.TypeOf(value) {
			d.Kind = row.Kind
		}
	}
	return d
}

func model(name, provider string) events.NewDefinition {
	return define(events.ModelDefinition{Name: name, Model: provider})
}

func agent(name, model string, tools ...string) events.NewDefinition {
	return define(events.AgentDefinition{Name: name, Type: events.AIHuman, Model: model, Tools: tools})
}

func tool(name string) events.NewDefinition {
	return define(events.ToolDefinition{Name: name, Description: "x", Type: events.GoTool})
}

func apply(list ...events.NewDefinition) events.ApplyDefinitions {
	return events.ApplyDefinitions{Definitions: list}
}

func remove(refs ...string) (list []events.DefinitionRef) {
	for _, ref := range refs {
		kind, name, _ := strings.Cut(ref, "/")
		list = append(list, events.DefinitionRef{Kind: events.DefinitionKind(kind), Name: name})
	}
	return list
}

// changes returns what events say they changed: "agent a 1 added".
func changes(made []events.Event) []string {
	out := []string{}
	for _, e := range made {
		c := e.Data.(events.DefinitionChanged).Change()
		out = append(out, fmt.Sprintf("%s %s %d %s", c.Kind, c.Name, c.Version, c.Outcome))
	}
	return out
}

// What differs makes an event, in the order of the command; what is so already
// makes none; versions go on counting over a removal.
func TestApplyDefinitions(t *testing.T) {
	k := newTenant(t)
	for i, step := range []struct {
		do   events.ApplyDefinitions
		want []string
	}{
		{apply(agent("a", "m", "t"), model("m", "x"), tool("t")), []string{"agent a 1 added", "model m 1 added", "tool t 1 added"}},
		{apply(agent("a", "m", "t"), model("m", "x"), tool("t")), nil},
		{apply(agent("a", "m", "t"), model("m", "y")), []string{"model m 2 changed"}},
		{apply(model("a", "y")), []string{"model a 1 added"}},
		{events.ApplyDefinitions{Remove: remove("tool/none", "prompt/none")}, nil},
		{events.ApplyDefinitions{Definitions: []events.NewDefinition{agent("a", "m")}, Remove: remove("tool/t")}, []string{"agent a 2 changed", "tool t 2 removed"}},
		{events.ApplyDefinitions{Remove: remove("tool/t")}, nil},
		{apply(tool("t")), []string{"tool t 3 added"}},
		{apply(tool("t")), nil},
	} {
		made, err := Decide(k.state, k.command(step.do))
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if got := changes(made); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
		for _, e := range made {
			d := e.Data.(events.DefinitionChanged)
			if e.Subject != string(d.Kind)+"/"+d.Name || d.Definition != nil && d.Digest != events.DefinitionDigest(d.Definition) {
				t.Errorf("step %d: %+v", i, e)
			}
		}
		if len(made) > 0 {
			k.do(step.do)
		}
	}
	bytesOf := encoded(t, k.state)
	read, err := DecodeState(bytesOf)
	if err != nil || !bytes.Equal(bytesOf, encoded(t, read)) || read.Bytes() != k.state.Bytes() {
		t.Errorf("a snapshot: %v, %d and %d bytes\n%s", err, read.Bytes(), k.state.Bytes(), bytesOf)
	}
}

// Each refusal names its place, and changes nothing.
func TestApplyDefinitions_Refusals(t *testing.T) {
	k := newTenant(t)
	k.do(apply(agent("a", "m", "t"), model("m", "x"), tool("t"), define(events.PromptDefinition{Name: "p", Text: "x"})))
	dual := events.AgentDefinition{Name: "d", Type: events.DualAI, SideA: &events.AgentSide{Model: "m", Prompt: "p"}, SideB: &events.AgentSide{Model: "m", Tools: []string{"t", "u"}}}
	many := apply()
	for i := range events.MaxDefinitionChanges + 1 {
		many.Definitions = append(many.Definitions, tool(fmt.Sprint("t", i)))
	}
	for _, c := range []struct {
		do            events.ApplyDefinitions
		path, message string
	}{
		{apply(), "/data", "needs definitions, or remove"},
		{apply(tool("t"), tool("t")), "/data/definitions/1", "tool t is named twice"},
		{events.ApplyDefinitions{Definitions: []events.NewDefinition{tool("t")}, Remove: remove("tool/t")}, "/data/remove/0", "tool t is named twice"},
		{apply(tool("u"), agent("b", "gone")), "/data/definitions/1/definition/model", "agent b refers to the model gone, which is not defined"},
		{apply(agent("b", "m", "t", "u")), "/data/definitions/0/definition/tools/1", "refers to the tool u"},
		{apply(define(dual)), "/data/definitions/0/definition/sideB/tools/1", "refers to the tool u"},
		{apply(define(events.ToolDefinition{Name: "call", Description: "x", Type: events.AgentTool, Agent: "b"})), "/data/definitions/0/definition/agent", "refers to the agent b"},
		{events.ApplyDefinitions{Remove: remove("prompt/p", "tool/t")}, "/data/remove/1", "tool/t is still referred to by agent/a"},
		{events.ApplyDefinitions{Definitions: []events.NewDefinition{agent("b", "m")}, Remove: remove("model/m")}, "/data/definitions/0/definition/model", "refers to the model m"},
		{many, "/data", "this changes 201 definitions; at most 200"},
		{events.ApplyDefinitions{Definitions: []events.NewDefinition{agent("0", "m", "t"), agent("z", "m", "t")}, Remove: remove("tool/t")},
			"/data/definitions/0/definition/tools/0", "agent 0 refers to the tool t"},
	} {
		e := k.refuse(c.do)
		if e.Code != events.InvalidRequest || e.Details.Path != c.path || !strings.Contains(e.Message, c.message) {
			t.Errorf("%v at %s, want %s at %s", e, e.Details.Path, c.message, c.path)
		}
	}
	many.Definitions = many.Definitions[:events.MaxDefinitionChanges]
	k.do(many)
	k.do(events.ApplyDefinitions{Remove: remove("agent/a", "tool/t", "model/m")})
	c := k.command(apply(tool("t")))
	c.Expected = to(int64(1))
	if _, err := k.try(c); events.AsError(err).Code != events.VersionConflict {
		t.Errorf("a version that it has not: %v", err)
	}
	c = k.command(apply(define(events.ModelDefinition{Name: "m", Model: "x", Endpoint: "here"}), define(events.ModelDefinition{Name: "n", Model: "x", Endpoint: "gone"})))
	c.Absent = map[string]bool{"gone": true}
	if _, err := k.try(c); events.AsError(err).Code != events.InvalidRequest || events.AsError(err).Details.Path != "/data/definitions/1/definition/endpoint" {
		t.Errorf("an endpoint that does not exist: %v", err)
	}
	if e := k.refuse(apply(define(events.ModelDefinition{Name: "m", Model: "x", Fallback: []string{"n", "m"}}), define(events.ModelDefinition{Name: "n", Model: "x"}))); e.Details.Path != "/data/definitions/0/definition/fallback/1" || !strings.Contains(e.Message, "itself") {
		t.Errorf("a model that is its own fallback: %v at %s", e, e.Details.Path)
	}
	thread := begun(t)
	thread.refuse(apply(tool("t")))
}

// Whatever is applied in whatever order: doing it again makes no event, versions
// count by one, what refers to something finds it, and the state that is made
// from the stored bytes is the same (which the story holds).
func TestApplyDefinitions_Property(t *testing.T) {
	for seed := range uint64(300) {
		g := rand.New(rand.NewPCG(seed, 7))
		k := newTenant(t)
		now, versions := map[string]string{}, map[string]int64{}
		name := func() string { return string(rune('a' + g.IntN(4))) }
		for range 30 {
			var d events.ApplyDefinitions
			for range 1 + g.IntN(4) {
				switch g.IntN(6) {
				case 0:
					d.Definitions = append(d.Definitions, model(name(), name()))
				case 1:
					d.Definitions = append(d.Definitions, tool(name()))
				case 2, 3:
					d.Definitions = append(d.Definitions, agent(name(), name(), slices.Compact([]string{name(), name()})...))
				case 4:
					d.Definitions = append(d.Definitions, define(events.ToolDefinition{Name: name(), Description: "y", Type: events.AgentTool, Agent: name()}))
				case 5:
					d.Remove = append(d.Remove, remove([]string{"model/", "tool/", "agent/"}[g.IntN(3)]+name())...)
				}
			}
			c := k.command(d)
			made, err := Decide(k.state, c)
			if err != nil || len(made) == 0 {
				continue // refused, or so already: it is not in the log
			}
			if made, err = k.try(c); err != nil {
				t.Fatal(err)
			}
			for _, e := range made {
				d := e.Data.(events.DefinitionChanged)
				if versions[e.Subject]++; d.Version != versions[e.Subject] || (d.Previous != 0) != (now[e.Subject] != "") || now[e.Subject] == string(d.Definition) {
					t.Fatalf("seed %d: %+v after %d", seed, d, versions[e.Subject])
				}
				now[e.Subject] = string(d.Definition)
			}
			if again, err := Decide(k.state, k.command(d)); err != nil || len(again) > 0 {
				t.Fatalf("seed %d: again: %v, %v", seed, changes(again), err)
			}
			for id, raw := range now {
				kind, _, _ := strings.Cut(id, "/")
				value, err := events.DecodeDefinition(events.DefinitionKind(kind), []byte(raw))
				if raw == "" || err != nil {
					continue
				}
				for _, ref := range events.DefinitionRefs(value) {
					if now[ref.ID()] == "" {
						t.Fatalf("seed %d: %s refers to %s, which is not there", seed, id, ref)
					}
				}
			}
		}
	}
}

// A removal that is refused names the first, by name, of those that refer to it.
func TestApplyDefinitions_NamesTheFirstUser(t *testing.T) {
	k := newTenant(t)
	k.do(apply(model("m", "x"), tool("t"), agent("c", "m", "t"), agent("a", "m", "t"), agent("b", "m", "t")))
	for range 10 { // whatever the order of a map
		if e := k.refuse(events.ApplyDefinitions{Remove: remove("tool/t")}); !strings.Contains(e.Message, "still referred to by agent/a;") {
			t.Fatal(e)
		}
	}
}

// A tenant has at most so many definitions at a time, and so many names ever; the
// last ones that are allowed are.
func TestApplyDefinitions_Limits(t *testing.T) {
	full := func(there, gone int) *State {
		s := &State{}
		for i := range there + gone {
			d := definitionState{Version: 1}
			if i < there {
				d.Digest = "x"
			}
			s.setDefinition(fmt.Sprint("tool/t", i), d)
		}
		return s
	}
	for _, c := range []struct {
		there, gone int
		refused     string
	}{
		{events.MaxDefinitions - 1, 0, ""},
		{events.MaxDefinitions, 0, "there would be 10001 definitions"},
		{events.MaxDefinitions - 1, events.MaxDefinitionNames - events.MaxDefinitions, ""},
		{events.MaxDefinitions - 1, events.MaxDefinitionNames - events.MaxDefinitions + 1, "there would have been 100001 names"},
	} {
		made, err := Decide(full(c.there, c.gone), newTenant(t).command(apply(tool("one-more"))))
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) || err == nil && len(made) != 1 {
			t.Errorf("with %d definitions and %d names of others: %d events, %v", c.there, c.gone, len(made), err)
		}
	}
}

func TestApplyDefinitions_TooManyWebhooks(t *testing.T) {
	for there, refused := range map[int]bool{events.MaxWebhooks - 1: false, events.MaxWebhooks: true} {
		s := &State{}
		for i := range there {
			s.setDefinition(fmt.Sprint("webhook/w", i), definitionState{Version: 1, Digest: "x"})
		}
		s.setDefinition("webhook/gone", definitionState{Version: 2})
		hook := events.NewDefinition{Kind: events.WebhookKind, Name: "one-more", Definition: events.JSON(`{"name":"one-more","http":{"url":"http://x","secretEnv":["A"]}}`)}
		_, err := Decide(s, newTenant(t).command(apply(hook)))
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "there would be 17 webhooks; at most 16 are allowed") {
			t.Errorf("with %d webhooks: %v", there, err)
		}
	}
}

// A definition of a foreign log, which has no digest, is there all the same, and is
// what it is: applied again it does not change.
func TestApplyDefinitions_WithoutDigest(t *testing.T) {
	s, def := &State{}, tool("t")
	k := newTenant(t)
	e := k.after(events.DefinitionChangedType, "tool/t", "", events.DefinitionChanged{Kind: def.Kind, Name: "t", Version: 1, Definition: def.Definition})
	Evolve(s, &e)
	if made, err := Decide(s, k.command(apply(def))); err != nil || len(made) != 0 {
		t.Errorf("%d events, %v", len(made), err)
	}
	if got := s.definition("tool/t"); !got.there() || got.Digest != events.DefinitionDigest(def.Definition) {
		t.Errorf("it is %+v", got)
	}
}
