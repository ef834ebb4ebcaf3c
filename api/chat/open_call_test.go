package chat_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// A call that nobody can answer any more is shown as failed, with the reason and its input: calls of
// other agents and questions after a stop, and all that a fork has taken over while they waited.
func TestTools_UnansweredCallsFail(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		if in.Agent == "boss" {
			r := skein.Answer("ask it")
			r.ToolCalls = []skein.ToolCall{{CallID: "c1", Name: "delegate", Arguments: []byte(`{"message":"hi"}`)}}
			return r, nil
		}
		return caller(ctx, in, out)
	})
	var apply events.ApplyDefinitions
	for kind, text := range map[events.DefinitionKind]string{
		events.ToolKind:  `{"name":"delegate","description":"Asks.","type":"agent","agent":"careful","ownThread":true}`,
		events.AgentKind: `{"name":"boss","type":"ai_human","reactor":"assistant","tools":["delegate"]}`,
	} {
		apply.Definitions = append(apply.Definitions, events.NewDefinition{Kind: kind, Definition: []byte(text)})
	}
	_, err := w.client.Send(t.Context(), "", apply)
	w.server.Must(err)
	check := func(what, chat, call, reason, input string) {
		t.Helper()
		list := w.messages(chat)
		for _, p := range list[len(list)-1].Parts {
			if p.ToolCallID == call {
				if p.State != "output-error" || p.ErrorText != reason || string(p.Input) != input || p.Approval != nil {
					t.Errorf("%s: call %s is shown as %s, %q, %s, %+v", what, call, p.State, p.ErrorText, p.Input, p.Approval)
				}
				return
			}
		}
		t.Errorf("%s: no call %s in %s", what, call, page(list))
	}

	boss := w.post(strings.Replace(submit("c1", text("u1", "hi")), `"assistant"`, `"boss"`, 1))
	boss.until("tool-input-available")
	thread, err := client.Read(t.Context(), w.upToDate().client, events.GetThread{ThreadID: "key:c1"})
	w.server.Must(err)
	for x := new(events.Execution); len(x.Waiting) == 0; { // the other agent has asked, and waits
		list, err := client.Read(t.Context(), w.upToDate().client, events.ListExecutions{ThreadID: thread.ID})
		w.server.Must(err)
		x = &list.Executions[0]
	}
	if status, body := w.do(http.MethodPost, "/chat/c1/stop", "{}"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if m := boss.rest(); !strings.Contains(m.String(), "tool-delegate="+events.CallUnfinished+"(output-error)") {
		t.Errorf("the stream of the stopped run shows %s", m)
	}
	check("a stop", "c1", "c1", events.CallUnfinished, `{"message":"hi"}`)

	w.post(careful("c2", text("u1", "hi"))).rest()
	waiting := w.upToDate()
	index, version := int64(1), waiting.version("c2")
	for what, fork := range map[string]events.ForkThread{"a fork at a message": {MessageIndex: &index}, "a fork at a version": {Version: &version}} {
		reply, err := w.client.Send(t.Context(), "key:c2", fork)
		w.server.Must(err)
		check(what, reply.Result.ChildID, "c1", events.CallLeft, `{"eur":5}`)
		check(what, reply.Result.ChildID, "c2", events.CallLeft, `{"question":"How much?"}`)
	}
	if list := w.messages("c2"); partState(list[1], "c1") != "approval-requested" {
		t.Errorf("the fork has changed its parent: %s", page(list))
	}
	w.do(http.MethodPost, "/chat/c2/stop", "{}")
	check("a stop", "c2", "c1", events.CallUnanswered, `{"eur":5}`)
	check("a stop", "c2", "c2", events.CallUnanswered, `{"question":"How much?"}`)
}
