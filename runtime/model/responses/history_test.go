package responses_test

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
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/conversation"
	"github.com/skein-threads/skein/runtime/model"
)

// No history makes a thread unusable: an endpoint that refuses what OpenAI's refuses accepts the
// input of every step, after deletions, edits, truncations, forks, omissions, and answers that
// broke off, led nowhere, or have calls of every form.
func TestInput_OfAnyHistoryIsAccepted(t *testing.T) {
	t.Parallel()
	var answer func(w *stream)
	e := strict(t, func(w *stream) { answer(w) })
	r := e.reactor(t)
	histories := 2000
	if testing.Short() {
		histories = 200
	}
	for seed := range histories {
		h := &history{t: t, random: rand.New(rand.NewPCG(uint64(seed), 7)), view: conversation.New()}
		answer = h.answer
		h.user()
		for range 3 + h.random.IntN(8) {
			h.change(r)
		}
		h.run(r)
		if t.Failed() {
			t.Fatalf("history %d: %s", seed, strings.Join(h.story, "\n"))
		}
	}
	if sent := e.count(); sent < histories {
		t.Errorf("only %d requests were sent", sent)
	}
}

// history is a thread that is changed at random.
type history struct {
	t      *testing.T
	random *rand.Rand
	view   *conversation.View
	items  []string // ids
	made   int
	story  []string
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
	h.story = append(h.story, fmt.Sprintf("%s %s %+v", kind, subject, data))
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
	h.create(events.Message, events.User, "["+h.pick(`{"type":"input_text","text":"hello"}`, `{"type":"input_text","text":""}`, `{"type":"input_image","image_url":"data:,"}`,
		`{"type":"custom"}`, `{"type":"output_text","text":"said"}`, ``)+"]")
}

// change does one thing to the history.
func (h *history) change(r *model.Reactor) {
	switch h.random.IntN(10) {
	case 0:
		h.user()
	case 1: // items of a caller
		h.create(events.ActionExecute, "", fmt.Sprintf(`{"callId":%q,"name":%q,"arguments":{}}`, h.callID(), h.toolName()))
	case 2:
		h.create(events.ActionResult, "", fmt.Sprintf(`{"callId":%q,"output":%s}`, h.callID(), h.pick(`1`, `"x"`, `[]`, `[{"type":"input_text","text":"x"}]`, `{"a":[1]}`, `null`)))
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
		h.view, h.items = conversation.New(), nil
		for i := range items {
			h.create(items[i].Type, items[i].Role, string(items[i].Content))
		}
		h.user()
	default:
		h.run(r)
	}
}

// run takes steps until an answer has no call, at most three.
func (h *history) run(r *model.Reactor) {
	id := ""
	for range 3 {
		items := h.view.Shown(historyContext, "", math.MaxInt64, h.random.IntN(3)*h.random.IntN(8))
		if h.random.IntN(3) == 0 {
			items, _ = events.FitItems(items, 200+h.random.IntN(4000))
		}
		in := input(items...)
		in.StepID = "stp_" + strconv.Itoa(h.made)
		in.Items = items
		got, err := r.React(h.t.Context(), in, nil)
		var later *runtime.RetryError
		switch {
		case err != nil && (errors.As(err, &later) || strings.Contains(err.Error(), "add a message") || strings.Contains(err.Error(), "the model failed")):
			return
		case err != nil:
			h.t.Errorf("the endpoint refuses: %v", err)
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
	}
}

// ended returns a part with the result of its call, if it is one and gets one there.
func (h *history) ended(raw events.JSON, results map[string]string) events.JSON {
	var p map[string]events.JSON
	if json.Unmarshal(raw, &p) != nil || p["toolCallId"] == nil {
		return raw
	}
	switch h.random.IntN(5) {
	case 0: // it never ended
	case 1:
		p["state"], p["errorText"] = events.JSON(`"output-error"`), events.JSON(`"broke"`)
	case 2: // its caller executes it
		p["state"] = events.JSON(`"input-available"`)
		var id string
		if json.Unmarshal(p["toolCallId"], &id) == nil && h.random.IntN(2) == 0 {
			results[id] = `{"a":1}`
		}
	default:
		p["state"], p["output"] = events.JSON(`"output-available"`), events.JSON(h.pick(`{}`, `""`, `null`, `[1]`, `"`+strings.Repeat("long ", 400)+`"`))
	}
	return events.JSON(h.written(p))
}

func (h *history) written(v any) string { return written(h.t, v) }

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

// answer writes an answer of the model: any items, ended in any way.
func (h *history) answer(w *stream) {
	var items []string
	for range h.random.IntN(5) {
		switch h.random.IntN(5) {
		case 0, 1:
			items = append(items, h.reasoning())
		case 2:
			items = append(items, fmt.Sprintf(`{"type":"message","role":"assistant","content":[%s]}`, h.pick(`{"type":"output_text","text":"a"}`, `{"type":"output_text","text":""}`,
				`{"type":"refusal","refusal":"no"}`, `{"type":"output_text","text":"a\ud83d"}`, ``)))
		case 3:
			items = append(items, fmt.Sprintf(`{"type":"function_call","id":"fc_1","call_id":%q,"name":%s,"arguments":%s}`, h.pick(h.callID(), h.callID(), "", "call_"+strconv.Itoa(h.made)),
				written(h.t, h.toolName()), h.pick(`"{}"`, `""`, `"[1]"`, `"{\"x\":"`, `"{\"x\":1,\"x\":2}"`, `"{\"x\":\"\\ud83d\"}"`, `"null"`)))
		default:
			items = append(items, `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`)
		}
	}
	switch h.random.IntN(8) {
	case 0:
		w.event("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[%s]}`, strings.Join(items, ","))
	case 1:
		w.event("response.failed", `"response":{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}`)
	case 2:
		w.event("response.output_text.delta", `"output_index":0,"item_id":"m","delta":"a"`) // and it breaks off
	default:
		w.completed(items...)
	}
}
