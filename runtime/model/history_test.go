package model_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// strictEndpoint is a strict endpoint, and the reactor that calls it.
type strictEndpoint struct {
	*modeltest.Strict
	reactor *model.Reactor
}

// No history makes a thread unusable: endpoints that refuse what the real ones refuse accept the
// request of every step, in every protocol, whichever of them made the steps before; after messages
// that steer, deletions, edits, truncations, forks, omissions, and answers that broke off, led
// nowhere, or have calls of every form.
func TestInput_OfAnyHistoryIsAccepted(t *testing.T) {
	t.Parallel()
	histories := 2000
	if testing.Short() {
		histories = 200
	}
	const workers = 4
	for worker := range workers {
		t.Run(strconv.Itoa(worker), func(t *testing.T) {
			t.Parallel()
			var h *history
			var all []strictEndpoint
			for _, p := range modeltest.Protocols() {
				for _, raw := range []bool{false, true}[:1+strings.Count(p.Name, "chat")] { // chat endpoints are of two kinds
					s := modeltest.ServeStrict(t, p, func(w *modeltest.Stream) *modeltest.Answer { return h.answer(w) })
					s.Raw = raw
					s.Seals["e"] = "" // of callers
					all = append(all, strictEndpoint{s, s.Reactor(t, p.Codec, func(c *model.Config) { c.Provider, c.RawReasoning = p.Name+strconv.FormatBool(raw), raw })})
				}
			}
			for seed := worker; seed < histories; seed += workers {
				h = &history{t: t, random: rand.New(rand.NewPCG(uint64(seed), 7)), view: runtime.NewView(), all: all}
				h.user()
				for range 3 + h.random.IntN(8) {
					h.change()
				}
				for _, one := range all {
					h.run(one)
				}
				if t.Failed() {
					t.Fatalf("history %d: %s", seed, strings.Join(h.story, "\n"))
				}
			}
			for _, one := range all {
				if sent := one.Count(); sent < histories/workers {
					t.Errorf("%s: only %d requests were sent", one.Protocol.Name, sent)
				}
			}
		})
	}
}

// history is a thread that is changed at random.
type history struct {
	t      *testing.T
	random *rand.Rand
	view   *runtime.View
	items  []string // ids
	made   int
	story  []string
	all    []strictEndpoint
	to     strictEndpoint // which is asked
	sealed int
}

const historyContext = "ctx_1"

func (h *history) pick(of ...string) string { return of[h.random.IntN(len(of))] }

// record applies an event to the view.
func (h *history) record(kind events.Type, subject string, data any) {
	version := h.view.Version() + 1
	c := &events.Commit{Tenant: "acme", Thread: "T-1", Version: version, Events: []events.Event{{
		Type: kind, Tenant: "acme", ThreadID: "T-1", Subject: subject, Version: version, Data: data,
	}}}
	if !h.view.Apply(c) {
		h.t.Fatalf("%s does not apply", kind)
	}
	h.story = append(h.story, fmt.Sprintf("%s %s %s", kind, subject, h.written(data)))
}

func (h *history) create(kind events.ItemType, role events.Role, content string) string {
	id := "itm_" + strconv.Itoa(h.made)
	h.record(events.ItemCreatedType, id, events.ItemCreated{
		ID: id, ContextID: historyContext, Type: kind, Role: role, Status: events.ItemStored, Content: events.JSON(content), Index: int64(h.made),
	})
	h.made++
	h.items = append(h.items, id)
	return id
}

func (h *history) user() {
	var parts []string
	for range 1 + h.random.IntN(2) {
		parts = append(parts, h.pick(`{"type":"input_text","text":"hello"}`, `{"type":"input_text","text":""}`, `{"type":"input_text","text":" \n"}`, `{"type":"input_image","image_url":"data:,"}`,
			`{"type":"input_image","image_url":"data:image/png;base64,AAAA"}`, `{"type":"input_image","image_url":"https://example.com/a.png"}`, `{"type":"input_image","image_url":"data:image/svg+xml;base64,AAAA"}`,
			`{"type":"input_image","file_id":"file-1"}`, `{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}`, `{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,aGk="}`,
			`{"type":"input_file","filename":"b.txt","file_data":"data:text/plain;base64,"}`, `{"type":"input_file","file_data":"data:image/png;base64,AAAA"}`, `{"type":"input_file","file_data":"data:image/png;base64,???"}`,
			`{"type":"input_file","file_url":"https://example.com/a.pdf"}`, `{"type":"input_file","file_id":"file-1"}`, `{"type":"input_image","image_url":"data:image/png;base64,"}`,
			`{"type":"custom"}`, `{"type":"output_text","text":"said"}`))
	}
	role := events.User
	switch h.random.IntN(8) {
	case 0:
		role = events.System
	case 1:
		role = events.Developer
	}
	h.create(events.Message, role, "["+strings.Join(parts, ",")+"]")
}

