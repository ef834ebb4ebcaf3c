package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runtime"
)

// request is the request of a step, and what it contains of the thread.
type request struct {
	body  []byte
	shown runtime.Shown
}

// fields are the fixed fields of a request; the model's params come alongside.
type fields struct {
	Model           string        `json:"model"`
	Instructions    string        `json:"instructions,omitzero"`
	Input           events.JSON   `json:"input"`
	Tools           []events.JSON `json:"tools,omitempty"`
	MaxOutputTokens int64         `json:"max_output_tokens,omitzero"`
	Temperature     *float64      `json:"temperature,omitzero"`
	Store           bool          `json:"store"`

	Params map[string]events.JSON `json:",embed"`
}

// functionTool is a tool in the protocol. Its schema is not "strict" unless a caller says so:
// that would forbid optional arguments.
type functionTool struct {
	Type        string      `json:"type"`
	Name        string      `json:"name"`
	Description string      `json:"description,omitzero"`
	Parameters  events.JSON `json:"parameters"`
	Strict      bool        `json:"strict"`
}

// request returns the request of a step. The same step returns the same bytes.
func (r *Reactor) request(ctx context.Context, in *runtime.StepInput) (*request, error) {
	if in.Model.Model == "" {
		return nil, errors.New("the agent has no model: its definition must name one")
	}
	f := fields{
		Model: in.Model.Model, Instructions: in.Instructions,
		MaxOutputTokens: in.Model.MaxOutputTokens, Temperature: in.Model.Temperature, Store: r.config.Store,
	}
	for _, t := range in.Tools {
		parameters := t.Parameters
		if parameters == nil {
			parameters = events.JSON(`{"type":"object","properties":{}}`)
		}
		raw, err := json.Marshal(functionTool{"function", t.Name, t.Description, parameters, t.Strict})
		if err != nil {
			return nil, fmt.Errorf("the tool %.64q cannot be sent to the model: its parameters are not JSON", t.Name)
		}
		f.Tools = append(f.Tools, raw)
	}
	if err := f.add(r.config, in.Model.Params); err != nil {
		return nil, fmt.Errorf("the params of the model %.64q: %w", in.Model.Name, err)
	}
	if f.asksForReasoning(r.config) {
		f.Params["include"] = withInclude(f.Params["include"], encryptedReasoning)
	}
	items, err := withFiles(ctx, in)
	if err != nil {
		return nil, err
	}
	input, shown := inputOf(items, r.config.RawReasoning, r.config.endpoint())
	if len(input) == 0 {
		return nil, errors.New("nothing in the thread can be shown to the model, and endpoints refuse an empty input: add a message")
	}
	if f.Input, err = json.Marshal(input, json.Deterministic(true)); err != nil {
		return nil, fmt.Errorf("the thread's items cannot be sent: %w", err)
	}
	out := &request{}
	if out.body, err = json.Marshal(f, json.Deterministic(true)); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	sum := sha256.Sum256(f.Input)
	out.shown = runtime.Shown{Items: shown, Digest: hex.EncodeToString(sum[:])}
	return out, nil
}

// mostFiles is how many bytes of files a request has, before base64.
const mostFiles = 36 << 20

// withFiles returns the items with the files that they refer to, those of the newest items first.
// What is more than a request may have is replaced by a text that says so.
func withFiles(ctx context.Context, in *runtime.StepInput) ([]events.Item, error) {
	if in.Files == nil {
		return in.Items, nil
	}
	items := slices.Clone(in.Items)
	for left, i := int64(mostFiles), len(items)-1; i >= 0; i-- {
		for _, raw := range []*events.JSON{&items[i].Content, &items[i].Metadata} {
			var err error
			if *raw, err = attachment.Load(ctx, in.Files, *raw, &left); err != nil {
				return nil, &runtime.RetryError{Err: fmt.Errorf("read the files of the conversation: %s", events.AsError(err).Message)}
			}
		}
	}
	return items, nil
}

// add adds the params of the model's definition to the request: they override the
// limits and store, add to the tools, and must not change what defines the step.
func (f *fields) add(c Config, params events.JSON) error {
	f.Params = map[string]events.JSON{}
	if params == nil {
		return nil
	}
	if jsontext.Value(params).Kind() != '{' || json.Unmarshal(params, &f.Params) != nil {
		return errors.New("they are not a JSON object")
	}
	if err := c.permit(f.Params); err != nil {
		return err
	}
	take := func(name string, into any) error {
		raw, ok := f.Params[name]
		if !ok {
			return nil
		}
		delete(f.Params, name)
		if json.Unmarshal(raw, into) != nil {
			return fmt.Errorf("%s is of the wrong kind", name)
		}
		return nil
	}
	var tools []events.JSON
	err := errors.Join(take("tools", &tools), take("max_output_tokens", &f.MaxOutputTokens), take("temperature", &f.Temperature), take("store", &f.Store))
	f.Tools = append(f.Tools, tools...)
	return err
}
