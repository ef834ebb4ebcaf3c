package events

import (
	"slices"
	"strings"
	"testing"
)

func definedAs(name string, version, previous int64, definition string) DefinitionChanged {
	d := DefinitionChanged{Kind: AgentKind, Name: name, Version: version, Previous: previous}
	if definition != "" {
		d.Definition = JSON(definition)
		d.Digest = DefinitionDigest(d.Definition)
	}
	return d
}

// A checker reports a definition whose version does not follow, or whose digest is wrong.
func TestTimelineChecker_Definitions(t *testing.T) {
	good := []DefinitionChanged{
		definedAs("a", 1, 0, `{"a":1}`), definedAs("b", 1, 0, `{}`), definedAs("a", 2, 1, `{"a":2}`), definedAs("a", 3, 2, ""), definedAs("a", 4, 0, `{"a":1}`),
	}
	check := func(list []DefinitionChanged, subject string) error {
		var samples []sample
		for _, d := range list {
			at := subject
			if at == "" {
				at = "agent/" + d.Name
			}
			samples = append(samples, sample{DefinitionChangedType, at, d})
		}
		events := stream(samples...)
		for i := range events {
			events[i].ThreadID = TenantAggregate
		}
		return ValidateTimeline(events)
	}
	if err := check(good, ""); err != nil {
		t.Error(err)
	}
	altered := definedAs("a", 2, 1, `{"a":2}`)
	altered.Definition = JSON(`{"a":3}`)
	for want, list := range map[string][]DefinitionChanged{
		"at version 2 after 0":             {definedAs("a", 2, 0, `{}`)},
		"at version 1 after 1":             {good[0], definedAs("a", 1, 1, `{}`)},
		"at version 3 after 1":             {good[0], definedAs("a", 3, 1, `{}`)},
		"replaces version 0, but was at 1": {good[0], definedAs("a", 2, 0, `{}`)},
		"replaces version 3, but was at 3": {good[0], good[2], good[3], definedAs("a", 4, 3, `{}`)},
		"does not have the digest":         {good[0], altered},
	} {
		if err := check(list, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := check(good[:1], "agent/b"); err == nil || !strings.Contains(err.Error(), `an event about "agent/b"`) {
		t.Error(err)
	}
}

// A name is encoded as one token of a key, and decoded from it.
func TestDefinitionRef_KeyRoundTrip(t *testing.T) {
	for name, want := range map[string]string{
		"support": "agent.support", "gpt-4.1": "agent.gpt-4=2E1", "a:b/c": "agent.a=3Ab=2Fc", "A..": "agent.A=2E=2E", "x_1": "agent.x_1",
	} {
		ref := DefinitionRef{Kind: AgentKind, Name: name}
		back, ok := ParseDefinitionKey(ref.Key())
		if ref.Key() != want || !ok || back != ref {
			t.Errorf("%s is %s, and comes back as %+v", name, ref.Key(), back)
		}
	}
	for _, key := range []string{"", "agent", "agent.", "agent.a.b", "agent.a=", "agent.a=2", "agent.a=2e", "agent.a=ZZ", "agent.a=61", "agent.a b", "agent.*"} {
		if ref, ok := ParseDefinitionKey(key); ok {
			t.Errorf("%q is %+v", key, ref)
		}
	}
}

// The definitions that a definition refers to, with their paths.
func TestDefinitionRefs(t *testing.T) {
	var got []string
	for _, d := range []any{
		ModelDefinition{Name: "m", Model: "x"}, PromptDefinition{Name: "p", Text: "x"}, ToolDefinition{Agent: "b"},
		AgentDefinition{Model: "m", Prompt: "p", Tools: []string{"t", "u"}, SideA: &AgentSide{Prompt: "q"}, SideB: &AgentSide{Model: "n", Tools: []string{"v"}}},
	} {
		for _, ref := range DefinitionRefs(d) {
			got = append(got, ref.Path+" "+ref.ID())
		}
	}
	want := []string{
		"/agent agent/b", "/model model/m", "/prompt prompt/p", "/tools/0 tool/t", "/tools/1 tool/u",
		"/sideA/prompt prompt/q", "/sideB/model model/n", "/sideB/tools/0 tool/v",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if d := (ToolDefinition{}).WithDefaults(); !*d.Auto || *d.Idempotent || *d.ReadOnly || !*d.Portable { // SA-151: portable unless it says otherwise
		t.Errorf("%+v", d)
	}
	if d := (AgentDefinition{}).WithDefaults(); d.Policy != Enqueue || *d.Limits.Iterations != DefaultIterations { // AM-79
		t.Errorf("%+v", d)
	}
}
