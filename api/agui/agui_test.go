package agui_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections"
)

func TestRun_Text(t *testing.T) {
	w := start(t)
	a := w.agent("order 7")
	list := a.say("hello")
	end := w.lastOf(list, "RUN_FINISHED")
	if list[0]["type"] != "RUN_STARTED" || list[0]["threadId"] != "order 7" || list[0]["runId"] != "order 7-r1" || end["runId"] != "order 7-r1" {
		t.Errorf("%s", dump(list))
	}
	if got := dump(end["usage"]); got != `[{"inputTokens":3,"model":"m","outputTokens":4,"totalTokens":7}]` {
		t.Errorf("usage %s", got)
	}
	a.say("and again")
	a.want("user: hello", "assistant: answer to hello", "user: and again", "assistant: answer to and again")
	if got := strings.Join(w.texts(), ", "); got != "user: hello, assistant: answer to hello, user: and again" {
		t.Errorf("the reactor was shown %s", got)
	}
	thread, err := client.Read(t.Context(), w.now(), events.GetThread{ThreadID: "key:agui:order 7"})
	w.s.Must(err)
	if a.messages[0]["id"] != "u0" || thread.AgentID != "triage" {
		t.Errorf("%+v, %s", thread, dump(a.messages))
	}
	b := w.agent(thread.ID) // a thread's own id will do
	b.messages = a.messages
	b.say("by id")
	b.want("user: hello", "assistant: answer to hello", "user: and again", "assistant: answer to and again", "user: by id", "assistant: answer to by id")
}

// A first turn needs no read model: the log alone says what is asked and what came of it, so nothing is
// written on its behalf before it goes on.
func TestRun_NeedsNoReadModel(t *testing.T) {
	w := start(t)
	js, err := jetstream.New(natstest.Dial(t, w.s.Addresses().NATS))
	w.s.Must(err)
	leases, err := js.KeyValue(t.Context(), derived.LeaseBucket)
	w.s.Must(err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	hold := func() { _, _ = leases.PutString(ctx, projections.RunnerLease, "a process that does nothing") }
	hold()
	go func() {
		for tick := time.Tick(time.Second); ctx.Err() == nil; <-tick {
			hold()
		}
	}()
	natstest.Eventually(t, "the read models to stand still", func() bool {
		reply, err := w.c.Send(t.Context(), "", events.CreateThread{})
		w.s.Must(err)
		_, err = client.Read(t.Context(), w.c, events.GetThread{ThreadID: reply.ThreadID, Fresh: events.Fresh{MinSeq: &reply.Seq}})
		return events.HasCode(err, events.ProjectionBehind)
	})
	a := w.agent("order 7")
	end := w.lastOf(a.say("hello"), "RUN_FINISHED")
	if got := dump(end["usage"]); got != `[{"inputTokens":3,"model":"m","outputTokens":4,"totalTokens":7}]` {
		t.Errorf("usage %s", got)
	}
}

// What a client reads after the end of a run shows the run, over another protocol too.
func TestRun_IsShownAfterItsEnd(t *testing.T) {
	w := start(t)
	made, err := w.c.Send(t.Context(), "", events.CreateThread{})
	w.s.Must(err)
	a := w.agent(made.ThreadID)
	for n := range 5 {
		w.lastOf(a.say(fmt.Sprint("question ", n)), "RUN_FINISHED")
		answer, err := http.Get(w.url + "/api/threads/" + made.ThreadID + "/items?order=desc&limit=1")
		w.s.Must(err)
		raw, err := io.ReadAll(answer.Body)
		w.s.Must(errors.Join(err, answer.Body.Close()))
		if !strings.Contains(string(raw), fmt.Sprint("answer to question ", n)) {
			t.Errorf("after turn %d: %s", n, raw)
		}
	}
}

func TestRun_ServerTool(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.say("lookup")
	a.want("user: lookup", `assistant: let me see [lookup {"of":"7"}]`, "tool: found", "assistant: done with lookup")
	a.say("think")
	if got := a.shown()[4:]; strings.Join(got, ", ") != `user: think, reasoning: hm, activity: {"data":{"x":1},"type":"data-chart"}, assistant: thought` {
		t.Errorf("%q", got)
	}
	a.want(a.shown()...)
}

func TestRun_CallersTool(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.tools = []object{{"name": "weather", "description": "Tells the weather.", "parameters": object{"type": "object"}}}
	o := w.outcome(a.say("weather"))
	ids, _ := o["pendingToolCallIds"].([]any)
	if o["type"] != "success" || len(ids) != 1 {
		t.Fatalf("%s", dump(o))
	}
	a.messages = append(a.messages, object{"id": "res", "role": "tool", "toolCallId": ids[0], "content": "rain"})
	w.outcome(a.run())
	a.want("user: weather", `assistant: let me see [weather {"city":"Paris"}]`, "tool: rain", "assistant: done with weather")
}

func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		say     string
		answers []any // payloads; nil: cancelled
		refunds string
		want    string // what comes of the calls, and then
	}{
		"granted":   {"refund", []any{object{"approved": true}}, `{"eur":5}`, `tool: {"refunded":5}`},
		"edited":    {"refund", []any{object{"approved": true, "arguments": object{"eur": 4}}}, `{"eur":4}`, `tool: {"refunded":4}`},
		"denied":    {"refund", []any{object{"approved": false, "reason": "too much"}}, "", "tool: the call was denied"},
		"cancelled": {"refund", []any{nil}, "", "tool: the call was denied"},
		"question":  {"ask", []any{object{"eur": 9}}, "", `tool: {"eur":9}`},
		"both":      {"both", []any{object{"approved": true}, "9"}, `{"eur":5}`, "tool: 9"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			a := w.agent("t")
			first := w.interrupts(a.say(c.say))
			var answers []object
			for {
				for i, one := range first {
					if i >= len(c.answers) {
						t.Fatalf("more interrupts: %s", dump(first))
					}
					if call, _ := one["toolCallId"].(string); call == "" || call != one["id"] || a.call(call)["name"] == nil {
						t.Errorf("the interrupt %s is of no call", dump(one))
					}
					answer := object{"interruptId": one["id"], "status": "cancelled"}
					if c.answers[i] != nil {
						answer = resolved(one, c.answers[i])
					}
					answers = append(answers, answer)
				}
				c.answers = c.answers[len(first):]
				again := w.agent("t")
				if got := w.interrupts(again.connect()); dump(got) != dump(first) {
					t.Errorf("reloaded, it waits for %s, want %s", dump(got), dump(first))
				}
				a.messages = append(a.messages, user("more", "and more"))
				if status, body := w.post("/agui/triage", a.input("meanwhile")); status != 400 || !strings.Contains(body, first[0]["id"].(string)) {
					t.Errorf("a message meanwhile: %d %s", status, body)
				}
				a.messages = a.messages[:len(a.messages)-1]
				list := a.resume(answers...)
				if slices.ContainsFunc(list, func(e object) bool { return e["type"] == "TOOL_CALL_START" }) {
					t.Errorf("the client is shown what it has: %s", dump(list))
				}
				if end := w.outcome(list); end["type"] == "interrupt" {
					first, answers = w.interrupts(list), nil
					continue
				}
				a.more = object{"resume": answers}
				if again := a.runAs("t-r2"); dump(stored(again)) != dump(stored(list)) && len(c.answers) == 0 && name != "both" {
					t.Errorf("repeated: %s, want %s", dump(again), dump(list))
				}
				break
			}
			b := w.agent("t")
			b.connect()
			got := strings.Join(b.shown(), "; ")
			if !strings.Contains(got, c.want) && !strings.HasPrefix(c.want, "tool: the call was denied") || !strings.HasSuffix(got, "; assistant: done with "+c.say) {
				t.Errorf("%s", got)
			}
			if c.refunds != "" {
				if out := string(<-w.out); out != c.refunds {
					t.Errorf("refunded %s", out)
				}
			}
		})
	}
}

