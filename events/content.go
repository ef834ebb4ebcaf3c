package events

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Types of parts whose fields Skein knows. Any other type is an extension, stored unchanged.
const (
	InputText  = "input_text"
	OutputText = "output_text"
	Reasoning  = "reasoning"
	Refusal    = "refusal"
	InputImage = "input_image"
	InputFile  = "input_file"
)

// partTypeMax bounds the type of a part, in characters.
const partTypeMax = 128

// partsSchema is the rule of checkParts as JSON Schema.
const partsSchema = `{"type":"array","items":{"type":"object","properties":{"type":{"type":"string","minLength":1,"maxLength":128}},"required":["type"],"allOf":[` +
	`{"if":{"properties":{"type":{"enum":["input_text","output_text"]}},"required":["type"]},"then":{"properties":{"text":{"type":"string"}},"required":["text"]}},` +
	`{"if":{"properties":{"type":{"const":"refusal"}},"required":["type"]},"then":{"properties":{"refusal":{"type":"string"}},"required":["refusal"]}}]}}`

// checkParts validates the content of a message: a list of objects with a type, in which texts
// and refusals have their text.
func checkParts(raw JSON) error {
	if jsontext.Value(raw).Kind() != '[' {
		return Invalid("/content", "a message's content is a list of parts")
	}
	var invalid *Error
	if err := json.Unmarshal(raw, &partList{}); errors.As(err, &invalid) {
		return invalid
	} else if err != nil {
		return Invalid("/content", "%w", err)
	}
	return nil
}

// partList validates the parts while decoding and keeps none of them: a message may hold many,
// and every write checks each.
type partList struct{}

func (*partList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; dec.PeekKind() != ']'; i++ {
		if err := checkPart(dec); err != nil {
			var invalid *Error
			if errors.As(err, &invalid) {
				invalid.Details.Path = "/content/" + strconv.Itoa(i) + invalid.Details.Path
			}
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

func checkPart(dec *jsontext.Decoder) error {
	if kind := dec.PeekKind(); kind != '{' && kind != 0 {
		return Invalid("", "a part is an object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var buf [partTypeMax * utf8.UTFMax]byte
	name, text, refusal := buf[:0], jsontext.Kind(0), jsontext.Kind(0)
	for dec.PeekKind() != '}' {
		quoted, err := dec.ReadValue()
		if err != nil {
			return err
		}
		var scratch [16]byte
		member, _ := jsontext.AppendUnquote(scratch[:0], quoted) // the decoder has validated it
		kind := dec.PeekKind()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		switch string(member) {
		case "type":
			if kind == '"' {
				name, _ = jsontext.AppendUnquote(buf[:0], value)
			}
		case "text":
			text = kind
		case "refusal":
			refusal = kind
		}
	}
	switch {
	case len(name) == 0 || utf8.RuneCount(name) > partTypeMax:
		return Invalid("/type", "a part has a type of 1 to %d letters", partTypeMax)
	case (string(name) == InputText || string(name) == OutputText) && text != '"':
		return Invalid("/text", "%s has a text", name)
	case string(name) == Refusal && refusal != '"':
		return Invalid("/refusal", "%s has a refusal", name)
	}
	_, err := dec.ReadToken()
	return err
}

// The contents of items that are not messages.
type (
	actionExecute struct {
		CallID    JSON `json:"callId"`
		Name      JSON `json:"name"`
		Arguments JSON `json:"arguments"`
	}
	actionResult struct {
		CallID  JSON `json:"callId"`
		Output  JSON `json:"output"`
		IsError JSON `json:"isError"`
		Name    JSON `json:"name"`
	}
	itemReference struct {
		ItemID JSON `json:"itemId"`
	}
)

const (
	textSchema          = `{"type":"string","minLength":1,"maxLength":256}`
	actionExecuteSchema = `{"type":"object","additionalProperties":false,"properties":{"callId":` + textSchema + `,"name":` + textSchema + `,"arguments":true},"required":["callId","name","arguments"]}`
	actionResultSchema  = `{"type":"object","additionalProperties":false,"properties":{"callId":` + textSchema + `,"output":true,"isError":{"type":"boolean"},"name":` + textSchema + `},"required":["callId","output"]}`
	itemReferenceSchema = `{"type":"object","additionalProperties":false,"properties":{"itemId":` + textSchema + `},"required":["itemId"]}`
)

func (c actionExecute) check() error {
	if err := checkText("/content/callId", c.CallID); err != nil {
		return err
	}
	if c.Arguments == nil {
		return Invalid("/content/arguments", "a call has arguments")
	}
	return checkText("/content/name", c.Name)
}

func (c actionResult) check() error {
	if c.Output == nil {
		return Invalid("/content/output", "a result has an output")
	}
	if k := jsontext.Value(c.IsError).Kind(); c.IsError != nil && k != 't' && k != 'f' {
		return Invalid("/content/isError", "isError is true or false")
	}
	if c.Name != nil {
		if err := checkText("/content/name", c.Name); err != nil {
			return err
		}
	}
	return checkText("/content/callId", c.CallID)
}

func (c itemReference) check() error { return checkText("/content/itemId", c.ItemID) }

// checkFields decodes a content strictly and validates its fields.
func checkFields[T interface{ check() error }](raw JSON) error {
	if jsontext.Value(raw).Kind() != '{' {
		return Invalid("/content", "the content is an object")
	}
	var v T
	err := json.Unmarshal(raw, &v, json.RejectUnknownMembers(true))
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return Invalid("/content"+string(semantic.JSONPointer), "there is no such field")
	case err != nil:
		return Invalid("/content", "%w", err)
	}
	return v.check()
}

func checkText(path string, raw JSON) error {
	var s string
	if jsontext.Value(raw).Kind() != '"' || json.Unmarshal(raw, &s) != nil || s == "" || utf8.RuneCountInString(s) > 256 {
		return Invalid(path, "a text of 1 to 256 letters is needed")
	}
	return nil
}

// CheckContent validates raw as the content of an item of type t.
func CheckContent(t ItemType, raw JSON) error {
	item := NewItem{Type: t, Content: raw}
	if t == Message {
		item.Role = User
	}
	return item.Check()
}
