package agents_test

import (
	"context"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// AM-44: an agent whose definition names read_thread and find_thread reads another thread, which
// is recorded on both. A thread of another user is not found, also by an agent in a thread of its
// own that the run asks.
func TestBuiltIn_ReadAndFindThread(t *testing.T) {
	told := make(chan runtime.StepInput, 20)
	var calls []runtime.ToolCall
	h := with(t, func(r *runtime.Registry) error {
		if err := r.AddReactor("sub", calling(make(chan runtime.StepInput, 20), toolCall("read_thread", `{"thread":"key:of-ada"}`), toolCall("read_thread", `{"thread":"key:of-bob"}`))); err != nil {
			return err
		}
		return r.AddReactor("call", runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, s runtime.Stream) (*runtime.Reaction, error) {
			return calling(told, calls...).React(ctx, in, s)
		}))
	})
	h.apply("tool", `{"name":"read_thread","description":"Reads a thread of ours.","type":"go"}`,
		"tool", `{"name":"find_thread","description":"Finds a thread.","type":"go"}`,
		"agent", `{"name":"sub","type":"ai_human","reactor":"sub","tools":["read_thread"]}`,
		"tool", `{"name":"ask_sub","description":"Asks.","type":"agent","agent":"sub","ownThread":true}`,
		"agent", `{"name":"a","type":"ai_human","reactor":"call","tools":["read_thread","find_thread","ask_sub"]}`)
	ids := map[string]string{}
	for _, user := range []string{"ada", "bob"} {
		made, err := h.c.Send(t.Context(), "", events.CreateThread{UserID: user, Key: "of-" + user, Title: "The order of " + user})
		if err != nil {
			t.Fatal(err)
		}
		ids[user] = made.ThreadID
		text := "the secret of " + user
		if _, err := h.c.Send(t.Context(), made.ThreadID, events.AddMessage{Role: events.FromUser, Content: &text}); err != nil {
			t.Fatal(err)
		}
	}
	calls = []runtime.ToolCall{
		toolCall("find_thread", `{"query":"order"}`), toolCall("read_thread", `{"thread":"key:of-ada","question":"what is the secret"}`),
		toolCall("read_thread", `{"thread":"key:of-bob"}`), toolCall("read_thread", `{"id":"x"}`), toolCall("ask_sub", `{"prompt":"read"}`),
	}
	own, err := h.c.Send(t.Context(), "", events.CreateThread{UserID: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	x, answer := h.react(t.Context(), own.ThreadID, "a")
	if x.Status != events.ExecutionCompleted {
		t.Fatalf("%s: %s", x.Status, x.ErrorText)
	}
	first := <-told
	if len(first.Tools) != 3 || first.Tools[0].Description != "Reads a thread of ours." || !strings.Contains(string(first.Tools[0].Parameters), `"question"`) || !first.Tools[1].ReadOnly || first.Tools[0].ReadOnly || !first.Tools[0].Idempotent {
		t.Errorf("the tools are %+v", first.Tools)
	}
	for _, part := range []string{"The order of ada", "the secret of ada", "there is no thread key:of-bob that can be read here", "the arguments do not fit"} {
		if !strings.Contains(answer, part) {
			t.Errorf("%q is not in the answer: %s", part, answer)
		}
	}
	mentions := func(id string, role events.RelationshipRole) (list []string) {
		got, err := client.Read(t.Context(), h.c, events.ListRelationships{ThreadID: id, Role: role})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Relationships {
			list = append(list, r.ThreadID+" "+r.Comment)
		}
		return list
	}
	if got := mentions(own.ThreadID, events.ParentRole); len(got) != 1 || got[0] != ids["ada"]+" what is the secret" {
		t.Errorf("the run's thread mentions %q", got)
	}
	if got := mentions(ids["ada"], events.ChildRole); len(got) != 2 { // by the run, and by the agent that it asked
		t.Errorf("the thread of ada is mentioned by %q", got)
	}
	if got := mentions(ids["bob"], ""); got != nil || strings.Contains(answer, "the secret of bob") {
		t.Errorf("the thread of bob was read: %q: %s", got, answer)
	}
}

// A Go tool that a program registers under the name of one that is built in takes its place.
func TestBuiltIn_RegisteredToolGoesFirst(t *testing.T) {
	told := make(chan runtime.StepInput, 20)
	h := with(t, func(r *runtime.Registry) error {
		if err := r.AddReactor("call", calling(told, toolCall("find_thread", `{}`))); err != nil {
			return err
		}
		own, err := runtime.DefineTool(runtime.ToolSpec{Name: "find_thread"}, func(context.Context, *runtime.ToolInput, struct{}) (string, error) { return "my own", nil })
		if err != nil {
			return err
		}
		return r.AddTool(own)
	})
	h.apply("tool", `{"name":"find_thread","description":"Finds.","type":"go"}`, "agent", `{"name":"a","type":"ai_human","reactor":"call","tools":["find_thread"]}`)
	if _, answer := h.ask("a"); !strings.Contains(answer, "my own") {
		t.Error(answer)
	}
}