func TestResume_Refused(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	i := w.interrupts(a.say("refund"))[0]
	for name, c := range map[string]struct {
		more object
		want string
	}{
		"no payload":    {object{"resume": []object{{"interruptId": i["id"], "status": "resolved"}}}, `"param":"resume`},
		"odd payload":   {object{"resume": []object{resolved(i, object{"approved": "yes"})}}, "approved"},
		"odd status":    {object{"resume": []object{{"interruptId": i["id"], "status": "done"}}}, "status"},
		"unknown":       {object{"resume": []object{resolved(object{"id": "nobody"}, object{"approved": true})}}, "nobody"},
		"odd arguments": {object{"resume": []object{resolved(i, object{"approved": true, "arguments": 7})}}, "arguments"},
		"a message too": {object{"resume": []object{resolved(i, object{"approved": true})}, "messages": append([]object{user("u5", "more")}, nil...)}, ""},
	} {
		a.more = c.more
		if name == "a message too" {
			a.more["messages"] = append(append([]object{}, a.messages...), user("u5", "more"))
		}
		if status, body := w.post("/agui/triage", a.input("bad "+name)); status != 400 || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	w.outcome(a.resume(resolved(i, object{"approved": true})))
	a.more = object{"resume": []object{resolved(i, object{"approved": false})}}
	if status, body := w.post("/agui/triage", a.input("late")); status != 400 || !strings.Contains(body, "otherwise") {
		t.Errorf("answered otherwise: %d %s", status, body)
	}
}

// stored returns events without those of what a run does at the moment, and with the pieces of a text in
// one: how it came depends on when the client came.
func stored(list []object) (out []object) {
	for _, e := range list {
		last := len(out) - 1
		switch {
		case e["type"] == "CUSTOM":
		case e["delta"] != nil && last >= 0 && out[last]["type"] == e["type"] && out[last]["messageId"] == e["messageId"] && out[last]["toolCallId"] == e["toolCallId"]:
			out[last]["delta"] = out[last]["delta"].(string) + e["delta"].(string)
		default:
			out = append(out, maps.Clone(e))
		}
	}
	return out
}
