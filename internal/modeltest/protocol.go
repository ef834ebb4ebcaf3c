package modeltest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/chat"
	"github.com/skein-threads/skein/runtime/model/messages"
	"github.com/skein-threads/skein/runtime/model/responses"
)

// Answer is an answer of a model, which each protocol tells in its form. Texts may have half of a
// surrogate pair: they are the inside of JSON strings.
type Answer struct {
	Reasoning string
	Seal      string   // with which reasoning goes back: its signature, or what is encrypted
	Text      []string // in pieces
	Refusal   string
	Calls     []Call
	End       string   // the protocol's word for why it ended; empty: it is complete
	Items     []string // other items, of the Responses protocol alone
	Usage     string   // in the form of the protocol; empty: that of Protocol.Usage
}

// Call is a call in an answer.
type Call struct {
	ID, Name string
	Pieces   []string // of the arguments, as they are inside a JSON string
	Object   string   // the arguments as an object, in place of Pieces
}

// Protocol is a protocol of models' endpoints.
type Protocol struct {
	Name   string
	Codec  model.Codec
	Usage  string // of an answer: 120 tokens of input with 100 cached ones, and 30 of output
	Length string // the word for an answer that reached its limit
	Tell   func(a Answer) []string
	// Fail returns an event that reports a failure.
	Fail func(code, message string) string
	// refusals returns what an endpoint refuses of a request.
	refusals func(request map[string]any, s *Strict) []string
}

// Protocols returns all of them.
func Protocols() []Protocol {
	failure := func(code, message string) string {
		return `{"type":"error","error":{"type":` + quoted(code) + `,"message":` + quoted(message) + `}}`
	}
	return []Protocol{
		{
			Name: "responses", Codec: responses.Codec{}, Length: "max_output_tokens", Tell: tellResponses, refusals: responsesRefusals,
			Usage: `{"input_tokens":120,"input_tokens_details":{"cached_tokens":100},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":150}`,
			Fail: func(code, message string) string {
				return `{"type":"error","code":` + quoted(code) + `,"message":` + quoted(message) + `,"param":null}`
			},
		},
		{
			Name: "chat", Codec: chat.Codec{}, Length: "length", Tell: tellChat, refusals: chatRefusals, Fail: failure,
			Usage: `{"prompt_tokens":120,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens":30,"completion_tokens_details":{"reasoning_tokens":20},"total_tokens":150}`,
		},
		{
			Name: "messages", Codec: messages.Codec{}, Length: "max_tokens", Tell: tellMessages, refusals: messagesRefusals, Fail: failure,
			Usage: `{"input_tokens":5,"cache_creation_input_tokens":15,"cache_read_input_tokens":100,"output_tokens":30}`,
		},
	}
}

// quoted returns a text as a JSON string.
func quoted(s string) string {
	raw, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return `""`
	}
	return string(raw)
}

// arguments returns the arguments of a call as a JSON string, or as an object.
func (c Call) arguments() string {
	if c.Object != "" {
		return c.Object
	}
	return `"` + strings.Join(c.Pieces, "") + `"`
}

