package openresponses

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// createRequest is the body of POST /v1/responses. Unknown fields are ignored.
type createRequest struct {
	Type               string      `json:"type"`  // of a frame on a WebSocket
	Actor              events.JSON `json:"actor"` // refused
	Model              string      `json:"model"`
	Input              events.JSON `json:"input"`
	Instructions       string      `json:"instructions"`
	PreviousResponseID string      `json:"previous_response_id"`
	Conversation       events.JSON `json:"conversation"`
	Prompt             events.JSON `json:"prompt"`
	Tools              []toolParam `json:"tools"`
	Stream             bool        `json:"stream"`
	Background         bool        `json:"background"`
	Store              *bool       `json:"store"`
	MaxOutputTokens    *int64      `json:"max_output_tokens"`
	Temperature        *float64    `json:"temperature"`
	Include            []string    `json:"include"`

	Metadata       map[string]string `json:"metadata"`
	ServiceTier    string            `json:"service_tier"`
	PromptCacheKey *string           `json:"prompt_cache_key"`
	User           string            `json:"user"`
	StreamID       events.JSON       `json:"stream_id"`
	Generate       *bool             `json:"generate"`
	modelParameters

	input []transform.Item // decoded
	size  int              // of its JSON, in bytes

	digest string // of the body, if the request may be repeated
	keyed  bool   // by an Idempotency-Key
	retry  retry  // of a client that repeats requests without an Idempotency-Key
	warmed string // the thread that an earlier request on the same socket has warmed up

	foreign   bool     // it is a request of another protocol, and answers nothing that waits
	threadKey string   // of the thread that it creates
	version   *int64   // that its conversation must have
	stop      []string // sequences that end the answer
}

// modelParameters are what the reactor hands to the model unchanged.
type modelParameters struct {
	TopP              *float64    `json:"top_p,omitzero"`
	PresencePenalty   *float64    `json:"presence_penalty,omitzero"`
	FrequencyPenalty  *float64    `json:"frequency_penalty,omitzero"`
	TopLogprobs       *int64      `json:"top_logprobs,omitzero"`
	Text              events.JSON `json:"text,omitzero"`
	Reasoning         events.JSON `json:"reasoning,omitzero"`
	ToolChoice        events.JSON `json:"tool_choice,omitzero"`
	ParallelToolCalls *bool       `json:"parallel_tool_calls,omitzero"`
	MaxToolCalls      *int64      `json:"max_tool_calls,omitzero"`
	Truncation        string      `json:"truncation,omitzero"`
	SafetyIdentifier  *string     `json:"safety_identifier,omitzero"`
}

// toolParam is a tool of a request.
type toolParam struct {
	Type        string      `json:"type"`
	Name        string      `json:"name"`
	Description *string     `json:"description"`
	Parameters  events.JSON `json:"parameters"`
	Strict      *bool       `json:"strict"`
}

// serverTools is the include that shows the tools that the server runs.
const serverTools = "skein.server_tools"

// readBody decodes the body of a request. Unknown fields are ignored.
func readBody(r *http.Request, into any) error {
	body, err := edge.Body(r, edge.MaxMessageBody)
	if err != nil {
		return err
	}
	return decode(body, into)
}

func decode(body []byte, into any) error {
	if len(body) == 0 {
		body = []byte("{}")
	}
	return misfit("", json.Unmarshal(body, into, jsontext.AllowDuplicateNames(true)))
}

// misfit returns the refusal of a value that cannot be decoded, with the path of what is wrong
// under its own.
func misfit(path string, err error) error {
	wrong := (*json.SemanticError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && path == "" && wrong.JSONPointer == "":
		return events.Invalid("", "the body is not a JSON object")
	case wrong != nil:
		path += string(wrong.JSONPointer)
		return events.Invalid(path, "%.80q has the wrong type", path)
	}
	return events.Invalid(path, "this is not JSON: %s", strings.ReplaceAll(err.Error(), "jsontext: ", ""))
}

