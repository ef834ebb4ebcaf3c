package schema

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
)

// checkParameters refuses parameters that arguments.CompileDefinition does not compile.
func checkParameters(raw events.JSON) *events.Error {
	_, err := arguments.CompileDefinition(raw)
	var wrong *arguments.SchemaError
	if errors.As(err, &wrong) {
		e := refuse("%s", wrong.Reason)
		e.Details.Path = wrong.Path
		return e
	}
	if err != nil { // it is too large
		return events.AsError(err)
	}
	return nil
}

// plainText returns the text of a JSON string, and "" for any other value.
func plainText(v events.JSON) string {
	if jsontext.Value(v).Kind() != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}
