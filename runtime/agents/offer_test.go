package agents_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// offer is a field of a definition, and a definition that differs from the usual one in
// it.
type offer struct {
	field  string // kind, then the path
	change string // the definition; its name selects the one that it replaces
	agent  string // the agent to ask; default a
	more   string // other definitions that the change needs, as kind=definition
}

// usual is what the changes are compared with.
func usual() []string {
	return []string{
		"model", `{"name":"m","model":"big","reactor":"hear"}`, "model", `{"name":"n","model":"small","reactor":"hear"}`,
		"prompt", `{"name":"p","text":"Hi {{x}}.","variables":["x"],"defaults":{"x":"A"}}`, "prompt", `{"name":"q","text":"Bye."}`,
		"tool", `{"name":"t","description":"D","type":"go"}`,
		"agent", `{"name":"b","type":"ai_human","reactor":"other"}`,
		"agent", `{"name":"a","type":"ai_human","model":"m","prompt":"p","tools":["t"],"retries":{"attempts":3,"backoffMs":1}}`,
		"agent", `{"name":"d","type":"dual_ai","retries":{"attempts":3,"backoffMs":1},"limits":{"iterations":4},"sideA":{"model":"m"},"sideB":{"model":"m"}}`,
	}
}

func offers() []offer {
	agent := func(more string) string {
		return `{"name":"a","type":"ai_human","model":"m","prompt":"p","tools":["t"],"retries":{"attempts":3,"backoffMs":1}` + more + `}`
	}
	tool := func(more string) string { return `{"name":"t","description":"D","type":"go"` + more + `}` }
	list := []offer{
		{field: "model/endpoint", change: `{"name":"m","model":"big","reactor":"hear","endpoint":"e"}`},
		{field: "model/fallback", change: `{"name":"m","model":"big","reactor":"hear","fallback":["n"]}`},
		{field: "model/model", change: `{"name":"m","model":"huge","reactor":"hear"}`},
		{field: "model/reactor", change: `{"name":"m","model":"big","reactor":"other"}`},
		{field: "model/contextTokens", change: `{"name":"m","model":"big","reactor":"hear","contextTokens":7}`},
		{field: "model/maxOutputTokens", change: `{"name":"m","model":"big","reactor":"hear","maxOutputTokens":7}`},
		{field: "model/temperature", change: `{"name":"m","model":"big","reactor":"hear","temperature":0.5}`},
		{field: "model/params", change: `{"name":"m","model":"big","reactor":"hear","params":{"reasoning":{"effort":"low"}}}`},
		{field: "prompt/text", change: `{"name":"p","text":"Ho {{x}}.","variables":["x"],"defaults":{"x":"A"}}`},
		{field: "prompt/variables", change: `{"name":"p","text":"Hi {{x}}."}`},
		{field: "prompt/defaults", change: `{"name":"p","text":"Hi {{x}}.","variables":["x"],"defaults":{"x":"B"}}`},
		{field: "tool/description", change: `{"name":"t","description":"E","type":"go"}`},
		{field: "tool/parameters", change: tool(`,"parameters":{"type":"object","required":["x"]}`)},
		{field: "tool/auto", change: tool(`,"auto":false`)},
		{field: "tool/idempotent", change: tool(`,"idempotent":true`)},
		{field: "tool/readOnly", change: tool(`,"readOnly":true`)},
		{field: "tool/portable", change: tool(`,"portable":false`)},
		{field: "tool/timeoutMs", change: tool(`,"timeoutMs":30000`)},
		{field: "tool/retries/attempts", change: tool(`,"retries":{"attempts":1}`)},
		{field: "tool/retries/backoffMs", change: tool(`,"retries":{"attempts":3,"backoffMs":3600000}`), more: "agent=" + agent(`,"limits":{"wallClockMs":3000}`)},
		{field: "tool/type", change: `{"name":"t","description":"D","type":"agent","agent":"b"}`},
		{field: "tool/agent", change: `{"name":"t","description":"D","type":"agent","agent":"b"}`},
		{field: "agent/reactor", change: agent(`,"reactor":"other"`)},
		{field: "agent/model", change: strings.Replace(agent(``), `"m"`, `"n"`, 1)},
		{field: "agent/prompt", change: strings.Replace(agent(``), `"p"`, `"q"`, 1)},
		{field: "agent/tools", change: strings.Replace(agent(``), `["t"]`, `[]`, 1)},
		{field: "agent/limits/iterations", change: agent(`,"limits":{"iterations":1}`)},
		{field: "agent/limits/wallClockMs", change: agent(`,"limits":{"wallClockMs":1}`)},
		{field: "agent/limits/tokens", change: agent(`,"limits":{"tokens":5}`)},
		{field: "agent/limits/toolTimeMs", change: agent(`,"limits":{"toolTimeMs":30000}`)},
		{field: "agent/retries/attempts", change: strings.Replace(agent(``), `"attempts":3`, `"attempts":1`, 1)},
		{field: "agent/retries/backoffMs", change: strings.Replace(agent(`,"limits":{"wallClockMs":3000}`), `"backoffMs":1`, `"backoffMs":3600000`, 1)},
		{field: "agent/history/maxBytes", change: agent(`,"history":{"maxBytes":1024}`)},
		{field: "agent/history/maxItems", change: agent(`,"history":{"maxItems":1}`)},
	}
	for _, side := range []string{"sideA", "sideB"} {
		for field, own := range map[string]string{
			"label": `{"model":"m","label":"Ann"}`, "reactor": `{"model":"m","reactor":"other"}`, "model": `{"model":"n"}`, "prompt": `{"model":"m","prompt":"p"}`,
			"tools": `{"model":"m","tools":["t"]}`, "stopOnResponse": `{"model":"m","stopOnResponse":true}`, "maxSteps": `{"model":"m","maxSteps":1}`,
		} {
			change := strings.Replace(usual()[len(usual())-1], `"`+side+`":{"model":"m"}`, `"`+side+`":`+own, 1)
			list = append(list, offer{field: "agent/" + side + "/" + field, change: change, agent: "d"})
		}
	}
	return list
}

