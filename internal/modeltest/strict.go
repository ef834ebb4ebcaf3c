package modeltest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Strict is an endpoint that refuses what the real ones of its protocol are reported to refuse, as a
// fault of the test, and else tells an answer.
type Strict struct {
	*Endpoint
	Protocol Protocol
	// Next returns the answer to a request; nil: it has written something else.
	Next func(w *Stream) *Answer
	// Raw makes a chat endpoint one that takes reasoning_content.
	Raw bool
	// Seals are what it has sealed, with the reasoning in it: it refuses others.
	Seals map[string]string
	// Refused is what it has refused.
	Refused []string
}

// ServeStrict serves a strict endpoint until the test ends. It belongs to one goroutine, which calls
// the endpoint.
func ServeStrict(t testing.TB, p Protocol, next func(w *Stream) *Answer) *Strict {
	t.Helper()
	s := &Strict{Protocol: p, Next: next, Seals: map[string]string{}}
	s.Endpoint = Serve(t, func(w *Stream, _ *http.Request) {
		if bad := s.refusals(t); len(bad) > 0 {
			s.Refused = append(s.Refused, bad...)
			w.Refuse(http.StatusBadRequest, `{"error":{"type":"invalid_request_error","code":null,"message":`+quoted(strings.Join(bad, "; "))+`}}`, "Content-Type", "application/json")
			return
		}
		a := s.Next(w)
		if a == nil {
			return
		}
		if a.Seal != "" {
			var said string
			if err := json.Unmarshal([]byte(`"`+a.Reasoning+`"`), &said); err != nil {
				t.Errorf("a seal of reasoning that is no text: %q", a.Reasoning)
			}
			s.Seals[a.Seal] = said
		}
		w.Data(p.Tell(*a)...)
	})
	return s
}

// refusals returns what is wrong with the last request.
func (s *Strict) refusals(t testing.TB) []string {
	asked := s.Request(t, s.Count()-1)
	var request map[string]any
	if err := json.Unmarshal(asked.Body, &request); err != nil { // which refuses invalid UTF-8 and names that are repeated
		return []string{"not a request: " + err.Error()}
	}
	var bad refused
	if said, _ := request["model"].(string); said == "" {
		bad.add("you must provide a model parameter")
	}
	for name, v := range request {
		if v == nil {
			bad.add("%s is null", name)
		}
	}
	return append(bad, s.Protocol.refusals(request, s)...)
}

// refused collects what an endpoint refuses.
type refused []string

func (r *refused) add(format string, args ...any) { *r = append(*r, fmt.Sprintf(format, args...)) }

// unknown refuses fields of an object that are not in a list of names.
func (r *refused) unknown(where string, o map[string]any, names string) {
	for name := range o {
		if !slices.Contains(strings.Fields(names), name) {
			r.add("%s.%s is not permitted", where, name)
		}
	}
}

// Patterns of what endpoints accept.
var (
	wireName  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	wireID    = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	imageData = regexp.MustCompile(`^(data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$|https?:)`)
)

// The values of an object's fields, empty if they are of another kind.

func object(v any) map[string]any { o, _ := v.(map[string]any); return o }
func list(v any) []any            { l, _ := v.([]any); return l }
func said(v any) string           { s, _ := v.(string); return s }
func has(o map[string]any, name string) bool {
	_, ok := o[name]
	return ok
}

// tools checks the functions of a request, and returns their names.
func (r *refused) tools(tools []any, function func(tool map[string]any) (name string, schema map[string]any)) map[string]bool {
	names := map[string]bool{}
	for n, t := range tools {
		name, schema := function(object(t))
		if !wireName.MatchString(name) || names[name] {
			r.add("tools[%d]: the name %q is invalid, or not the first one", n, name)
		}
		names[name] = true
		if schema["type"] != "object" {
			r.add("tools[%d]: its schema must be of type object", n)
		}
	}
	return names
}