// decodeCreate decodes and checks a request for a response.
func decodeCreate(body []byte) (*createRequest, error) {
	var d createRequest
	if err := decode(body, &d); err != nil {
		return nil, err
	}
	return &d, d.check()
}

// check decodes the input, and refuses what cannot have an effect.
func (d *createRequest) check() error {
	d.dropNulls()
	switch {
	case d.Actor != nil:
		return edge.NamedActor()
	case d.Model == "":
		return events.Invalid("/model", "a response needs a model: the name of an agent, or of a model that is defined; GET /v1/models lists them")
	case !events.Pattern(events.PatternName).MatchString(d.Model):
		return noModel(d.Model)
	case d.Prompt != nil:
		return events.Invalid("/prompt", "there are no stored prompts here; define an agent with a prompt, and name it as the model")
	case d.PreviousResponseID != "" && d.Conversation != nil:
		return events.Invalid("/conversation", "a request continues either previous_response_id or a conversation")
	case d.Conversation != nil && !d.stored():
		return events.Invalid("/store", "a conversation keeps its items; leave out store: false, or the conversation")
	case d.Background && !d.stored():
		return events.Invalid("/background", "a response in the background must be stored, to be read later")
	case d.Truncation != "" && d.Truncation != "auto" && d.Truncation != "disabled":
		return events.Invalid("/truncation", "truncation is auto or disabled")
	case !slices.Contains([]string{"", "auto", "default"}, d.ServiceTier):
		return events.Invalid("/service_tier", "the only service tier here is default")
	}
	if err := d.checkBounds(); err != nil {
		return err
	}
	if err := d.checkText(); err != nil {
		return err
	}
	if err := d.checkReasoning(); err != nil {
		return err
	}
	for i, name := range d.Include {
		if !slices.Contains([]string{serverTools, "reasoning.encrypted_content", "message.output_text.logprobs"}, name) {
			return events.Invalid("/include/"+strconv.Itoa(i), "include of %s has no effect here; use %s, reasoning.encrypted_content or message.output_text.logprobs", clipped(name), serverTools)
		}
	}
	if len(d.Tools) > mostTools {
		return events.Invalid("/tools", "a request has at most %d tools; it has %d", mostTools, len(d.Tools))
	}
	names := map[string]bool{}
	for i, t := range d.Tools {
		path := "/tools/" + strconv.Itoa(i)
		switch {
		case t.Type != functionTool:
			return events.Invalid(path+"/type", "a tool of type %s has no effect here: give tools of the server to an agent, and functions to a request", clipped(t.Type))
		case !events.Pattern(events.PatternTool).MatchString(t.Name):
			return events.Invalid(path+"/name", "a tool's name is 1 to 64 letters, digits, dashes and underscores")
		case names[t.Name]:
			return events.Invalid(path+"/name", "two tools have the name %s", t.Name)
		}
		names[t.Name] = true
	}
	if _, err := d.chosen(); err != nil {
		return err
	}
	var err error
	d.size = len(d.Input)
	d.input, err = inputOf(d.Input)
	return err
}

// dropNulls treats null as absent.
func (d *createRequest) dropNulls() {
	for _, v := range []*events.JSON{&d.Input, &d.Conversation, &d.Prompt, &d.Text, &d.Reasoning, &d.ToolChoice, &d.StreamID} {
		if k := jsontext.Value(*v).Kind(); k == 'n' {
			*v = nil
		}
	}
	for i := range d.Tools {
		if jsontext.Value(d.Tools[i].Parameters).Kind() == 'n' {
			d.Tools[i].Parameters = nil
		}
	}
}

// generates reports whether the request wants an answer. On a WebSocket it may only send what
// the next one continues.
func (d *createRequest) generates() bool { return d.Generate == nil || *d.Generate }

func (d *createRequest) stored() bool { return d.Store == nil || *d.Store }