// shownElsewhere names the tests of fields that are not changed here.
func shownElsewhere() map[string]string {
	return map[string]string{
		"model/name": "TestAgentOfDefinitions", "prompt/name": "TestAgentOfDefinitions", "tool/name": "TestAgentOfDefinitions", "agent/name": "TestAgentOfDefinitions",
		"model/description": "TestDescriptions", "prompt/description": "TestDescriptions", "agent/description": "TestDescriptions",
		"policy/description": "TestDescriptions", "context/description": "TestDescriptions",
		"tool/server/command": "TestServerOfDefinition", "tool/server/args": "TestServerOfDefinition", "tool/server/env": "TestServerOfDefinition",
		"tool/server/tool": "TestServerOfDefinition", "tool/server/url": "TestDefinitions_AreRestricted", "tool/server/tokenEnv": "TestDefinitions_AreRestricted",
		"tool/http/url": "TestEndpoint_ToolAndReactorOfDefinitions", "tool/http/secretEnv": "TestEndpoint_ToolAndReactorOfDefinitions",
		"reactor/name": "TestEndpoint_ToolAndReactorOfDefinitions", "reactor/description": "TestEndpoint_ToolAndReactorOfDefinitions", "reactor/type": "TestEndpoint_ToolAndReactorOfDefinitions",
		"reactor/http/url": "TestEndpoint_ToolAndReactorOfDefinitions", "reactor/http/secretEnv": "TestEndpoint_ToolAndReactorOfDefinitions",
		"webhook/name": "TestWebhook_KilledServer", "webhook/description": "TestHub_FiltersAndContents", "webhook/types": "TestHub_FiltersAndContents", "webhook/agents": "TestHub_FiltersAndContents",
		"webhook/keyPrefix": "TestHub_FiltersAndContents", "webhook/contents": "TestHub_FiltersAndContents", "webhook/http/url": "TestWebhook_KilledServer", "webhook/http/secretEnv": "TestWebhook_KilledServer",
		"tool/server/include": "TestWholeServer", "tool/server/exclude": "TestWholeServer", "tool/ownThread": "TestAgentInAThreadOfItsOwn",
		"agent/type": "TestSidesOfDefinitions", "agent/policy": "TestPolicyOfDefinition", "agent/hooks": "TestHooksOfDefinition", "agent/skills": "TestSkill_LoadedByTheModel",
		"agent/loop/continue": "TestLoopOfDefinition", "agent/loop/stopAfter": "TestLoopOfDefinition",
		"tool/question": "TestPerson_AnswerIsTheResult", "tool/answer": "TestPerson_AnswerIsTheResult",
		"tool/workerWaitMs": "TestCall_AbsentToolIsWaitedFor", "agent/limits/workerWaitMs": "TestCall_AbsentToolIsWaitedFor",
		"policy/modes": "TestDraftAndMode_OnAServer", "policy/off": "TestTitles_OnAServer", "policy/agent": "TestTitle_WrittenByAnAgent",
		"skill/name": "TestSkill_LoadedByTheModel", "skill/description": "TestSkill_LoadedByTheModel", "skill/text": "TestSkill_LoadedByTheModel", "skill/tools": "TestSkill_LoadedByTheModel",
		"policy/name": "TestPolicies", "policy/archiveAfterDays": "TestPolicies", "policy/coldAfterDays": "TestFreeze_Policy",
		"context/name": "TestTypedContexts", "context/schema": "TestTypedContexts",
	}
}