const responsesFields = "model input instructions stream stream_options tools tool_choice parallel_tool_calls temperature top_p max_output_tokens max_tool_calls text reasoning include store metadata " +
	"user truncation previous_response_id conversation service_tier top_logprobs prompt_cache_key safety_identifier background presence_penalty frequency_penalty"

// ids are the beginnings of the ids of items in an input.
func idPrefix(kind string) string {
	switch kind {
	case "reasoning":
		return "rs"
	case "message":
		return "msg"
	case "function_call":
		return "fc"
	}
	return "ws"
}

func responsesRefusals(request map[string]any, s *Strict) (bad []string) {
	var r refused
	r.unknown("request", request, responsesFields)
	r.tools(list(request["tools"]), func(t map[string]any) (string, map[string]any) { return said(t["name"]), object(t["parameters"]) })
	input := list(request["input"])
	if len(input) == 0 {
		r.add("invalid input: empty array")
	}
	calls, outputs, ids := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for n, v := range input {
		i := object(v)
		kind, call := said(i["type"]), said(i["call_id"])
		if has(i, "id") {
			id := said(i["id"])
			if ids[id] || !strings.HasPrefix(id, idPrefix(kind)) || len(id) > 64 {
				r.add("input[%d].id: %q of %s is invalid, or not the first one", n, id, kind)
			}
			ids[id] = true
		}
		switch kind {
		case "function_call":
			_, isText := i["arguments"].(string)
			if calls[call] || !wireName.MatchString(said(i["name"])) || !isText || call == "" || len(call) > 64 {
				r.add("input[%d]: the call %v", n, i)
			}
			calls[call] = true
		case "function_call_output":
			if !calls[call] || outputs[call] {
				r.add("input[%d]: no call, or a second output, of %s", n, call)
			}
			outputs[call] = true
			if _, isText := i["output"].(string); !isText && list(i["output"]) == nil {
				r.add("input[%d].output is %T", n, i["output"])
			}
		case "reasoning":
			r.reasoningItem(n, i, input, s)
		case "message":
			r.responsesMessage(n, i)
		case "web_search_call":
			if !has(i, "id") {
				r.add("input[%d].id is missing", n)
			}
		case "compaction", "item_reference":
		default:
			r.add("input[%d].type %q", n, kind)
		}
	}
	for id := range calls {
		if !outputs[id] {
			r.add("no output found for function call %s", id)
		}
	}
	return r
}

func (r *refused) reasoningItem(n int, i map[string]any, input []any, s *Strict) {
	follower := map[string]any{}
	if n+1 < len(input) {
		follower = object(input[n+1])
	}
	switch kind := said(follower["type"]); {
	case slices.Contains([]string{"function_call", "web_search_call", "reasoning"}, kind), kind == "message" && follower["role"] == "assistant":
	default:
		r.add("input[%d] of type reasoning was provided without its required following item", n)
	}
	if _, ok := i["summary"].([]any); !ok {
		r.add("input[%d].summary is missing", n)
	}
	if _, known := s.Seals[said(i["encrypted_content"])]; has(i, "encrypted_content") && !known {
		r.add("the encrypted content %q could not be verified", i["encrypted_content"])
	}
}

func (r *refused) responsesMessage(n int, i map[string]any) {
	permitted := "input_text input_image input_file"
	switch said(i["role"]) {
	case string(events.Assistant):
		permitted = "output_text refusal"
	case string(events.User), string(events.System), string(events.Developer):
	default:
		r.add("input[%d].role %q", n, i["role"])
	}
	if len(list(i["content"])) == 0 {
		r.add("input[%d].content is empty", n)
	}
	for _, v := range list(i["content"]) {
		p := object(v)
		if kind := said(p["type"]); !slices.Contains(strings.Fields(permitted), kind) || strings.HasSuffix(kind, "_text") && said(p["text"]) == "" {
			r.add("input[%d].content has %v of %v", n, p, i["role"])
		}
	}
}
