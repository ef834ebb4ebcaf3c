package responses

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/model"
)

// rules returns which params the definition of a model may set.
func rules() model.Rules {
	return model.Rules{
		Usual: []string{
			"frequency_penalty", "include", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "presence_penalty", "reasoning", "safety_identifier",
			"seed", "stop", "temperature", "text", "tool_choice", "top_k", "top_logprobs", "top_p", "truncation",
		},
		Own: []string{"background", "conversation", "input", "instructions", "model", "previous_response_id", "prompt", "stream"},
		Value: func(name string, value events.JSON) error {
			if name == "include" {
				return permitIncludes(value)
			}
			return nil
		},
	}
}

// usualIncludes are what an answer may always include.
func usualIncludes() []string { return []string{encryptedReasoning, "message.output_text.logprobs"} }

func permitIncludes(raw events.JSON) error {
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return errors.New("include is of the wrong kind")
	}
	for _, name := range list {
		if !slices.Contains(usualIncludes(), name) {
			return fmt.Errorf("include of %s is not permitted here; the operator permits all of them with --model-param include", model.Clip(name))
		}
	}
	return nil
}

// encryptedReasoning is the include with which an endpoint returns reasoning that can be sent back.
const encryptedReasoning = "reasoning.encrypted_content"

// asksForReasoning reports whether a request asks for encrypted reasoning, from an endpoint that
// neither stores reasoning nor takes its text: the model reasons. An empty include asks for nothing.
func asksForReasoning(t *model.Turn) bool {
	include, said := t.Params["include"]
	if said && !model.Holds(include) && string(include) != "null" {
		return false
	}
	var reasoning struct {
		Effort events.JSON `json:"effort"`
	}
	raw := t.Params["reasoning"]
	if jsontext.Value(raw).Kind() == '{' && json.Unmarshal(raw, &reasoning) == nil {
		return model.Text(reasoning.Effort) != "none"
	}
	return reasons(t.Model)
}

// reasons reports whether a model reasons unless it is told not to, as the names of OpenAI's say.
func reasons(model string) bool {
	name := model[strings.LastIndexByte(model, '/')+1:] // of a router
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "codex-"} {
		if rest, is := strings.CutPrefix(name, prefix); is && !strings.Contains(rest, "chat") {
			return prefix == "codex-" || rest == "" || rest[0] == '-' || rest[0] == '.'
		}
	}
	return false
}

// withInclude returns a list of what to include with one more.
func withInclude(list events.JSON, name string) events.JSON {
	var names []string
	if list != nil && json.Unmarshal(list, &names) != nil || slices.Contains(names, name) {
		return list // the endpoint says what is wrong with it
	}
	raw, err := json.Marshal(append(names, name))
	if err != nil {
		return list
	}
	return raw
}
