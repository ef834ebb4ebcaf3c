package agents_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// calling is a reactor that makes one call in each step, and then answers. It passes on what
// it was told.
func calling(told chan<- runtime.StepInput, calls ...runtime.ToolCall) runtime.Reactor {
	return runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		told <- *in
		out := &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":"so"}`)}}}
		if n := int(in.Iteration); n < len(calls) {
			call := calls[n]
			call.CallID = fmt.Sprint("c", n)
			out.ToolCalls = []runtime.ToolCall{call}
		}
		return out, nil
	})
}

// toolCall is a call of a tool with JSON arguments.
func toolCall(name, arguments string) runtime.ToolCall {
	return runtime.ToolCall{Name: name, Arguments: events.JSON(arguments)}
}

// skilled starts a server with an agent "a" whose tool double needs the skill arithmetic, and
// whose tool manual needs it and an approval.
func skilled(t *testing.T, calls ...runtime.ToolCall) (*house, chan runtime.StepInput) {
	told := make(chan runtime.StepInput, 20)
	h := with(t, func(r *runtime.Registry) error {
		if err := r.AddReactor("call", calling(told, calls...)); err != nil {
			return err
		}
		manual, err := runtime.DefineTool(runtime.ToolSpec{Name: "manual"}, func(context.Context, *runtime.ToolInput, struct{}) (string, error) { return "done", nil })
		if err != nil {
			return err
		}
		return r.AddTool(manual)
	})
	h.apply("prompt", `{"name":"p","text":"Be brief."}`, "tool", `{"name":"double","description":"Doubles.","type":"go"}`,
		"tool", `{"name":"manual","description":"Waits.","type":"go","auto":false}`,
		"skill", `{"name":"arithmetic","description":"How to count.","text":"Carry the one.","tools":["double","manual"]}`,
		"skill", `{"name":"poems","description":"How to rhyme.","text":"Use a dictionary."}`,
		"agent", `{"name":"a","type":"ai_human","reactor":"call","prompt":"p","tools":["double","manual"],"skills":["arithmetic","poems"]}`)
	return h, told
}

// activated returns the active skills of a thread.
func (h *house) activated(thread string) string {
	h.t.Helper()
	doc, err := client.Read(h.t.Context(), h.c, events.GetThread{ThreadID: thread})
	if err != nil {
		h.t.Fatal(err)
	}
	var list []string
	for _, s := range doc.ActivatedSkills {
		list = append(list, s.Name+string(s.Arguments))
	}
	return strings.Join(list, " ")
}

// AM-18, AM-90 to AM-93: the model is told which skills there are, and the tool that needs one
// is refused with an error that says how to load it. When the tool skill has returned the text,
// the skill is active, once, with its first arguments, and the call is made.
func TestSkill_LoadedByTheModel(t *testing.T) {
	h, told := skilled(t, toolCall("double", `{"n":21}`), toolCall("manual", `{}`), toolCall("skill", `{"name":"nothing"}`), toolCall("skill", `{"name":"arithmetic","arguments":{"page":1}}`),
		toolCall("double", `{"n":21}`), toolCall("skill", `{"name":"arithmetic","arguments":{"page":2}}`))
	made, err := h.c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	x, answer := h.react(t.Context(), made.ThreadID, "a")
	if x.Status != events.ExecutionCompleted {
		t.Fatalf("%s: %s", x.Status, x.ErrorText)
	}
	first := <-told
	// The description of each of the agent's skills.
	for _, part := range []string{"Be brief.", "arithmetic: How to count. (needed by the tools double, manual)", "poems: How to rhyme."} {
		if !strings.Contains(first.Instructions, part) {
			t.Errorf("%q is not in the instructions: %s", part, first.Instructions)
		}
	}
	if n := len(first.Tools); n != 3 || first.Tools[2].Name != "skill" || !strings.Contains(string(first.Tools[2].Parameters), `["arithmetic","poems"]`) {
		t.Errorf("the tools are %+v", first.Tools)
	}
	if strings.Contains(first.Instructions, "Carry the one.") {
		t.Errorf("the text is there before it was loaded: %s", first.Instructions)
	}
	for _, part := range []string{
		`the tool double needs the skill arithmetic, which is not active; call the tool skill with {\"name\":\"arithmetic\"}`,
		`the tool manual needs the skill arithmetic`, `Carry the one.`, `"output":42`, `the arguments do not fit`,
	} {
		if !strings.Contains(answer, part) {
			t.Errorf("%s is not in the answer: %s", part, answer)
		}
	}
	if got := h.activated(made.ThreadID); got != `arithmetic{"page":1}` {
		t.Errorf("active are %s", got)
	}
	list, err := client.Read(t.Context(), h.c, events.ListEvents{ThreadID: made.ThreadID, Types: []string{string(events.SkillActivatedType)}})
	if err != nil || len(list.Events) != 1 {
		t.Errorf("it was activated %d times (%v)", len(list.Events), err)
	}
}

// A person activates a skill with skill.activate: the model is told its text, and the tools
// that need it work. A second activation changes nothing and is no error; a skill that is not
// defined is not found, and one that is active stays so when its definition is removed.
func TestSkill_ActivatedByACaller(t *testing.T) {
	h, told := skilled(t, toolCall("double", `{"n":21}`))
	ctx := t.Context()
	made, err := h.c.Send(ctx, "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	send := func(d events.ActivateSkill) (*events.Reply, error) { return h.c.Send(ctx, made.ThreadID, d) }
	if _, err := send(events.ActivateSkill{Name: "nothing"}); events.AsError(err).Code != events.NotFound {
		t.Errorf("an unknown skill: %v", err)
	}
	large := events.JSON(`{"x":"` + strings.Repeat("x", events.MaxSkillArguments) + `"}`)
	if _, err := send(events.ActivateSkill{Name: "poems", Arguments: large}); events.AsError(err).Code != events.PayloadTooLarge {
		t.Errorf("large arguments: %v", err)
	}
	if reply, err := send(events.ActivateSkill{Name: "arithmetic", Arguments: events.JSON(`{"a":1}`)}); err != nil || len(reply.Events) != 1 {
		t.Fatalf("%v, %v", reply, err)
	}
	if reply, err := send(events.ActivateSkill{Name: "arithmetic", Arguments: events.JSON(`{"a":2}`)}); err != nil || len(reply.Events) != 0 {
		t.Errorf("again: %v, %v", reply, err)
	}
	x, answer := h.react(ctx, made.ThreadID, "a")
	if in := <-told; x.Status != events.ExecutionCompleted || !strings.Contains(answer, `"output":42`) || !strings.Contains(in.Instructions, "The skill arithmetic is active:\nCarry the one.") {
		t.Errorf("%s, %s, told %s", x.Status, answer, in.Instructions)
	}
	h.apply("agent", `{"name":"a","type":"ai_human","reactor":"call","tools":["double"]}`)
	if _, err := h.c.Send(ctx, "", events.ApplyDefinitions{Remove: []events.DefinitionRef{{Kind: events.SkillKind, Name: "arithmetic"}}}); err != nil {
		t.Fatal(err)
	}
	if reply, err := send(events.ActivateSkill{Name: "arithmetic"}); err != nil || len(reply.Events) != 0 {
		t.Errorf("after its definition was removed: %v, %v", reply, err)
	}
	if got := h.activated(made.ThreadID); got != `arithmetic{"a":1}` {
		t.Errorf("active are %s", got)
	}
}
