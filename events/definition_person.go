package events

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxAnswerSchema bounds the JSON Schema of a person's answer, in bytes; every question
// carries it.
const MaxAnswerSchema = 16 << 10

// maxQuestion bounds the question, in bytes.
const maxQuestion = 16 << 10

// personField is the argument that holds the question of a tool without one of its own.
const personField = "question"

// personParameters are the parameters of a tool of type person without a question of its own.
const personParameters = `{"type":"object","properties":{"question":{"type":"string","minLength":1,"description":"What the person is asked."}},"required":["question"],"additionalProperties":false}`

// CheckPerson validates the fields of a tool that asks a person: it has none that would have
// no effect, and other tools have none of its own. The path of the error is relative to the
// definition.
func (d ToolDefinition) CheckPerson() error {
	if d.Type != PersonTool {
		switch {
		case d.Question != "":
			return Invalid("/question", "only a tool of type person has a question")
		case d.Answer != nil:
			return Invalid("/answer", "only a tool of type person has an answer")
		}
		return nil
	}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"auto", d.Auto != nil}, {"idempotent", d.Idempotent != nil}, {"readOnly", d.ReadOnly != nil}, {"timeoutMs", d.TimeoutMs != nil},
		{"workerWaitMs", d.WorkerWaitMs != nil}, {"retries", d.Retries != nil},
	} {
		if field.set {
			return Invalid("/"+field.name, "a tool of type person has no %s: the run waits until somebody answers", field.name)
		}
	}
	switch {
	case len(d.Answer) > MaxAnswerSchema:
		return TooLarge("the JSON Schema of the answer", int64(len(d.Answer)), MaxAnswerSchema)
	case d.Question == "" && d.Parameters != nil:
		return Invalid("/parameters", "a tool of type person that has no question takes one argument, question; give the tool a question, in which {{name}} stands for an argument")
	}
	return nil
}

// Ask returns the question that a call with these arguments asks a person: the tool's question
// with every {{name}} replaced by the argument of that name or, if the tool has none, the
// model's question. A placeholder without a value stays as it is.
func (d ToolDefinition) Ask(arguments JSON) string {
	text := d.Question
	if text == "" {
		text = "{{" + personField + "}}"
	}
	filled, err := PromptDefinition{Name: d.Name, Text: text, Variables: said(text, arguments)}.Fill(arguments)
	if err != nil { // a value that is too large
		filled = text
	}
	if len(filled) > maxQuestion {
		filled = strings.ToValidUTF8(filled[:maxQuestion], "") + "..."
	}
	return filled
}

// said returns the placeholders of a text for which the arguments have a value.
func said(text string, arguments JSON) []string {
	var object map[string]JSON
	if jsontext.Value(arguments).Kind() != '{' || json.Unmarshal(arguments, &object) != nil {
		return nil
	}
	var names []string
	for _, name := range Placeholders(text) {
		if _, ok := variable([]map[string]JSON{object}, name); ok {
			names = append(names, name)
		}
	}
	return names
}

// answerField wraps an answer, which may be any JSON, so that it is checked like an argument.
const answerField = "answer"

// AnswerSchema returns the JSON Schema of an object whose one field, answer, must satisfy the
// schema of an answer. Only objects can be checked against a schema.
func AnswerSchema(answer JSON) (JSON, error) {
	var fields map[string]JSON
	if err := json.Unmarshal(answer, &fields); err != nil {
		return nil, Invalid("", "a JSON Schema is an object: %w", err)
	}
	if _, ok := fields["$id"]; ok {
		return nil, Invalid("/$id", "the JSON Schema of an answer has no name of its own; leave it out")
	}
	delete(fields, "$schema")
	fields["$id"] = JSON(`"urn:skein:answer"`) // so that "#" is the answer's own schema
	own, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return JSON(`{"type":"object","required":["` + answerField + `"],"properties":{"` + answerField + `":` + string(own) + `}}`), nil
}

// AnswerArguments wraps an answer in the object that AnswerSchema describes.
func AnswerArguments(answer JSON) JSON {
	return JSON(`{"` + answerField + `":` + string(answer) + `}`)
}

// AnswerPath returns a path in that object as the path in the answer.
func AnswerPath(path string) string { return strings.TrimPrefix(path, "/"+answerField) }
