package completions

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// request is the body of POST /v1/chat/completions. Unknown fields are ignored.
type request struct {
	Actor         events.JSON `json:"actor"` // refused
	Model         string      `json:"model"`
	Messages      []message   `json:"messages"`
	Stream        bool        `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	Tools               []toolParam `json:"tools"`
	ToolChoice          events.JSON `json:"tool_choice"`
	ParallelToolCalls   events.JSON `json:"parallel_tool_calls"`
	MaxTokens           events.JSON `json:"max_tokens"`
	MaxCompletionTokens events.JSON `json:"max_completion_tokens"`
	Temperature         events.JSON `json:"temperature"`
	TopP                events.JSON `json:"top_p"`
	PresencePenalty     events.JSON `json:"presence_penalty"`
	FrequencyPenalty    events.JSON `json:"frequency_penalty"`
	ReasoningEffort     events.JSON `json:"reasoning_effort"`
	Verbosity           events.JSON `json:"verbosity"`
	ResponseFormat      events.JSON `json:"response_format"`
	Metadata            events.JSON `json:"metadata"`
	ServiceTier         events.JSON `json:"service_tier"`
	User                events.JSON `json:"user"`

	N          *int64      `json:"n"`
	Stop       events.JSON `json:"stop"`
	Logprobs   bool        `json:"logprobs"`
	Modalities []string    `json:"modalities"`
	Functions  events.JSON `json:"functions"`

	input  []transform.Item // the messages after those at the front that are instructions
	from   []int            // the message of each item of the input
	system []string         // the instructions
	stops  []string         // the sequences that end the answer
}

// message is a message of a request.
type message struct {
	Role       string      `json:"role"`
	Content    events.JSON `json:"content"`
	Refusal    events.JSON `json:"refusal"`
	ToolCalls  []toolCall  `json:"tool_calls"`
	ToolCallID string      `json:"tool_call_id"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type toolParam struct {
	Type     string      `json:"type"`
	Function events.JSON `json:"function"`
}

// readRequest decodes a request, and converts its messages.
func readRequest(body []byte) (*request, error) {
	var d request
	if err := json.Unmarshal(body, &d, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, edge.NotObject(err)
	}
	switch {
	case d.Actor != nil:
		return nil, edge.NamedActor()
	case d.Model == "":
		return nil, events.Invalid("/model", "a completion needs a model: the name of an agent, or of a model that is defined; GET /v1/models lists them")
	case len(d.Messages) == 0:
		return nil, events.Invalid("/messages", "a completion needs messages")
	case d.N != nil && *d.N != 1:
		return nil, events.Invalid("/n", "a completion has one choice; leave n out")
	case given(d.Stop) && !d.readStop():
		return nil, events.Invalid("/stop", "stop is a text, or a list of at most %d, none of them empty", maxStops)
	case d.Logprobs:
		return nil, events.Invalid("/logprobs", "there are no logprobs here; leave them out")
	case given(d.Functions):
		return nil, events.Invalid("/functions", "functions is of an old form of the protocol; use tools")
	}
	for i, kind := range d.Modalities {
		if kind != "text" {
			return nil, events.Invalid("/modalities/"+strconv.Itoa(i), "a completion is text, and not %.32q", kind)
		}
	}
	return &d, d.convert()
}

// maxStops is how many sequences may end an answer.
const maxStops = 4

// readStop decodes the sequences that end an answer, and reports whether they can be ones.
func (d *request) readStop() bool {
	if jsontext.Value(d.Stop).Kind() == '"' {
		d.Stop = slices.Concat(events.JSON("["), d.Stop, events.JSON("]"))
	}
	return json.Unmarshal(d.Stop, &d.stops) == nil && len(d.stops) <= maxStops && !slices.Contains(d.stops, "")
}

// convert divides the messages into instructions and the input of a response.
func (d *request) convert() error {
	front := true
	calls := map[string]bool{}
	for i := range d.Messages {
		m, path := &d.Messages[i], "/messages/"+strconv.Itoa(i)
		system := m.Role == string(events.System) || m.Role == string(events.Developer)
		front = front && system
		if front && i < len(d.Messages)-1 { // something must be answered
			said, err := m.text(path)
			if err != nil {
				return err
			}
			d.system = append(d.system, said)
			continue
		}
		list, err := m.items(path, calls)
		if err != nil {
			return err
		}
		for _, o := range list {
			d.input, d.from = append(d.input, o), append(d.from, i)
		}
	}
	if last := d.Messages[len(d.Messages)-1].Role; last == string(events.Assistant) {
		return events.Invalid("/messages/"+strconv.Itoa(len(d.Messages)-1)+"/role", "the last message is a user's, or the result of a tool, and not the assistant's")
	}
	if !slices.ContainsFunc(d.input, openresponses.Says) {
		return events.Invalid("/messages/"+strconv.Itoa(len(d.Messages)-1)+"/content", "there is nothing to answer: no message has a text, an image or a file")
	}
	return nil
}

// items converts a message to items. calls are the calls in the messages before it.
func (m *message) items(path string, calls map[string]bool) ([]transform.Item, error) {
	switch m.Role {
	case "system", "developer", "user":
		content, err := m.parts(path, events.InputText)
		return []transform.Item{{Type: messageItem, Role: events.Role(m.Role), Content: content}}, err
	case "assistant":
		return m.assistant(path, calls)
	case "tool":
		if !calls[m.ToolCallID] {
			return nil, events.Invalid(path+"/tool_call_id", "no message of the assistant before this one has a tool call %.80q", m.ToolCallID)
		}
		output := m.Content
		if !given(output) {
			return nil, events.Invalid(path+"/content", "the content of a tool's message is a text, or a list of parts, and not null; send an empty text if the tool returned nothing")
		}
		if jsontext.Value(output).Kind() != '"' {
			var err error
			if output, err = m.parts(path, events.InputText); err != nil {
				return nil, err
			}
		}
		return []transform.Item{{Type: resultItem, CallID: m.ToolCallID, Output: output}}, nil
	}
	return nil, events.Invalid(path+"/role", "a role is system, developer, user, assistant or tool, and not %.32q", m.Role)
}

// assistant converts a message of the assistant: what it says, and then its calls.
func (m *message) assistant(path string, calls map[string]bool) (list []transform.Item, err error) {
	content := events.JSON("[]")
	if given(m.Content) {
		if content, err = m.parts(path, events.OutputText); err != nil {
			return nil, err
		}
	}
	if given(m.Refusal) {
		var parts []events.JSON
		_ = json.Unmarshal(content, &parts) // it was written here
		content = marshal(append(parts, marshal(map[string]events.JSON{"type": events.Quote(events.Refusal), "refusal": m.Refusal})))
	}
	if string(content) != "[]" {
		list = append(list, transform.Item{Type: messageItem, Role: events.Assistant, Content: content})
	}
	for n, c := range m.ToolCalls {
		at := path + "/tool_calls/" + strconv.Itoa(n)
		switch {
		case c.Type != "" && c.Type != functionType:
			return nil, events.Invalid(at+"/type", "a tool call is one of a function, and not %.32q", c.Type)
		case c.ID == "" || c.Function.Name == "":
			return nil, events.Invalid(at, "a tool call has an id, and a function with a name")
		}
		calls[c.ID] = true
		list = append(list, transform.Item{Type: callItem, CallID: c.ID, Name: c.Function.Name, Arguments: new(c.Function.Arguments)})
	}
	return list, nil
}

// The types of items, of tools and of calls.
const (
	messageItem   = "message"
	reasoningItem = "reasoning"
	callItem      = "function_call"
	resultItem    = "function_call_output"
	functionType  = "function"
)

// parts converts the content of a message: a text, or a list of parts. Empty texts say nothing.
func (m *message) parts(path, textType string) (events.JSON, error) {
	path += "/content"
	var list []events.JSON
	switch jsontext.Value(m.Content).Kind() {
	case '"':
		list = []events.JSON{marshal(map[string]events.JSON{"type": events.Quote("text"), "text": m.Content})}
	case '[':
		_ = json.Unmarshal(m.Content, &list) // it is a list
	case 'n', 0:
		return nil, events.Invalid(path, "the content of a message of the role %s is a text, or a list of parts, and not null; only the assistant's may be", m.Role)
	default:
		return nil, events.Invalid(path, "the content of a message is a text, or a list of parts")
	}
	out := []any{}
	for n, raw := range list {
		var p struct {
			Type     string      `json:"type"`
			Text     *string     `json:"text"`
			Refusal  *string     `json:"refusal"`
			ImageURL events.JSON `json:"image_url"`
			File     struct {
				ID   string `json:"file_id,omitzero"`
				Data string `json:"file_data,omitzero"`
				Name string `json:"filename,omitzero"`
				Type string `json:"type"`
			} `json:"file"`
		}
		at := path + "/" + strconv.Itoa(n)
		if json.Unmarshal(raw, &p, jsontext.AllowDuplicateNames(true)) != nil {
			return nil, events.Invalid(at, "a part is an object with a type, and a field of that name")
		}
		switch {
		case p.Type == "text" && p.Text != nil:
			if *p.Text != "" || len(list) == 1 && textType == events.InputText {
				out = append(out, map[string]string{"type": textType, "text": *p.Text})
			}
		case p.Type == "refusal" && p.Refusal != nil && textType == events.OutputText:
			out = append(out, map[string]string{"type": events.Refusal, "refusal": *p.Refusal})
		case p.Type == "image_url" && textType == events.InputText:
			var image struct {
				URL    string `json:"url"`
				Detail string `json:"detail"`
			}
			if jsontext.Value(p.ImageURL).Kind() == '"' { // some clients send the URL alone
				_ = json.Unmarshal(p.ImageURL, &image.URL)
			} else if json.Unmarshal(p.ImageURL, &image) != nil || image.URL == "" {
				return nil, events.Invalid(at+"/image_url", "an image has a url")
			}
			out = append(out, map[string]string{"type": events.InputImage, "image_url": image.URL, "detail": cmp.Or(image.Detail, "auto")})
		case p.Type == "file" && textType == events.InputText:
			one := map[string]string{"type": events.InputFile}
			switch {
			case p.File.Data != "":
				one["file_data"], one["filename"] = p.File.Data, p.File.Name
			case p.File.ID != "":
				one["file_id"] = p.File.ID
			default:
				return nil, events.Invalid(at+"/file", "a file has file_data, a data URL, or a file_id")
			}
			out = append(out, one)
		default:
			return nil, events.Invalid(at, "a part of type %.32q has no effect in a message of the role %s", p.Type, m.Role)
		}
	}
	return marshal(out), nil
}

// text returns the text of a message at the front.
func (m *message) text(path string) (string, error) {
	content, err := m.parts(path, events.InputText)
	if err != nil {
		return "", err
	}
	var parts []struct {
		Type, Text string
	}
	_ = json.Unmarshal(content, &parts, json.MatchCaseInsensitiveNames(true)) // it was written here
	var all []string
	for n, p := range parts {
		if p.Type != events.InputText {
			return "", events.Invalid(path+"/content/"+strconv.Itoa(n), "instructions are texts")
		}
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n"), nil
}

// response returns the request as one for a response, without its input.
func (d *request) response(place map[string]any) events.JSON {
	tools := []map[string]events.JSON{}
	for _, t := range d.Tools {
		fields := map[string]events.JSON{}
		_ = json.Unmarshal(t.Function, &fields) // what is missing is refused there
		fields["type"] = events.Quote(t.Type)
		tools = append(tools, fields)
	}
	out := map[string]any{"model": d.Model, "instructions": strings.Join(d.system, "\n\n")}
	for name, v := range map[string]events.JSON{
		"tool_choice": d.choice(), "parallel_tool_calls": d.ParallelToolCalls, "temperature": d.Temperature, "top_p": d.TopP,
		"presence_penalty": d.PresencePenalty, "frequency_penalty": d.FrequencyPenalty, "metadata": d.Metadata, "user": d.User, "service_tier": d.ServiceTier,
	} {
		if given(v) {
			out[name] = v
		}
	}
	if limit := d.MaxCompletionTokens; given(limit) {
		out["max_output_tokens"] = limit
	} else if given(d.MaxTokens) {
		out["max_output_tokens"] = d.MaxTokens
	}
	if len(tools) > 0 {
		out["tools"] = tools
	}
	if given(d.ReasoningEffort) {
		out["reasoning"] = map[string]events.JSON{"effort": d.ReasoningEffort}
	}
	text := map[string]any{}
	if given(d.Verbosity) {
		text["verbosity"] = d.Verbosity
	}
	if given(d.ResponseFormat) {
		text["format"] = d.format()
	}
	if len(text) > 0 {
		out["text"] = text
	}
	for name, v := range place {
		out[name] = v
	}
	return marshal(out)
}

// choice returns the tool_choice as a response has it: without the object of the function.
func (d *request) choice() events.JSON {
	var of struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if jsontext.Value(d.ToolChoice).Kind() != '{' || json.Unmarshal(d.ToolChoice, &of) != nil || of.Type != functionType {
		return d.ToolChoice
	}
	return marshal(map[string]string{"type": of.Type, "name": of.Function.Name})
}

// format returns the response_format as a response has it: without the object of the schema.
func (d *request) format() events.JSON {
	var of struct {
		Type   string                 `json:"type"`
		Schema map[string]events.JSON `json:"json_schema"`
	}
	if json.Unmarshal(d.ResponseFormat, &of) != nil || of.Schema == nil {
		return d.ResponseFormat
	}
	of.Schema["type"] = events.Quote(of.Type)
	return marshal(of.Schema)
}

// refused returns a refusal with the parameter that the client has sent. first is the first item of
// the input that was passed on.
func (d *request) refused(err error, first int) error {
	e := *events.AsError(err)
	if e.Details == nil || e.Details.Path == "" {
		return err
	}
	details := *e.Details
	before := details.Path
	if rest, is := strings.CutPrefix(before, "/input"); is {
		details.Path = "/messages"
		number, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		if n, wrong := strconv.Atoi(number); wrong == nil && n >= 0 && first+n < len(d.from) {
			details.Path += "/" + strconv.Itoa(d.from[first+n])
		}
	}
	for _, pair := range [][2]string{
		{"/text/format/type", "/response_format/type"}, {"/text/format", "/response_format/json_schema"}, {"/text/verbosity", "/verbosity"},
		{"/max_output_tokens", "/max_completion_tokens"}, {"/reasoning/effort", "/reasoning_effort"}, {"/tool_choice/name", "/tool_choice/function/name"},
	} {
		if rest, is := strings.CutPrefix(before, pair[0]); is {
			details.Path = pair[1] + rest
			if pair[0] == "/max_output_tokens" && !given(d.MaxCompletionTokens) {
				details.Path = "/max_tokens" + rest
			}
			break
		}
	}
	if rest, is := strings.CutPrefix(before, "/tools/"); is {
		if n, field, more := strings.Cut(rest, "/"); more && field != "type" {
			details.Path = fmt.Sprintf("/tools/%s/function/%s", n, field)
		}
	}
	if details.Path != before { // the message may name the field of a response
		e.Message = strings.TrimPrefix(e.Message, before+": ")
		e.Message = strings.ReplaceAll(e.Message, strings.TrimPrefix(before, "/"), strings.TrimPrefix(details.Path, "/"))
	}
	e.Details = &details
	return &e
}

// given reports whether a field is there, and not null.
func given(v events.JSON) bool {
	k := jsontext.Value(v).Kind()
	return k != 0 && k != 'n'
}

// marshal encodes values that were decoded from JSON, or made here.
func marshal(v any) events.JSON {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil { // it was JSON
		return nil
	}
	return raw
}