// change does one thing to the history.
func (h *history) change() {
	switch h.random.IntN(10) {
	case 0:
		h.user()
	case 1: // items of a caller
		h.create(events.ActionExecute, "", fmt.Sprintf(`{"callId":%q,"name":%q,"arguments":%s}`, h.callID(), h.toolName(), h.pick(`{}`, `"{\"a\":"`, `[1]`, `"\ufffd"`)))
	case 2:
		h.create(events.ActionResult, "", fmt.Sprintf(`{"callId":%q,"isError":%t,"output":%s}`, h.callID(), h.random.IntN(2) == 0,
			h.pick(`1`, `"x"`, `""`, `" "`, `[]`, `[{"type":"input_text","text":"x"}]`, `[{"type":"input_text","text":""}]`, `[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]`, `{"a":[1]}`, `null`)))
	case 3:
		h.create(events.Message, events.Assistant, "["+h.reasoning()+"]")
	case 4:
		id := h.items[h.random.IntN(len(h.items))]
		h.record(events.MessageDeletedType, id, events.MessageDeleted{ContextID: historyContext, Type: events.Message})
	case 5:
		h.record(events.HistoryTruncatedType, "", events.HistoryTruncated{FromIndex: int64(h.random.IntN(h.made + 1))})
	case 6: // a part is taken out, as by DELETE of an item of a conversation
		id := h.items[h.random.IntN(len(h.items))]
		var parts []events.JSON
		if item := h.view.Item(id); item.Type == events.Message && json.Unmarshal(item.Content, &parts) == nil && len(parts) > 0 {
			n := h.random.IntN(len(parts))
			h.record(events.MessageEditedType, id, events.MessageEdited{Content: events.JSON(h.written(append(parts[:n:n], parts[n+1:]...)))})
		}
	case 7: // a fork copies what is shown
		items := h.view.Shown(historyContext, "", math.MaxInt64, 0)
		h.view, h.items = runtime.NewView(), nil
		for i := range items {
			h.create(items[i].Type, items[i].Role, string(items[i].Content))
		}
		h.user()
	default:
		h.run(h.all[h.random.IntN(len(h.all))])
	}
}

// run takes steps until an answer has no call, at most three.
func (h *history) run(to strictEndpoint) {
	h.to = to
	id := ""
	for range 3 {
		items := h.view.Shown(historyContext, "", math.MaxInt64, h.random.IntN(3)*h.random.IntN(8))
		if h.random.IntN(3) == 0 {
			items, _ = events.FitItems(items, 200+h.random.IntN(4000))
		}
		in := modeltest.Input(items...)
		in.StepID = "stp_" + strconv.Itoa(h.made)
		in.Items = items
		h.settings(in)
		got, err := to.reactor.React(h.t.Context(), in, nil)
		var later *runtime.RetryError
		switch {
		case err != nil && (errors.As(err, &later) || strings.Contains(err.Error(), "add a message") || strings.Contains(err.Error(), "the model failed")):
			return
		case err != nil:
			h.t.Errorf("%s refuses: %v\n%s", to.Protocol.Name, err, to.Body(h.t, to.Count()-1))
			return
		}
		var parts []events.PlacedPart
		before := 0
		if id == "" {
			id = h.create(events.Message, events.Assistant, "[]")
		} else {
			var list []events.JSON
			if err := json.Unmarshal(h.view.Item(id).Content, &list); err != nil {
				h.t.Fatal(err)
			}
			before = len(list)
		}
		results := map[string]string{}
		for n, raw := range got.AssistantEvent.Content {
			parts = append(parts, events.PlacedPart{Place: int64(before + n), Part: h.ended(raw, results)})
		}
		h.record(events.MessageEditedType, id, events.MessageEdited{Parts: parts})
		for call, output := range results {
			h.create(events.ActionResult, "", fmt.Sprintf(`{"callId":%q,"output":%s}`, call, output))
		}
		if len(got.ToolCalls) == 0 || h.random.IntN(6) == 0 { // it has ended, or failed between two steps
			return
		}
		if h.random.IntN(6) == 0 { // a message that steers, which another item answers
			h.user()
			id = ""
		}
	}
}

