package openai

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// usualParams are what the params of a model may set without being allowed to: how
// it answers, and nothing that reaches what else the operator's key may do at the
// endpoint, that keeps something there, or that costs another price.
func usualParams() []string {
	return []string{
		"frequency_penalty", "include", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "presence_penalty", "reasoning", "safety_identifier",
		"seed", "temperature", "text", "tool_choice", "top_k", "top_logprobs", "top_p", "truncation",
	}
}

// usualIncludes are what an answer may be asked to include besides.
func usualIncludes() []string {
	return []string{"reasoning.encrypted_content", "message.output_text.logprobs"}
}

// ownParams are what a step is: nobody may set them.
func ownParams() []string {
	return []string{"background", "conversation", "input", "instructions", "model", "previous_response_id", "prompt", "stream"}
}

// checkAllowed says what of Config.Params can be no param of a model.
func checkAllowed(names []string) error {
	var errs []error
	for _, name := range names {
		kind, isTool := strings.CutPrefix(name, "tools.")
		switch {
		case slices.Contains(ownParams(), name):
			errs = append(errs, fmt.Errorf("the param %s (--model-param) is what a step is; no model's definition may set it", name))
		case name == "" || isTool && (kind == "" || kind == "function") || strings.ContainsFunc(kind, func(r rune) bool {
			return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
		}):
			errs = append(errs, fmt.Errorf("the param %.64q (--model-param) is not a name, or tools and a point and the type of hosted tools", name))
		}
	}
	return errors.Join(errs...)
}

// permit says why the params of a model may not be used: they are a tenant's, and
// go out with the operator's key.
func (c Config) permit(params map[string]events.JSON) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch {
		case slices.Contains(ownParams(), name):
			return fmt.Errorf("%s is not theirs to set", name)
		case slices.Contains(c.Params, name):
		case name == "tools":
			if err := c.permitTools(params[name]); err != nil {
				return err
			}
		case !slices.Contains(usualParams(), name):
			return fmt.Errorf("%s is not allowed here; the operator allows it with --model-param %[1]s", clipped(name))
		case name == "include":
			if err := permitIncludes(params[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// permitTools looks at hosted tools, of which only some types are allowed.
func (c Config) permitTools(raw events.JSON) error {
	var list []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return errors.New("tools is of the wrong kind")
	}
	for _, t := range list {
		if !slices.Contains(c.Params, "tools."+t.Type) {
			return fmt.Errorf("tools of type %s are not allowed here; the operator allows them with --model-param tools.%[1]s", clipped(t.Type))
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
			return fmt.Errorf("include of %s is not allowed here; the operator allows all of them with --model-param include", clipped(name))
		}
	}
	return nil
}

func clipped(name string) string { return fmt.Sprintf("%.64s", strings.ToValidUTF8(name, "?")) }
