package runtime

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
)

// CallArguments returns the arguments of a call as its model wrote them: a JSON object, {} for an
// empty text. Any other text becomes a JSON string, which no tool accepts, so the call fails and
// tells the model why, and the run continues. This concerns text that is no JSON object, and
// objects with a duplicate name, half of a surrogate pair, or a name that programs in JavaScript
// refuse to read.
func CallArguments(said string) events.JSON {
	if strings.TrimSpace(said) == "" {
		return events.JSON("{}")
	}
	if v := events.JSON(said); unusable(said) == "" && (*jsontext.Value)(&v).Compact() == nil {
		return v
	}
	return events.Quote(strings.ToValidUTF8(said, "\uFFFD"))
}

// noObject is the result of a call without an object as its arguments.
const noObject = "the arguments are not a JSON object; send one"

// unusable returns why arguments cannot be used, "" if they can.
func unusable(said string) string {
	if jsontext.Value(said).Kind() != '{' {
		return noObject
	}
	var v any
	err := json.Unmarshal([]byte(said), &v)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "the arguments have a name twice; send each name once"
	case err != nil && json.Unmarshal([]byte(said), &v, jsontext.AllowInvalidUTF8(true)) == nil:
		return "the arguments have half of a surrogate pair; send whole characters"
	case err != nil:
		return noObject
	case arguments.HasPrototype([]byte(said)):
		return "the arguments have the name __proto__ or constructor.prototype; leave it out"
	}
	return ""
}

// invalidArguments returns the result of a call with arguments that its tool does not accept; nil
// if they are valid.
func (t stepCalls) invalidArguments(spec ToolSpec, in *ToolInput) *ToolResult {
	said := string(in.Arguments)
	if jsontext.Value(in.Arguments).Kind() == '"' { // CallArguments returns a string for invalid arguments
		said = events.TextOf(in.Arguments)
	}
	if wrong := unusable(said); wrong != "" {
		return new(Failed(wrong))
	}
	if jsontext.Value(in.Arguments).Kind() != '{' {
		return new(Failed(noObject))
	}
	if err := t.w.arguments.Check(spec.Parameters, in.Arguments); err != nil {
		return new(Failed(clip(err.Error())))
	}
	return nil
}

// asks returns the request for approval of a call. If the arguments are invalid, it returns the
// failed result of the call instead.
func (t stepCalls) asks(c thread.Call, spec ToolSpec, reason events.ApprovalReason) (asks events.ApprovalRequested, failed *ToolResult) {
	if wrong := t.invalidArguments(spec, t.toolInput(c, t.arguments(c))); wrong != nil {
		return asks, wrong
	}
	return t.question(c, reason), nil
}

// usableArguments returns the arguments of a reactor's call. Invalid JSON becomes a JSON string,
// so that only the call fails.
func usableArguments(v events.JSON) events.JSON {
	switch {
	case v == nil:
		return events.JSON("{}")
	case !jsontext.Value(v).IsValid():
		return CallArguments(string(v))
	}
	return v
}
