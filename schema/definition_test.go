package schema

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

const minimalTool = `"name":"find","description":"Finds.","type":"go"`

// refusedAt fails unless err refuses what lies at path, in such words.
func refusedAt(t *testing.T, err error, raw, path, words string) {
	t.Helper()
	e := events.AsError(err)
	if err == nil || e.Code != events.InvalidRequest || e.Details == nil || e.Details.Path != path || !strings.HasPrefix(e.Message, path) || !strings.Contains(e.Message, words) {
		t.Errorf("%.200s:\n got %v (%+v)\nwant %s: %s", raw, err, e.Details, path, words)
	}
}

// Each refusal of a definition names its place. SA-9: the types of agents; SA-67:
// the arguments of a tool have a schema, which is one.
func TestDefinitionRefusals(t *testing.T) {
	v := newValidator(t)
	tool := func(more string) string { return `{` + minimalTool + more + `}` }
	parameters := func(s string) string { return tool(`,"parameters":` + s) }
	webhook := func(more string) string {
		return `{"name":"w","http":{"url":"http://x","secretEnv":["A"]}` + more + `}`
	}
	endpoint := func(e string) string { return `{"name":"t","description":"d","type":"http","http":` + e + `}` }
	server := func(s string) string {
		return `{"name":"find","description":"Finds.","type":"mcp","server":` + s + `}`
	}
	whole := func(name string) string {
		return `{"name":"` + name + `","description":"Finds.","type":"mcp","server":{"command":"x","include":["*"]}}`
	}
	person := func(more string) string { return `{"name":"ask","description":"Asks.","type":"person"` + more + `}` }
	agent := func(more string) string { return `{"name":"a","type":"ai_human","model":"m"` + more + `}` }
	dual := func(more string) string { return `{"name":"a","type":"dual_ai"` + more + `}` }
	for _, c := range []struct {
		kind               events.DefinitionKind
		raw, path, message string
	}{
		{"skilful", `{}`, "/kind", `there is no kind of definition "skilful"`},
		{"model", ``, "/definition", "nothing was sent"},
		{"model", `[]`, "/definition", "must be an object"},
		{"model", `{"name":"m"}`, "/definition/model", "is missing; it must be a text of 1 to 256 characters"},
		{"model", `{"name":"m","model":""}`, "/definition/model", "must be a text of 1 to 256 characters"},
		{"model", `{"model":"m"}`, "/definition/name", "is missing; it must be a name"},
		{"model", `{"name":"a b","model":"m"}`, "/definition/name", "must be a name"},
		{"model", `{"name":"m","model":"m","modle":1}`, "/definition/modle", "there is no such field; known are name, description"},
		{"model", `{"name":"m","model":"m","temperature":2.5}`, "/definition/temperature", "must be a number from 0 to 2"},
		{"model", `{"name":"m","model":"m","temperature":"hot"}`, "/definition/temperature", "must be a number from 0 to 2"},
		{"model", `{"name":"m","model":"m","temperature":-1e-1}`, "/definition/temperature", "must be a number from 0 to 2"},
		{"model", `{"name":"m","model":"m","contextTokens":0}`, "/definition/contextTokens", "must be a whole number, at least 1"},
		{"model", `{"name":"m","model":"m","contextTokens":1.5}`, "/definition/contextTokens", "must be a whole number, at least 1"},
		{"model", `{"name":"m","model":"m","params":[]}`, "/definition/params", "must be an object"},
		{"model", `{"name":"m","model":"m","params":{"api_key":"x"}}`, "/definition/params/api_key", "looks like a secret"},
		{"model", `{"name":"m","model":"m","params":{"Client-Secret":"x"}}`, "/definition/params/Client-Secret", "looks like a secret"},
		{"model", `{"name":"m","name":"m","model":"m"}`, "/definition/name", "the name stands twice"},
		{"prompt", `{"name":"p"}`, "/definition/text", "is missing; it must be a text of at least 1 character"},
		{"prompt", `{"name":"p","text":"x","variables":["a","b","a"]}`, "/definition/variables/2", "a stands twice"},
		{"prompt", `{"name":"p","text":"x","variables":["1st"]}`, "/definition/variables/0", "must be the name of a variable"},
		{"prompt", `{"name":"p","text":"hi {{name}}","variables":["name","order"]}`, "/definition/variables/1", "order does not stand in the text"},
		{"prompt", `{"name":"p","text":"hi {{name}}, {{ order }}","variables":["name"]}`, "/definition/text", "has {{order}}, which is none of its variables"},
		{"prompt", `{"name":"p","text":"hi {{name}}","variables":["name"],"defaults":{"nam":"you"}}`, "/definition/defaults/nam", "is none of the variables"},
		{"prompt", `{"name":"p","text":"hi {{name}}","variables":["name"],"defaults":{"name":null}}`, "/definition/defaults/name", "must be a text"},
		{"prompt", `{"name":"p","text":"hi {{name}}","defaults":{"name":"you"}}`, "/definition/defaults/name", "is none of the variables"},
		{"tool", `{"name":"find order","description":"x","type":"go"}`, "/definition/name", "must be a tool's name: 1 to 64 letters, digits, _ and -"},
		{"tool", `{"name":"` + strings.Repeat("a", 65) + `","description":"x","type":"go"}`, "/definition/name", "must be a tool's name"},
		{"tool", `{"name":"find","type":"go"}`, "/definition/description", "is missing"},
		{"tool", `{"name":"find","description":"x","type":"python"}`, "/definition/type", "must be one of go, nats, mcp, agent"},
		{"tool", `{"name":"find","description":"x","type":"mcp"}`, "/definition/server", "a tool of type mcp needs a server"},
		{"tool", `{"name":"find","description":"x","type":"agent"}`, "/definition/agent", "a tool of type agent needs an agent"},
		{"tool", tool(`,"agent":"a"`), "/definition/agent", "only a tool of type agent has an agent"},
		{"tool", tool(`,"server":{"command":"x"}`), "/definition/server", "only a tool of type mcp or a2a has a server"},
		{"tool", `{"name":"t","description":"d","type":"a2a"}`, "/definition/server", "needs a server with the url of the agent's card"},
		{"tool", `{"name":"t","description":"d","type":"a2a","server":{"command":"x"}}`, "/definition/server", "needs a server with the url of the agent's card"},
		{"tool", `{"name":"t","description":"d","type":"a2a","server":{"url":"http://x","include":["*"]}}`, "/definition/server", "has a url and tokenEnv alone"},
		{"tool", `{"name":"t","description":"d","type":"a2a","server":{"url":"http://u:p@x"}}`, "/definition/server/url", "holds a user or a password"},
		{"tool", `{"name":"t","description":"d","type":"a2a","server":{"url":"http://x"},"parameters":{"type":"object"}}`, "/definition/parameters", "has no parameters"},
		{"tool", `{"name":"t","description":"d","type":"a2a","server":{"url":"http://x"},"workerWaitMs":5}`, "/definition/workerWaitMs", "has no workerWaitMs"},
		{"tool", tool(`,"retries":{}`), "/definition/retries/attempts", "is missing"},
		{"tool", parameters(`true`), "/definition/parameters", "must be an object"},
		{"tool", parameters(`{}`), "/definition/parameters/type", "must be object"},
		{"tool", parameters(`{"type":["object"]}`), "/definition/parameters/type", "must be object"},
		{"tool", parameters(`{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}`), "/definition/parameters/$schema", "must be https://json-schema.org/draft/2020-12/schema"},
		{"tool", parameters(`{"type":"object","properties":{"a":{"type":"strin"}}}`), "/definition/parameters/properties/a/type", "is no JSON Schema"},
		{"tool", parameters(`{"type":"object","required":"a"}`), "/definition/parameters/required", "is no JSON Schema"},
		{"tool", parameters(`{"type":"object","properties":{"a":{"$ref":"https://example.org/a.json"}}}`), "/definition/parameters", "refers to https://example.org/a.json"},
		{"tool", parameters(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`), "/definition/parameters", "refers to file:///etc/passwd"},
		{"tool", parameters(`{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`), "/definition/parameters", "is no JSON Schema"},
		{"tool", parameters(`{"type":"object","properties":{"a":{"pattern":"("}}}`), "/definition/parameters/properties/a/pattern", "is no JSON Schema"},
		{"tool", parameters(`{"type":"object","properties":{"a":{"$dynamicRef":"#x"}}}`), "/definition/parameters", "uses $dynamicRef, which is not known here"},
		{"tool", parameters(`{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`), "/definition/parameters", "leads back to itself"},
		{"tool", parameters(`{"type":"object","properties":{"a":{"maximum":1e999999999}}}`), "/definition/parameters/properties/a/maximum", "the number is out of range"},
		{"tool", server(`{}`), "/definition/server", "exactly one of command and url is needed"},
		{"tool", server(`{"command":"x","url":"http://x"}`), "/definition/server", "exactly one of command and url is needed"},
		{"tool", server(`{"command":"x","env":["TOKEN=abc"]}`), "/definition/server/env/0", "must be the name of a variable, without a value"},
		{"tool", server(`{"command":"x","env":["A","A"]}`), "/definition/server/env/1", "A stands twice"},
		{"tool", server(`{"command":"x","tokenEnv":"A"}`), "/definition/server/tokenEnv", "only a url has tokenEnv"},
		{"tool", server(`{"url":"http://x","args":["a"]}`), "/definition/server/args", "only a command has args"},
		{"tool", server(`{"url":"http://x","env":["A"]}`), "/definition/server/env", "only a command has env"},
		{"tool", server(`{"url":"http://x","tokenEnv":"A=b"}`), "/definition/server/tokenEnv", "must be the name of a variable"},
		{"tool", tool(`,"ownThread":true`), "/definition/ownThread", "only a tool of type agent has ownThread"},
		{"tool", server(`{"command":"x","exclude":["a"]}`), "/definition/server/exclude", "excludes tools of a whole server, which has include"},
		{"tool", server(`{"command":"x","include":["*"],"tool":"a"}`), "/definition/server/tool", "names one tool, and include is of a whole server"},
		{"tool", server(`{"command":"x","include":["*"]},"parameters":{"type":"object"}`), "/definition/parameters", "a whole server's tools have their own"},
		{"tool", server(`{"command":"x","include":["a","b*","a"]}`), "/definition/server/include/2", "a stands twice"},
		{"tool", server(`{"command":"x","include":["*"],"exclude":["a","a"]}`), "/definition/server/exclude/1", "a stands twice"},
		{"tool", whole("a_"), "/definition/name", "begins the names of a whole server's tools: at most 24 letters"},
		{"tool", whole("a__b"), "/definition/name", "begins the names of a whole server's tools"},
		{"tool", whole(strings.Repeat("a", 25)), "/definition/name", "begins the names of a whole server's tools"},
		{"tool", server(`{"url":"https://"}`), "/definition/server/url", "must be an http or https address"},
		{"tool", server(`{"url":"https://a b"}`), "/definition/server/url", "must be an http or https address"},
		{"tool", server(`{"url":"ftp://x"}`), "/definition/server/url", "must be an http or https address"},
		{"tool", server(`{"url":"https://me:secret@x"}`), "/definition/server/url", "holds a user or a password"},
		{"tool", `{"name":"t","description":"d","type":"http"}`, "/definition/http", "needs an endpoint"},
		{"tool", tool(`,"http":{"url":"http://x","secretEnv":["A"]}`), "/definition/http", "only a tool of type http has an endpoint"},
		{"tool", endpoint(`{"url":"http://x"}`), "/definition/http/secretEnv", "is missing"},
		{"tool", endpoint(`{"url":"http://x","secretEnv":[]}`), "/definition/http/secretEnv", "1 to 2 elements"},
		{"tool", endpoint(`{"url":"http://x","secretEnv":["A","B","C"]}`), "/definition/http/secretEnv", "1 to 2 elements"},
		{"tool", endpoint(`{"url":"http://x","secretEnv":["A=secret"]}`), "/definition/http/secretEnv/0", "must be the name of a variable, without a value"},
		{"tool", endpoint(`{"url":"http://x","secretEnv":["A","A"]}`), "/definition/http/secretEnv/1", "A stands twice"},
		{"tool", endpoint(`{"url":"file:///x","secretEnv":["A"]}`), "/definition/http/url", "must be an http or https address"},
		{"tool", endpoint(`{"url":"https://me:secret@x","secretEnv":["A"]}`), "/definition/http/url", "holds a user or a password"},
		{"tool", endpoint(`{"url":"http://x","secretEnv":["A"]},"workerWaitMs":1`), "/definition/workerWaitMs", "a tool of type http has no workerWaitMs"},
		{"tool", endpoint(`{"url":"http://x","secretEnv":["A"]},"server":{"url":"http://x"}`), "/definition/server", "only a tool of type mcp or a2a has a server"},
		{"reactor", `{"name":"r","type":"http"}`, "/definition/http", "is missing"},
		{"reactor", `{"name":"r","type":"nats","http":{"url":"http://x","secretEnv":["A"]}}`, "/definition/type", "must be one of http"},
		{"reactor", `{"name":"r","type":"http","http":{"url":"x","secretEnv":["A"]}}`, "/definition/http/url", "must be an http or https address"},
		{"webhook", `{"name":"w"}`, "/definition/http", "is missing"},
		{"webhook", webhook(`,"types":["item.created","item.creatd"]`), "/definition/types/1", "is no type of an event"},
		{"webhook", webhook(`,"types":["chunk.emitted"]`), "/definition/types/0", "is no type of an event"},
		{"webhook", webhook(`,"types":["item.*","item.*"]`), "/definition/types/1", "item.* stands twice"},
		{"webhook", webhook(`,"types":["item.*","lifecycle.deleted"],"keyPrefix":"order:"`), "/definition/types/1", "is never sent to a webhook with agents or keyPrefix"},
		{"webhook", webhook(`,"types":["key.released"],"agents":["a"]`), "/definition/types/0", "is never sent"},
		{"webhook", webhook(`,"types":["definition.*"],"agents":["a"]`), "/definition/types/0", "is never sent"},
		{"webhook", webhook(`,"agents":["a","a"]`), "/definition/agents/1", "a stands twice"},
		{"webhook", `{"name":"w","http":{"url":"x","secretEnv":["A"]}}`, "/definition/http/url", "must be an http or https address"},
		{"tool", person(`,"answer":true`), "/definition/answer", "must be an object"},
		{"tool", person(`,"answer":{"$id":"urn:a"}`), "/definition/answer/$id", "has no name of its own"},
		{"tool", person(`,"answer":{"type":"strin"}`), "/definition/answer/type", "is no JSON Schema"},
		{"tool", person(`,"answer":{"properties":{"a":{"required":"a"}}}`), "/definition/answer/properties/a/required", "is no JSON Schema"},
		{"tool", person(`,"answer":{"$ref":"https://example.org/a.json"}`), "/definition/answer", "refers to https://example.org/a.json"},
		{"tool", person(`,"timeoutMs":1000`), "/definition/timeoutMs", "a tool of type person has no timeoutMs"},
		{"agent", `{"name":"a"}`, "/definition/type", "is missing; it must be one of ai_human, dual_ai"},
		{"agent", `{"name":"a","type":"human"}`, "/definition/type", "must be one of ai_human, dual_ai"},
		{"agent", `{"name":"a","type":"ai_human"}`, "/definition/model", "an agent needs a model or a reactor"},
		{"policy", `{"name":"modes"}`, "/definition/modes", "is needed by the policy modes"},
		{"policy", `{"name":"modes","modes":{"smart":7}}`, "/definition/modes", "must be an object with the name of an agent for each mode"},
		{"policy", `{"name":"modes","modes":{"smart":""}}`, "/definition/modes", "is no name"},
		{"policy", `{"name":"modes","modes":{" ":"a"}}`, "/definition/modes", "one has 1 to 128 bytes"},
		{"policy", `{"name":"modes","modes":{"x":"a"},"archiveAfterDays":3}`, "/definition/archiveAfterDays", "is a field of the policy retention, and not of modes"},
		{"policy", `{"name":"retention","modes":{"x":"a"}}`, "/definition/modes", "is a field of the policy modes, and not of retention"},
		{"agent", agent(`,"policy":"queue"`), "/definition/policy", "must be one of reject, enqueue, interrupt, steer"},
		{"agent", agent(`,"limits":{"iterations":0}`), "/definition/limits/iterations", "must be a whole number from 1 to 10000"},
		{"agent", agent(`,"limits":{"steps":1}`), "/definition/limits/steps", "there is no such field"},
		{"agent", agent(`,"tools":["a b"]`), "/definition/tools/0", "must be a tool's name"},
		{"agent", agent(`,"tools":["a",null]`), "/definition/tools/1", "is null"},
		{"agent", agent(`,"tools":["a","a"]`), "/definition/tools/1", "a stands twice"},
		{"agent", agent(`,"skills":["a","a"]`), "/definition/skills/1", "a stands twice"},
		{"agent", agent(`,"skills":["a","a"]`), "/definition/skills/1", "a stands twice"},
		{"agent", agent(`,"skills":["a"],"tools":["t","skill"]`), "/definition/tools/1", "skill is the tool by which the model loads skills"},
		{"agent", `{"name":"d","type":"dual_ai","sideA":{"model":"m"},"sideB":{"model":"m"},"skills":["a"]}`, "/definition/skills", "are only of an agent of type ai_human"},
		{"skill", `{"name":"s","text":"x"}`, "/definition/description", "is missing"},
		{"skill", `{"name":"s","description":"x"}`, "/definition/text", "is missing"},
		{"skill", `{"name":"s","description":"x","text":"y","tools":["t","t"]}`, "/definition/tools/1", "t stands twice"},
		{"skill", `{"name":"s","description":"x","text":"` + strings.Repeat("y", 32769) + `"}`, "/definition/text", "32768"},
		{"agent", agent(`,"loop":{"continue":"sometimes"}`), "/definition/loop/continue", "must be one of calls, always, never"},
		{"agent", agent(`,"loop":{"continue":"always"}`), "/definition/loop/stopAfter", "needs a tool that ends it"},
		{"agent", agent(`,"tools":["t"],"loop":{"stopAfter":["u"]}`), "/definition/loop/stopAfter/0", "u is no tool of the agent"},
		{"agent", agent(`,"tools":["t"],"loop":{"stopAfter":["t","t"]}`), "/definition/loop/stopAfter/1", "t stands twice"},
		{"agent", dual(`,"sideA":{"model":"m"},"sideB":{"model":"m"},"loop":{}`), "/definition/loop", "is only of an agent of type ai_human"},
		{"agent", agent(`,"sideA":{"model":"m"}`), "/definition/sideA", "only an agent of type dual_ai has sides"},
		{"agent", dual(`,"sideA":{"model":"m"}`), "/definition/sideB", "needs sideA and sideB"},
		{"agent", dual(`,"sideB":{"model":"m"}`), "/definition/sideA", "needs sideA and sideB"},
		{"agent", dual(`,"sideA":{},"sideB":{"model":"m"}`), "/definition/sideA/model", "a side needs a model or a reactor"},
		{"agent", dual(`,"sideA":{"model":"m"},"sideB":{"model":"m"},"model":"m"`), "/definition/model", "each side has its own model"},
		{"agent", dual(`,"sideA":{"model":"m"},"sideB":{"model":"m"},"tools":["t"]`), "/definition/tools", "each side has its own tools"},
		{"agent", dual(`,"sideA":{"model":"m"},"sideB":{"model":"m","tools":["t","t"]}`), "/definition/sideB/tools/1", "t stands twice"},
	} {
		_, err := v.Definition(events.NewDefinition{Kind: c.kind, Definition: events.JSON(c.raw)})
		refusedAt(t, err, c.raw, c.path, c.message)
	}
	_, err := v.Definition(events.NewDefinition{Kind: "prompt", Name: "q", Definition: events.JSON(`{"name":"p","text":"x"}`)})
	refusedAt(t, err, "two names", "/name", "the definition has another name in itself")
	_, err = v.Definition(events.NewDefinition{Kind: "prompt", Definition: events.JSON(`{"name":"p","text":"` + strings.Repeat("a", events.MaxDefinitionBytes) + `"}`)})
	if e := events.AsError(err); e.Code != events.PayloadTooLarge || !strings.Contains(e.Message, "prompt p") {
		t.Errorf("a large one: %v", err)
	}
	_, err = v.Definitions(events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: "prompt", Definition: events.JSON(`{"name":"p","text":"x"}`)}, {Kind: "prompt", Definition: events.JSON(`{"name":"q","text":1}`)},
	}})
	refusedAt(t, err, "the second", "/definitions/1/definition/text", "must be a text")
}

// Two definitions that say the same have the same canonical form, whatever the
// order, the spaces, and what stands for nothing; numbers and texts survive.
func TestDefinitionCanonical(t *testing.T) {
	v := newValidator(t)
	prefix := strings.Repeat("a", events.MaxToolPrefix)
	for want, list := range map[string][]events.NewDefinition{
		`{"model":"gpt","name":"m","params":{"a":[1.50,12345678901234567890,1e3],"b":"é\u0000"},"temperature":0.1}`: {
			{Kind: "model", Definition: events.JSON(`{"name":"m","model":"gpt","temperature":0.10,"params":{"b":"\u00e9\u0000","a":[1.50,12345678901234567890,1e3]}}`)},
			{Kind: "model", Name: "m", Definition: events.JSON(` { "temperature":1e-1, "params":{"a":[1.50, 12345678901234567890,1e3],"b":"é\u0000"},"model":"gpt","description":null,"reactor":""} `)},
		},
		`{"defaults":{"m":"","n":"you"},"name":"p","text":"{{n}} {{m}}","variables":["n","m"]}`: {
			{Kind: "prompt", Name: "p", Definition: events.JSON(`{"text":"{{n}} {{m}}","variables":["n","m"],"defaults" : {"n" : "you", "m":""}}`)},
		},
		`{"answer":{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"},"description":"Asks.","name":"ask","type":"person"}`: {
			{Kind: "tool", Definition: events.JSON(`{"name":"ask","description":"Asks.","type":"person","answer":{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}}`)},
		},
		`{"agent":"b","description":"Asks.","name":"ask","ownThread":true,"type":"agent"}`: {
			{Kind: "tool", Definition: events.JSON(`{"name":"ask","description":"Asks.","type":"agent","agent":"b","ownThread":true}`)},
		},
		`{"description":"All.","name":"` + prefix + `","server":{"exclude":["b"],"include":["a*","b"],"url":"http://x"},"type":"mcp"}`: {
			{Kind: "tool", Name: prefix, Definition: events.JSON(`{"description":"All.","type":"mcp","server":{"url":"http://x","include":["a*","b"],"exclude":["b"]}}`)},
		},
		`{"name":"p","text":"` + strings.Repeat("a", events.MaxDefinitionBytes-len(`{"name":"p","text":""}`)) + `"}`: {
			{Kind: "prompt", Definition: events.JSON(`{"name":"p","text":"` + strings.Repeat("a", events.MaxDefinitionBytes-len(`{"name":"p","text":""}`)) + `"}`)},
		},
		`{"model":"gpt","name":"m","temperature":2}`: {{Kind: "model", Name: "m", Definition: events.JSON(`{"model":"gpt","temperature":20e-1}`)}},
		`{"model":"gpt","name":"m","temperature":0}`: {{Kind: "model", Name: "m", Definition: events.JSON(`{"model":"gpt","temperature":-0.0e9}`)}},
		`{"name":"p","text":"x"}`: {
			{Kind: "prompt", Name: "p", Definition: events.JSON(`{"text":"x","variables":[]}`)},
			{Kind: "prompt", Name: "p", Definition: events.JSON(`{"name":"p","text":"x"}`)},
		},
	} {
		for _, d := range list {
			got, err := v.Definition(d)
			if err != nil || string(got.Definition) != want || got.Name == "" {
				t.Errorf("%s\nis   %s (%v)\nwant %s", d.Definition, got.Definition, err, want)
			}
			again, err := v.Definition(got)
			if err != nil || string(again.Definition) != want {
				t.Errorf("again: %s (%v)", again.Definition, err)
			}
		}
	}
}

// An object that is given a name is JSON still, whatever else is in it.
func TestWithName(t *testing.T) {
	for object, want := range map[string]string{
		`{}`: `{"name":"n"}`, " {\n} ": `{"name":"n"}`, `{"a":{}}`: `{"name":"n","a":{}}`, ` { "a":1 } `: `{"name":"n","a":1 }`,
	} {
		if got := withName(events.JSON(object), "n"); string(got) != want || !jsontext.Value(got).IsValid() {
			t.Errorf("%s with a name is %s, not %s", object, got, want)
		}
	}
}

// Definitions are refused and taken as their JSON Schemas say, but for what no
// schema can say.
func TestDefinitionsAgreeWithTheSchemas(t *testing.T) {
	v := newValidator(t)
	for seed := range rounds(1500) {
		for _, wrong := range []float64{0, 0.02, 0.2} {
			g := newInventor(seed, wrong)
			kind := pick(g, events.DefinitionRows()).Kind
			raw := []byte(g.document(v.definitions[kind].shape))
			err := error(nil)
			if syntax := checkSyntax(raw); syntax != nil {
				err = withPath(syntax)
			} else {
				_, err = v.definitions[kind].read(raw)
			}
			agree(t, v, definitionPath(kind), raw, err)
			_, _ = v.Definition(events.NewDefinition{Kind: kind, Definition: raw}) // must not panic
		}
	}
}