// No field of a definition is ignored: for every field of every kind there is a
// definition here that differs only in it, with a run that shows the difference, or a
// test of its own. A field without either fails, so that a new one is not forgotten.
func TestEveryFieldOfEveryDefinition(t *testing.T) {
	shown := shownElsewhere()
	for _, o := range offers() {
		if shown[o.field] != "" {
			t.Errorf("%s has two places", o.field)
		}
		shown[o.field] = t.Name()
	}
	var fields []string
	for _, row := range events.DefinitionRows() {
		fields = append(fields, fieldsOf(string(row.Kind), reflect.TypeOf(row.New()))...)
	}
	bodies := testBodies(t)
	for _, field := range fields {
		body, there := bodies[shown[field]]
		name := field[strings.LastIndexByte(field, '/')+1:]
		switch {
		case shown[field] == "":
			t.Errorf("nothing shows that %s does anything: change it in a row of offers, or refuse it", field)
		case !there:
			t.Errorf("%s is shown by %s, which is not there", field, shown[field])
		case shown[field] != t.Name() && !strings.Contains(strings.ToLower(body), strings.ToLower(name)):
			t.Errorf("%s is shown by %s, which does not name it", field, shown[field])
		}
		delete(shown, field)
	}
	for _, field := range slices.Sorted(maps.Keys(shown)) {
		t.Errorf("%s is no field of a definition", field)
	}
}

// fieldsOf lists the paths of a type's fields, with those of its structs in their
// place.
func fieldsOf(path string, of reflect.Type) (list []string) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		inner := of.Field(i).Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			list = append(list, fieldsOf(path+"/"+name, inner)...)
			continue
		}
		list = append(list, path+"/"+name)
	}
	return list
}

// testBodies returns the source of every test of the project, by name.
func testBodies(t *testing.T) map[string]string {
	t.Helper()
	bodies := map[string]string{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, source, 0)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				bodies[fn.Name.Name] += string(source[files.Position(fn.Pos()).Offset:files.Position(fn.End()).Offset])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bodies
}

// hearing is a reactor that answers with its whole input, after two attempts that fail
// temporarily, and calls the first permitted tool.
func hearing(name string) runtime.Reactor {
	return runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		if in.Iteration == 0 && in.Attempt < 3 {
			return nil, &runtime.RetryError{Err: errors.New("not now")}
		}
		told, err := json.Marshal(map[string]any{
			"by": name, "model": in.Model, "instructions": in.Instructions, "tools": in.Tools, "side": in.Side, "label": in.SideLabel, "items": len(in.Items), "omitted": in.Omitted,
		}, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		part, err := json.Marshal(map[string]string{"type": "output_text", "text": string(told)}, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		out := &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{part}}, Usage: &runtime.Usage{TotalTokens: 10}}
		if in.Iteration == 0 && len(in.Tools) > 0 && !in.Tools[0].Manual {
			out.ToolCalls = []runtime.ToolCall{{CallID: "c1", Name: in.Tools[0].Name, Arguments: events.JSON(`{}`)}}
		}
		return out, nil
	})
}

// patient is a tool that succeeds in its third attempt, and reports its time limit.
func patient() (runtime.Tool, error) {
	return runtime.DefineTool(runtime.ToolSpec{Name: "t"}, func(ctx context.Context, in *runtime.ToolInput, _ struct{}) (string, error) {
		if in.Attempt < 3 {
			return "", &runtime.RetryError{NotMade: true, Err: errors.New("not now")}
		}
		until, _ := ctx.Deadline()
		return fmt.Sprintf("attempt %d, quick %v", in.Attempt, time.Until(until) < time.Minute), nil
	})
}