// ended returns a part with the result of its call, if it is one and gets one there.
func (h *history) ended(raw events.JSON, results map[string]string) events.JSON {
	var p map[string]events.JSON
	if json.Unmarshal(raw, &p) != nil || p["toolCallId"] == nil {
		return raw
	}
	switch h.random.IntN(6) {
	case 0: // it never ended
		p["state"] = events.JSON(h.pick(`"input-available"`, `"approval-requested"`))
	case 5: // its context was shortened
		p["state"], p["elided"] = events.JSON(`"output-available"`), events.JSON(`true`)
	case 1:
		p["state"], p["errorText"] = events.JSON(`"output-error"`), events.JSON(`"broke"`)
	case 2: // its caller executes it
		p["state"] = events.JSON(`"input-available"`)
		var id string
		if json.Unmarshal(p["toolCallId"], &id) == nil && h.random.IntN(2) == 0 {
			results[id] = `{"a":1}`
		}
	default:
		p["state"], p["output"] = events.JSON(`"output-available"`), events.JSON(h.pick(`{}`, `""`, `null`, `[1]`, `"`+strings.Repeat("long ", 400)+`"`,
			`"[{\"type\":\"input_text\",\"text\":\"a\"},{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,AAAA\"}]"`))
	}
	return events.JSON(h.written(p))
}

func (h *history) written(v any) string { return modeltest.Written(h.t, v) }

// settings sets tools and settings of a step.
func (h *history) settings(in *runtime.StepInput) {
	in.Instructions = h.pick("", "Be brief.")
	for _, name := range []string{"f", "g"}[:h.random.IntN(3)] {
		in.Tools = append(in.Tools, runtime.ToolSpec{Name: name, Description: h.pick("", "does it")})
	}
	params := []string{`"tool_choice":"auto"`, `"tool_choice":"none"`, `"parallel_tool_calls":false`, `"temperature":1.7`, `"top_p":0.5`, `"reasoning":{"effort":"` + h.pick("none", "minimal", "low", "high", "xhigh") + `"}`,
		`"text":{"verbosity":"low"}`, `"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}`, `"text":{"format":{"type":"json_object"}}`, `"max_output_tokens":7`}
	if len(in.Tools) > 0 {
		params = append(params, `"tool_choice":"required"`, `"tool_choice":{"type":"function","name":"f"}`, `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"`+h.pick("f", "g")+`"}]}`)
	}
	if h.random.IntN(2) == 0 {
		in.Model.Params = events.JSON("{" + h.pick(params...) + "}")
	}
}

func (h *history) callID() string {
	return h.pick("call_1", "call_2", "call_3", strings.Repeat("c", 70), "ä ö")
}

func (h *history) toolName() string {
	return h.pick("f", "a.b ä", strings.Repeat("n", 90), "__proto__")
}

func (h *history) reasoning() string {
	return h.pick(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`, `{"type":"reasoning","id":"rs_`+strconv.Itoa(h.made)+`","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"e"}`,
		`{"type":"reasoning","id":"other_1","encrypted_content":"e"}`, `{"type":"reasoning","summary":null,"encrypted_content":"e"}`, `{"type":"reasoning","id":"rs_2","summary":[]}`,
		`{"type":"reasoning","id":"rs_`+strings.Repeat("9", 80)+`","summary":[],"encrypted_content":"e"}`)
}

// answer returns an answer of the model: anything, ended in any way.
func (h *history) answer(w *modeltest.Stream) *modeltest.Answer {
	h.sealed++
	a := &modeltest.Answer{}
	if h.random.IntN(2) == 0 {
		a.Reasoning = h.pick("", "think", "th\u00ednk \\n")
		if h.to.Protocol.Name != "chat" {
			a.Seal = h.pick("", "seal"+strconv.Itoa(h.sealed))
		}
	}
	for range h.random.IntN(3) {
		a.Text = append(a.Text, h.pick("a", "", " ", `a\ud83d`))
	}
	if h.random.IntN(8) == 0 {
		a.Text, a.Refusal = nil, "no"
	}
	if h.random.IntN(3) == 0 {
		a.Items = []string{h.reasoning(), `{"type":"web_search_call","id":"ws_` + strconv.Itoa(h.sealed) + `","status":"completed","action":{"type":"search","query":"q"}}`}[h.random.IntN(2):]
	}
	for range h.random.IntN(4) {
		c := modeltest.Call{ID: h.pick(h.callID(), h.callID(), "", "call_"+strconv.Itoa(h.made)), Name: h.toolName(),
			Pieces: []string{h.pick(`{}`, ``, `[1]`, `{\"x\":`, `{\"x\":1,\"x\":2}`, `{\"x\":\"\\ud83d\"}`, `null`, `{\"x\":\"\\n\"}`)}}
		if h.random.IntN(4) == 0 {
			c.Pieces, c.Object = nil, `{"x":[1]}`
		}
		a.Calls = append(a.Calls, c)
	}
	switch h.random.IntN(8) {
	case 0:
		a.End = h.to.Protocol.Length
	case 1:
		w.Data(h.to.Protocol.Fail("invalid_prompt", "no"))
		return nil
	case 2:
		begin(w, h.to.Protocol) // and it breaks off
		return nil
	}
	return a
}