// echo holds the parameters of a request that its response repeats, in the metadata of the run's
// settings.
type echo struct {
	Model              string            `json:"model"`
	PreviousResponseID string            `json:"previousResponseId,omitzero"`
	Conversation       string            `json:"conversation,omitzero"`
	Parameters         modelParameters   `json:"parameters,omitzero"`
	Input              []string          `json:"input"` // ids of items
	Include            []string          `json:"include,omitempty"`
	Background         bool              `json:"background,omitzero"`
	Temporary          bool              `json:"temporary,omitzero"` // store: false
	Metadata           map[string]string `json:"metadata,omitempty"`
	PromptCacheKey     *string           `json:"promptCacheKey,omitzero"`
	User               string            `json:"user,omitzero"`
	Request            string            `json:"request,omitzero"` // the digest of the body, if the request may be repeated
}

// settings returns the settings of the run of a request.
func (d *createRequest) settings(e *echo) (*events.RunSettings, error) {
	s := &events.RunSettings{Instructions: d.Instructions, Temperature: d.Temperature}
	if d.MaxOutputTokens != nil {
		s.MaxOutputTokens = *d.MaxOutputTokens
	}
	for _, t := range d.Tools {
		tool := events.CallerTool{Name: t.Name, Parameters: t.Parameters, Strict: t.Strict != nil && *t.Strict}
		if t.Description != nil {
			tool.Description = *t.Description
		}
		s.Tools = append(s.Tools, tool)
	}
	params, err := json.Marshal(d.modelParameters, json.Deterministic(true))
	if err != nil {
		return nil, events.Invalid("", "%w", err)
	}
	more := map[string][]string{
		"include": slices.DeleteFunc(slices.Clone(d.Include), func(name string) bool { return name == serverTools }), "stop": d.stop,
	}
	if maps.DeleteFunc(more, func(_ string, list []string) bool { return len(list) == 0 }); len(more) > 0 {
		var all map[string]any
		if err := json.Unmarshal(params, &all); err != nil {
			return nil, events.Invalid("", "%w", err)
		}
		for name, list := range more {
			all[name] = list
		}
		if params, err = json.Marshal(all, json.Deterministic(true)); err != nil {
			return nil, events.Invalid("", "%w", err)
		}
	}
	if string(params) != "{}" {
		s.Params = params
	}
	if s.Metadata, err = json.Marshal(map[string]*echo{echoKey: e}, json.Deterministic(true)); err != nil {
		return nil, events.Invalid("", "%w", err)
	}
	return s, nil
}

// echoKey is the key of the echo in the metadata of a run's settings.
const echoKey = "openResponses"

// echoOf returns what an execution's response repeats; nil if no request asked for it.
func echoOf(x *events.Execution) *echo {
	var of struct {
		Echo *echo `json:"openResponses"`
	}
	if x.Settings == nil || x.Settings.Metadata == nil || json.Unmarshal(x.Settings.Metadata, &of) != nil {
		return nil
	}
	return of.Echo
}

// inputOf decodes the input of a request: a text, or a list of items.
func inputOf(raw events.JSON) ([]transform.Item, error) {
	switch jsontext.Value(raw).Kind() {
	case 0:
		return nil, nil
	case '"':
		return []transform.Item{{Type: string(events.Message), Role: events.User, Content: raw}}, nil
	case '[':
	default:
		return nil, events.Invalid("/input", "an input is a text or a list of items")
	}
	var list []transform.Item
	if err := misfit("/input", json.Unmarshal(raw, &list)); err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Origin = nil // only Skein sets it
		if err := checkParts("/input/"+strconv.Itoa(i), list[i]); err != nil {
			return nil, err
		}
	}
	return list, checkLength(list)
}

// checkLength refuses an input with too many items.
func checkLength(list []transform.Item) error {
	if len(list) > maxInput {
		return events.Invalid("/input", "there are at most %d items in input, and not %d", maxInput, len(list))
	}
	return nil
}

// maxInput bounds the items of one request.
const maxInput = 900

// textOf returns the text of a JSON string, else "".
func textOf(v events.JSON) (s string) {
	if jsontext.Value(v).Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

func clipped(s string) string { return fmt.Sprintf("%.80s", s) }

func quoted(s string) string { return fmt.Sprintf("%.80q", s) }