// tellResponses tells an answer with its deltas and its items.
func tellResponses(a Answer) (out []string) {
	var items []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	done := func(item string) {
		add(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, len(items), item)
		items = append(items, item)
	}
	add(`{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}`)
	if a.Reasoning != "" || a.Seal != "" {
		summary, seal := "", ""
		if a.Reasoning != "" {
			add(`{"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"rs_1","delta":"%s"}`, a.Reasoning)
			summary = `{"type":"summary_text","text":"` + a.Reasoning + `"}`
		}
		if a.Seal != "" {
			seal = `,"encrypted_content":` + quoted(a.Seal)
		}
		done(`{"type":"reasoning","id":"rs_1","summary":[` + summary + `]` + seal + `}`)
	}
	for _, item := range a.Items {
		done(item)
	}
	for _, said := range []struct{ kind, field, text string }{{"output_text", "text", strings.Join(a.Text, "")}, {"refusal", "refusal", a.Refusal}} {
		pieces := a.Text
		if said.kind == "refusal" {
			pieces = []string{a.Refusal}
		}
		if said.text == "" {
			continue
		}
		for _, piece := range pieces {
			add(`{"type":"response.%s.delta","output_index":%d,"item_id":"msg_1","delta":"%s"}`, said.kind, len(items), piece)
		}
		done(fmt.Sprintf(`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":%q,%q:"%s"}]}`, said.kind, said.field, said.text))
	}
	for _, c := range a.Calls {
		add(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","call_id":%s,"name":%s,"arguments":""}}`, len(items), quoted(c.ID), quoted(c.Name))
		for _, piece := range c.Pieces {
			add(`{"type":"response.function_call_arguments.delta","output_index":%d,"delta":"%s"}`, len(items), piece)
		}
		done(fmt.Sprintf(`{"type":"function_call","call_id":%s,"name":%s,"arguments":%s}`, quoted(c.ID), quoted(c.Name), c.arguments()))
	}
	status, why := "completed", ""
	if a.End != "" {
		status, why = "incomplete", fmt.Sprintf(`,"incomplete_details":{"reason":%q}`, a.End)
	}
	add(`{"type":"response.%s","response":{"id":"resp_1","status":%[1]q%s,"model":"test-model-1","output":[%s],"usage":%s}}`, status, why, strings.Join(items, ","), usageOf(a, Protocols()[0]))
	return out
}

// usageOf returns the usage of an answer.
func usageOf(a Answer, p Protocol) string {
	if a.Usage != "" {
		return a.Usage
	}
	return p.Usage
}

// tellChat tells an answer in chunks.
func tellChat(a Answer) (out []string) {
	delta := func(format string, args ...any) {
		out = append(out, `{"model":"test-model-1","choices":[{"index":0,"delta":`+fmt.Sprintf(format, args...)+`,"finish_reason":null}]}`)
	}
	delta(`{"role":"assistant","content":"","refusal":null,"tool_calls":null}`)
	if a.Reasoning != "" {
		delta(`{"reasoning_content":"%s"}`, a.Reasoning)
	}
	for _, piece := range a.Text {
		delta(`{"content":"%s"}`, piece)
	}
	if a.Refusal != "" {
		delta(`{"refusal":"%s"}`, a.Refusal)
	}
	for n, c := range a.Calls {
		first := `""`
		if c.Object != "" {
			first = c.Object
		}
		delta(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]}`, n, quoted(c.ID), quoted(c.Name), first)
		for _, piece := range c.Pieces {
			delta(`{"tool_calls":[{"index":%d,"function":{"arguments":"%s"}}]}`, n, piece)
		}
	}
	end := a.End
	if end == "" {
		if end = "stop"; len(a.Calls) > 0 {
			end = "tool_calls"
		}
	}
	return append(out, fmt.Sprintf(`{"model":"test-model-1","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, end),
		`{"model":"test-model-1","choices":[],"usage":`+usageOf(a, Protocols()[1])+`}`, "[DONE]")
}

// tellMessages tells an answer in blocks.
func tellMessages(a Answer) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var used map[string]int64
	_ = json.Unmarshal([]byte(usageOf(a, Protocols()[2])), &used) // usage that is none is sent at the end
	written := used["output_tokens"]
	if used != nil {
		used["output_tokens"] = 1 // so far
	}
	first, _ := json.Marshal(used, json.Deterministic(true))
	add(`{"type":"message_start","message":{"id":"msg_1","model":"test-model-1","usage":%s}}`, first)
	add(`{"type":"ping"}`)
	at := 0
	block := func(block, kind string, deltas ...string) {
		add(`{"type":"content_block_start","index":%d,"content_block":%s}`, at, block)
		for _, d := range deltas {
			add(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%s}}`, at, kind, d)
		}
	}
	end := func() { add(`{"type":"content_block_stop","index":%d}`, at); at++ }
	if a.Reasoning != "" || a.Seal != "" {
		block(`{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", `"thinking":"`+a.Reasoning+`"`)
		add(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%s}}`, at, quoted(a.Seal))
		end()
	}
	if text := append(a.Text, a.Refusal); strings.Join(text, "") != "" {
		var deltas []string
		for _, piece := range text {
			deltas = append(deltas, `"text":"`+piece+`"`)
		}
		block(`{"type":"text","text":""}`, "text_delta", deltas...)
		end()
	}
	for _, c := range a.Calls {
		input := "{}"
		if c.Object != "" {
			input = c.Object
		}
		deltas := []string{`"partial_json":""`}
		for _, piece := range c.Pieces {
			deltas = append(deltas, `"partial_json":"`+piece+`"`)
		}
		block(fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quoted(c.ID), quoted(c.Name), input), "input_json_delta", deltas...)
		end()
	}
	why := a.End
	if why == "" {
		if why = "end_turn"; len(a.Calls) > 0 {
			why = "tool_use"
		}
	}
	usage := fmt.Sprintf(`{"output_tokens":%d}`, written)
	if used == nil {
		usage = a.Usage
	}
	add(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":%s}`, why, usage)
	add(`{"type":"message_stop"}`)
	return out
}
