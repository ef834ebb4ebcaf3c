package events

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

const fits = "fits" // where a value is refused: nowhere

// checks returns values of each type that has a Check, and the path at which Check refuses
// them.
func checks() map[string][]struct {
	value checked
	path  string
} {
	type row = struct {
		value checked
		path  string
	}
	one, x := to(int64(1000)), to("x")
	item := UserText("x")
	side := &AgentSide{Model: "m"}
	parts := func(content string) NewItem { return NewItem{Type: Message, Role: User, Content: raw(content)} }
	call := func(content string) NewItem { return NewItem{Type: ActionExecute, Content: raw(content)} }
	result := func(content string) NewItem { return NewItem{Type: ActionResult, Content: raw(content)} }
	long := strings.Repeat("ü", 256)
	return map[string][]row{
		"ResolveApproval": {
			{ResolveApproval{Grant: true}, fits}, {ResolveApproval{Deny: true}, fits}, {ResolveApproval{Result: raw(`1`)}, fits},
			{ResolveApproval{Grant: true, Arguments: raw(`{}`), Reason: "x"}, fits}, {ResolveApproval{Deny: true, Reason: "x"}, fits},
			{ResolveApproval{}, ""}, {ResolveApproval{Grant: true, Deny: true}, ""}, {ResolveApproval{Grant: true, Result: raw(`1`)}, ""}, {ResolveApproval{Deny: true, Result: raw(`1`)}, ""},
			{ResolveApproval{Deny: true, Arguments: raw(`{}`)}, "/arguments"}, {ResolveApproval{Result: raw(`1`), Arguments: raw(`{}`)}, "/arguments"},
			{ResolveApproval{Result: raw(`1`), Reason: "x"}, "/reason"},
		},
		"SetContext": {
			{SetContext{Content: raw(`1`)}, fits}, {SetContext{Patch: raw(`1`)}, fits}, {SetContext{}, ""}, {SetContext{Content: raw(`1`), Patch: raw(`1`)}, ""},
		},
		"ReactThread": {
			{ReactThread{Text: x}, fits}, {ReactThread{Item: &item}, fits}, {ReactThread{}, "/item"}, {ReactThread{Text: x, Item: &item}, ""},
		},
		"AgentLoop": {
			{AgentLoop{}, fits}, {AgentLoop{Continue: ContinueNever}, fits}, {AgentLoop{Continue: ContinueAlways, StopAfter: []string{"t"}}, fits},
			{AgentLoop{StopAfter: []string{"t"}}, fits}, {AgentLoop{Continue: ContinueAlways}, "/stopAfter"},
		},
		"AgentDefinition": {
			{AgentDefinition{Type: AIHuman, Model: "m"}, fits}, {AgentDefinition{Type: AIHuman, Reactor: "r"}, fits}, {AgentDefinition{Type: AIHuman}, "/model"},
			{AgentDefinition{Type: AIHuman, Model: "m", SideA: side}, "/sideA"}, {AgentDefinition{Type: AIHuman, Model: "m", SideB: side}, "/sideB"},
			{AgentDefinition{Type: DualAI, SideA: side, SideB: side}, fits}, {AgentDefinition{Type: DualAI, SideB: side}, "/sideA"}, {AgentDefinition{Type: DualAI, SideA: side}, "/sideB"},
			{AgentDefinition{Type: DualAI, SideA: side, SideB: side, Reactor: "r"}, "/reactor"}, {AgentDefinition{Type: DualAI, SideA: side, SideB: side, Model: "m"}, "/model"},
			{AgentDefinition{Type: DualAI, SideA: side, SideB: side, Prompt: "p"}, "/prompt"}, {AgentDefinition{Type: DualAI, SideA: side, SideB: side, Tools: []string{"t"}}, "/tools"},
		},
		"AgentSide":        {{AgentSide{Model: "m"}, fits}, {AgentSide{Reactor: "r"}, fits}, {AgentSide{}, "/model"}},
		"PolicyDefinition": {{PolicyDefinition{Name: RetentionPolicy}, fits}, {PolicyDefinition{Name: ModesPolicy}, fits}, {PolicyDefinition{Name: TitlesPolicy}, fits}, {PolicyDefinition{Name: "mercy"}, "/name"}},
		"ToolDefinition": {
			{ToolDefinition{Type: GoTool}, fits}, {ToolDefinition{Type: NATSTool}, fits}, {ToolDefinition{Type: MCPTool, Server: &ToolServer{URL: "x"}}, fits}, {ToolDefinition{Type: AgentTool, Agent: "a"}, fits},
			{ToolDefinition{Type: MCPTool}, "/server"}, {ToolDefinition{Type: GoTool, Server: &ToolServer{}}, "/server"},
			{ToolDefinition{Type: AgentTool}, "/agent"}, {ToolDefinition{Type: GoTool, Agent: "a"}, "/agent"},
		},
		"ToolServer": {
			{ToolServer{Command: "c", Args: []string{"a"}, Env: []string{"E"}}, fits}, {ToolServer{URL: "u", TokenEnv: "E"}, fits},
			{ToolServer{}, ""}, {ToolServer{Command: "c", URL: "u"}, ""},
			{ToolServer{URL: "u", Args: []string{"a"}}, "/args"}, {ToolServer{URL: "u", Env: []string{"E"}}, "/env"}, {ToolServer{Command: "c", TokenEnv: "E"}, "/tokenEnv"},
		},
		"ScheduleEffect": {
			{ScheduleEffect{}, fits}, {ScheduleEffect{DelayMs: one}, fits}, {ScheduleEffect{At: "t"}, fits}, {ScheduleEffect{EveryMs: one}, fits}, {ScheduleEffect{Cron: "c"}, fits},
			{ScheduleEffect{DelayMs: one, At: "t"}, ""}, {ScheduleEffect{EveryMs: one, Cron: "c"}, ""}, {ScheduleEffect{DelayMs: one, Cron: "c"}, ""}, {ScheduleEffect{At: "t", EveryMs: one}, ""},
		},
		"RecordTrace": {
			{RecordTrace{Kind: TraceLog, Text: "x", Level: LogWarn}, fits}, {RecordTrace{Kind: TraceUsage}, fits}, {RecordTrace{Kind: TraceSpanKind, SpanID: "s", ExecutionID: "e"}, fits},
			{RecordTrace{Kind: TraceLog}, "/text"}, {RecordTrace{Kind: TraceUsage, Level: LogWarn}, "/level"},
			{RecordTrace{Kind: TraceSpanKind, ExecutionID: "e"}, "/spanId"}, {RecordTrace{Kind: TraceSpanKind, SpanID: "s"}, "/spanId"},
		},
		"At": {{At{Version: one}, fits}, {At{Time: "t"}, fits}, {At{}, ""}, {At{Version: one, Time: "t"}, ""}},
		"NewItem": {
			{parts(`[]`), fits}, {parts(`[{"type":"x"},{"type":"input_text","text":""}]`), fits}, {parts(`[{"type":"refusal","refusal":"no"}]`), fits},
			{NewItem{Type: Message, Content: raw(`[]`)}, "/role"}, {parts(`{}`), "/content"}, {parts(`[1]`), "/content/0"}, {parts(`[{"type":"x"},{}]`), "/content/1/type"},
			{parts(`[{"type":"` + strings.Repeat("ü", 128) + `"}]`), fits}, {parts(`[{"type":"` + strings.Repeat("x", 129) + `"}]`), "/content/0/type"}, {parts(`[{"type":""}]`), "/content/0/type"},
			{parts(`[{"type":7}]`), "/content/0/type"}, {parts(`[{"type":"output_text"}]`), "/content/0/text"}, {parts(`[{"type":"input_text","text":1}]`), "/content/0/text"},
			{parts(`[{"type":"refusal","text":"no"}]`), "/content/0/refusal"},
			{call(`{"callId":"` + long + `","name":"n","arguments":null}`), fits}, {call(`{"callId":"` + long + `x","name":"n","arguments":1}`), "/content/callId"},
			{call(`{"callId":"c","name":"","arguments":1}`), "/content/name"}, {call(`{"callId":"c","name":"n"}`), "/content/arguments"}, {call(`[]`), "/content"},
			{call(`{"callId":7,"name":"n","arguments":1}`), "/content/callId"}, {call(`{"callId":"c","name":"n","arguments":1,"more":1}`), "/content/more"},
			{NewItem{Type: ActionExecute, Role: User, Content: raw(`{"callId":"c","name":"n","arguments":1}`)}, "/role"},
			{result(`{"callId":"c","output":null,"isError":true,"name":"n"}`), fits}, {result(`{"callId":"c","output":1,"isError":false}`), fits},
			{result(`{"callId":"c"}`), "/content/output"}, {result(`{"callId":"c","output":1,"isError":"yes"}`), "/content/isError"},
			{result(`{"callId":"c","output":1,"name":""}`), "/content/name"}, {result(`{"output":1}`), "/content/callId"},
			{NewItem{Type: ItemReference, Content: raw(`{"itemId":"i"}`)}, fits}, {NewItem{Type: ItemReference, Content: raw(`{}`)}, "/content/itemId"},
		},
	}
}

