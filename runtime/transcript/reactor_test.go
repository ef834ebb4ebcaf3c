package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/openaichat"
	"github.com/skein-threads/skein/internal/openaichat/chattest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
)

type chunks []runtime.Chunk

func (c *chunks) Chunk(chunk runtime.Chunk) { *c = append(*c, chunk) }

func call(id, name, arguments string) runtime.ToolCall {
	return runtime.ToolCall{CallID: id, Name: name, Arguments: events.JSON(arguments)}
}

func user(text string) events.Item {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return events.Item{Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":` + string(quoted) + `}]`)}
}

// EK-102, EK-103, EK-104: one answer a step, by its iteration, and always the same, also in
// what it streams.
func TestFixed(t *testing.T) {
	const long = "Ein Text mit Übung, länger als zwei Stücke von vierundzwanzig Buchstaben."
	r := transcript.Fixed(transcript.Text(long, call("c1", "look", `{"at":"x"}`)), transcript.Text("done"))
	react := func(iteration int64) (*runtime.Reaction, chunks) {
		var out chunks
		got, err := r.React(t.Context(), &runtime.StepInput{ItemID: "itm_1", Iteration: iteration}, &out)
		if err != nil {
			t.Fatal(err)
		}
		return got, out
	}
	first, stream := react(0)
	if string(first.AssistantEvent.Content[0]) != `{"type":"output_text","text":"`+long+`"}` || !reflect.DeepEqual(first.ToolCalls, []runtime.ToolCall{call("c1", "look", `{"at":"x"}`)}) {
		t.Errorf("%+v", first)
	}
	text := ""
	for _, c := range stream[:len(stream)-1] {
		var d struct{ ID, Delta string }
		if err := json.Unmarshal(c.Data, &d, json.MatchCaseInsensitiveNames(true)); err != nil || c.Type != runtime.ChunkTextDelta || d.ID != "itm_1" || utf8.RuneCountInString(d.Delta) > 24 {
			t.Errorf("%+v, %v", c, err)
		}
		text += d.Delta
	}
	if last := stream[len(stream)-1]; text != long || len(stream) != 5 || last.Type != runtime.ChunkToolInput || string(last.Data) != `{"toolCallId":"c1","toolName":"look","input":{"at":"x"}}` {
		t.Errorf("%q, %+v", text, stream)
	}
	if again, same := react(0); !reflect.DeepEqual(again, first) || !reflect.DeepEqual(same, stream) {
		t.Error("the same step has another answer")
	}
	if second, _ := react(1); string(second.AssistantEvent.Content[0]) != `{"type":"output_text","text":"done"}` || len(second.ToolCalls) != 0 {
		t.Errorf("%+v", second)
	}
	if _, err := r.React(t.Context(), &runtime.StepInput{Iteration: 2}, nil); err == nil || !strings.Contains(err.Error(), "2 steps; there is none for iteration 2") {
		t.Errorf("%v", err)
	}
}

// A script may be chosen by what is asked, may fail, and ends with its context.
func TestChosen(t *testing.T) {
	broke := errors.New("it broke")
	r := transcript.Chosen(func(in *runtime.StepInput) ([]transcript.Step, error) {
		switch text := transcript.Trigger(in); text {
		case "fail":
			return nil, broke
		case "fail later":
			return []transcript.Step{{Err: broke}}, nil
		default:
			return []transcript.Step{transcript.Text("you said " + text)}, nil
		}
	})
	for said, want := range map[string]string{"a": "you said a", "": "you said "} {
		got, err := r.React(t.Context(), &runtime.StepInput{Items: []events.Item{user("before"), user(said), {Type: events.Message, Role: events.Assistant}}}, nil)
		if err != nil || !strings.Contains(string(got.AssistantEvent.Content[0]), `"`+want+`"`) {
			t.Errorf("%q: %+v, %v", said, got, err)
		}
	}
	for _, said := range []string{"fail", "fail later"} {
		if _, err := r.React(t.Context(), &runtime.StepInput{Items: []events.Item{user(said)}}, nil); !errors.Is(err, broke) {
			t.Errorf("%q: %v", said, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broke)
	if _, err := r.React(ctx, &runtime.StepInput{}, nil); !errors.Is(err, broke) {
		t.Errorf("%v", err)
	}
}

// A conversation is said again: turns by the user's messages, steps by the
// assistant's, results by the calls, also where ids are used twice.
func TestConversation(t *testing.T) {
	parsed, err := openaichat.Parse([]byte(`{"id":"1","messages":[{"role":"system","content":"s"},{"role":"user","content":"one"},
		{"role":"assistant","content":"look","tool_calls":[{"id":"c","type":"function","function":{"name":"find","arguments":"{\"q\":1}"}},{"id":"d","type":"function","function":{"name":"send","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"d","content":"Error: no"},{"role":"tool","tool_call_id":"c","content":"found"},
		{"role":"assistant","content":"there"},{"role":"user","content":"two"},{"role":"user","content":"three"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"find","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c","content":"again"},{"role":"assistant","content":"end"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c := transcript.FromConversation(parsed)
	if got := strings.Join(c.Said(), " "); got != "one two three" {
		t.Errorf("said %q", got)
	}
	tools := map[string]runtime.Tool{}
	for _, tool := range c.Tools() {
		tools[tool.Spec().Name] = tool
	}
	var told []string
	var items []events.Item
	for turn, said := range c.Said() {
		items = append(items, user(said))
		for i := range max(1, len(c.Steps(turn))) {
			got, err := c.Reactor().React(t.Context(), &runtime.StepInput{Items: items, Iteration: int64(i)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			line := "say"
			for _, p := range got.AssistantEvent.Content {
				line += " " + string(p)
			}
			for _, call := range got.ToolCalls {
				result, err := tools[call.Name].Call(t.Context(), &runtime.ToolInput{CallID: call.CallID})
				if err != nil {
					t.Fatal(err)
				}
				line += " " + call.CallID + "=" + string(result.Status) + ":" + string(result.Result) + result.Error
			}
			told = append(told, line)
		}
	}
	want := []string{
		`say {"type":"output_text","text":"look"} c=success:"found" d=error:Error: no`, `say {"type":"output_text","text":"there"}`,
		`say`, `say c-8=success:"again"`, `say {"type":"output_text","text":"end"}`,
	}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("%s\nnot\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if _, err := c.Reactor().React(t.Context(), &runtime.StepInput{}, nil); err == nil || !strings.Contains(err.Error(), "3 turns") {
		t.Errorf("%v", err)
	}
	if result, err := tools["find"].Call(t.Context(), &runtime.ToolInput{CallID: "x"}); err != nil || result.Status != runtime.Failure {
		t.Errorf("%+v, %v", result, err)
	}
}

// Many conversations: every call has its own id and, in turn, its tool, and none
// is left out.
func TestFromConversation_EveryCall(t *testing.T) {
	raw, want := chattest.Conversations(2, 100)
	turns, calls := 0, 0
	for rec := range openaichat.Read(bytes.NewReader(raw)) {
		if rec.Err != nil {
			t.Fatal(rec.Err)
		}
		c, seen := transcript.FromConversation(rec.Conversation), map[string]bool{}
		turns += len(c.Said())
		for turn := range c.Said() {
			for _, s := range c.Steps(turn) {
				for _, call := range s.Calls {
					if calls++; seen[call.CallID] {
						t.Fatalf("%s: %s is used twice", rec.Conversation.ID, call.CallID)
					}
					seen[call.CallID] = true
				}
			}
		}
	}
	if turns != want.Turns || calls != want.Calls {
		t.Errorf("%d turns with %d calls, not %d with %d", turns, calls, want.Turns, want.Calls)
	}
}
