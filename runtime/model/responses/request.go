package responses

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

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

// Encode implements model.Codec. The model's params override the limits and store, and add to the
// tools.
func (Codec) Encode(t *model.Turn) (*model.Request, error) {
	tools, err := t.EncodeTools(func(tool runtime.ToolSpec) any {
		return functionTool{"function", tool.Name, tool.Description, tool.Parameters, tool.Strict}
	}, model.Field{Name: "store", Into: &t.Store})
	if err != nil {
		return nil, err
	}
	f := fields{
		Model: t.Model, Instructions: t.Instructions, Tools: tools, MaxOutputTokens: t.MaxOutputTokens, Temperature: t.Temperature,
		Store: t.Store, Params: t.Params,
	}
	if !f.Store && !t.RawReasoning && asksForReasoning(t) {
		f.Params["include"] = withInclude(f.Params["include"], encryptedReasoning)
	}
	if f.Input, err = json.Marshal(inputOf(t.Items), json.Deterministic(true)); err != nil {
		return nil, fmt.Errorf("the thread's items cannot be sent: %w", err)
	}
	return model.NewRequest(f, `"stream":true`, f.Input)
}