// Each field changes the outcome of a run.
func TestOffers(t *testing.T) {
	h := start(t, func(c *server.Config) {
		c.ModelEndpoints = []string{"e=chat,http://127.0.0.1:1/v1"} // nobody answers
		c.Register = func(r *runtime.Registry) error {
			tool, err := patient()
			return errors.Join(err, r.AddReactor("hear", hearing("hear")), r.AddReactor("other", hearing("other")), r.AddTool(tool))
		}
	})
	observe := func(agent string) string {
		x, answer := h.ask(agent)
		return string(x.Status) + " " + x.ErrorText + " " + answer
	}
	h.apply(usual()...)
	before := map[string]string{"a": observe("a"), "d": observe("d")}
	if again := observe("a"); again != before["a"] || !strings.Contains(again, "attempt 3, quick false") || !strings.HasPrefix(again, "completed") {
		t.Fatalf("an agent's answer is not always the same:\n%s\n%s", before["a"], again)
	}
	for _, o := range offers() {
		kind, _, _ := strings.Cut(o.field, "/")
		change := []string{kind, o.change}
		if kind, def, ok := strings.Cut(o.more, "="); ok {
			change = append(change, kind, def)
		}
		agent := o.agent
		if agent == "" {
			agent = "a"
		}
		h.apply(change...)
		if got := observe(agent); got == before[agent] {
			t.Errorf("%s changes nothing: %s", o.field, got)
		}
		h.apply(usual()...)
	}
}

// A description, which is for people, is returned as it was applied.
func TestDescriptions(t *testing.T) {
	h := start(t, nil)
	for kind, def := range map[string]string{
		"model": `{"name":"x","model":"m"`, "prompt": `{"name":"x","text":"t"`, "agent": `{"name":"x","type":"ai_human","reactor":"say"`,
		"policy": `{"name":"retention"`, "context": `{"name":"x","schema":{"type":"object"}`,
	} {
		name := "x"
		if kind == "policy" {
			name = "retention"
		}
		reply, err := h.c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
			{Kind: events.DefinitionKind(kind), Definition: events.JSON(def + `,"description":"for ` + kind + `"}`)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		seq := reply.Seq
		got, err := client.Read(t.Context(), h.c, events.GetDefinition{Kind: events.DefinitionKind(kind), Name: name, Fresh: events.Fresh{MinSeq: &seq}})
		if err != nil || !strings.Contains(string(got.Definition), `"description":"for `+kind+`"`) {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
	}
}

// The command, args, env and tool of a definition are used to start and call an MCP
// server.
func TestServerOfDefinition(t *testing.T) {
	t.Setenv("SHOP_NAME", "corner")
	h := start(t, func(c *server.Config) {
		c.EgressAllow = []string{"127.0.0.1"}
		c.MCPPrograms, c.MCPVariables = true, []string{"acme:SHOP_NAME=/bin/sh"}
	})
	mark := filepath.Join(t.TempDir(), "mark")
	define := func(name, server string) (*events.Execution, string) {
		h.apply("tool", `{"name":"`+name+`","description":"D","type":"mcp","server":`+server+`}`, "agent", `{"name":"a","type":"ai_human","reactor":"say","tools":["`+name+`"]}`)
		return h.ask("a")
	}
	// Not an MCP server, but a program that reports how it was started.
	x, _ := define("price", `{"command":"/bin/sh","args":["-c","echo $1-$SHOP_NAME > $0","`+mark+`","first"],"env":["SHOP_NAME"]}`)
	if got, err := os.ReadFile(mark); err != nil || string(got) != "first-corner\n" || x.Status != events.ExecutionFailed {
		t.Errorf("%q, %v: %s", got, err, x.Status)
	}
	sells := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1.0.0"}, nil)
	mcp.AddTool(sells, &mcp.Tool{Name: "price", Description: "A price."}, func(context.Context, *mcp.CallToolRequest, struct {
		N int64 `json:"n"`
	}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "5 euros"}}}, nil, nil
	})
	shop := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sells }, nil))
	defer shop.Close()
	if x, answer := define("cost", `{"url":"`+shop.URL+`","tool":"price"}`); x.Status != events.ExecutionCompleted || !strings.Contains(answer, "5 euros") {
		t.Errorf("%s %s: %s", x.Status, x.ErrorText, answer)
	}
	if x, _ := define("cost", `{"url":"`+shop.URL+`"}`); x.Status != events.ExecutionFailed {
		t.Errorf("a tool that the server has under another name: %s", x.Status)
	}
}