type checked interface {
	Check() error
	Constraint() string
}

// Check refuses at the right path, and the JSON Schema from Constraint accepts and refuses the
// same values.
func TestCheck_AgreesWithConstraint(t *testing.T) {
	for name, list := range checks() {
		schema, err := jsonschema.CompileString(name+".json", list[0].value.Constraint())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, c := range list {
			if got := fmt.Sprintf("%T", c.value); got != "events."+name {
				t.Fatalf("a %s among the %s", got, name)
			}
			text, err := json.Marshal(c.value)
			if err != nil {
				t.Fatal(err)
			}
			err = c.value.Check()
			if c.path == fits {
				if err != nil {
					t.Errorf("%s %s: %v", name, text, err)
				}
			} else if e := AsError(err); err == nil || e.Code != InvalidRequest || e.Details == nil || e.Details.Path != c.path {
				t.Errorf("%s %s: %v, want it refused at %q", name, text, err, c.path)
			}
			var instance any
			if err := json.Unmarshal(text, &instance); err != nil {
				t.Fatal(err)
			}
			if says := schema.Validate(instance); (says == nil) != (c.path == fits) {
				t.Errorf("%s %s: its JSON Schema says %v", name, text, says)
			}
		}
	}
}

// A time in milliseconds is all of that millisecond, since documents show no more of it.
func TestAt_Bound(t *testing.T) {
	version := int64(7)
	if v, until, err := (At{Version: &version}).Bound(); v != 7 || until != 0 || err != nil {
		t.Errorf("a version: %d, %d, %v", v, until, err)
	}
	for text, want := range map[string]string{
		"2026-02-20T10:00:00.123Z": "2026-02-20T10:00:00.123999Z", "2026-02-20T10:00:00.123004Z": "2026-02-20T10:00:00.123004Z",
	} {
		last, err := ParseTime(want)
		if err != nil {
			t.Fatal(err)
		}
		if v, until, err := (At{Time: text}).Bound(); v != 0 || until != last || err != nil {
			t.Errorf("%s: %d, %s, %v", text, v, until, err)
		}
	}
	if _, _, err := (At{Time: "yesterday"}).Bound(); err == nil {
		t.Error("what is no time has a bound")
	}
}
