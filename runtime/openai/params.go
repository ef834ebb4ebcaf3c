package openai

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// usualParams are the params that a model's definition may always set: they shape the
// answer, and use nothing else that the operator's key permits at the endpoint, store
// nothing there, and do not change the price.
func usualParams() []string {
	return []string{
		"frequency_penalty", "include", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "presence_penalty", "reasoning", "safety_identifier",
		"seed", "temperature", "text", "tool_choice", "top_k", "top_logprobs", "top_p", "truncation",
	}
}

// usualIncludes are what an answer may always include.
func usualIncludes() []string {
	return []string{"reasoning.encrypted_content", "message.output_text.logprobs"}
}

// ownParams define a step: no definition may set them.
func ownParams() []string {
	return []string{"background", "conversation", "input", "instructions", "model", "previous_response_id", "prompt", "stream"}
}

// checkAllowed returns which entries of Config.Params cannot be params of a model.
func checkAllowed(names []string) error {
	var errs []error
	for _, name := range names {
		kind, isTool := strings.CutPrefix(name, "tools.")
		switch {
		case slices.Contains(ownParams(), name):
			errs = append(errs, fmt.Errorf("the param %s (--model-param) defines the step; no model's definition may set it", name))
		case name == "" || isTool && (kind == "" || kind == "function") || strings.ContainsFunc(kind, func(r rune) bool {
			return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
		}):
			errs = append(errs, fmt.Errorf("the param %.64q (--model-param) is not a name, or tools and a point and the type of hosted tools", name))
		}
	}
	return errors.Join(errs...)
}

// permit returns why the params of a model may not be used: they come from a tenant,
// and are sent with the operator's key.
func (c Config) permit(params map[string]events.JSON) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch {
		case slices.Contains(ownParams(), name):
			return fmt.Errorf("%s may not be set", name)
		case slices.Contains(c.Params, name):
		case name == "tools":
			if err := c.permitTools(params[name]); err != nil {
				return err
			}
		case !slices.Contains(usualParams(), name):
			return fmt.Errorf("%s is not permitted here; the operator permits it with --model-param %[1]s", clipped(name))
		case name == "include":
			if err := permitIncludes(params[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// permitTools checks hosted tools, of which only some types are permitted.
func (c Config) permitTools(raw events.JSON) error {
	var list []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return errors.New("tools is of the wrong kind")
	}
	for _, t := range list {
		if !slices.Contains(c.Params, "tools."+t.Type) {
			return fmt.Errorf("tools of type %s are not permitted here; the operator permits them with --model-param tools.%[1]s", clipped(t.Type))
		}
	}
	return nil
}

func permitIncludes(raw events.JSON) error {
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return errors.New("include is of the wrong kind")
	}
	for _, name := range list {
		if !slices.Contains(usualIncludes(), name) {
			return fmt.Errorf("include of %s is not permitted here; the operator permits all of them with --model-param include", clipped(name))
		}
	}
	return nil
}

// encryptedReasoning is the include with which an endpoint returns reasoning that can be sent back.
const encryptedReasoning = "reasoning.encrypted_content"

// asksForReasoning reports whether the request is to ask for encrypted reasoning: the model reasons,
// and the endpoint neither stores its reasoning nor takes its text. An empty include asks for
// nothing.
func (f *fields) asksForReasoning(c Config) bool {
	include, said := f.Params["include"]
	if f.Store || c.RawReasoning || said && !holds(string(include)) && string(include) != "null" {
		return false
	}
	var reasoning struct {
		Effort events.JSON `json:"effort"`
	}
	raw := f.Params["reasoning"]
	if jsontext.Value(raw).Kind() == '{' && json.Unmarshal(raw, &reasoning) == nil {
		return text(reasoning.Effort) != "none"
	}
	return reasons(f.Model)
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

func clipped(name string) string { return fmt.Sprintf("%.64s", strings.ToValidUTF8(name, "?")) }
