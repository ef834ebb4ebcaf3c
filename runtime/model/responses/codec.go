package responses

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// FromEnv returns the configuration in the environment: the address in SKEIN_OPENAI_BASE_URL, else
// OPENAI_BASE_URL, and the key in SKEIN_OPENAI_API_KEY, else OPENAI_API_KEY. getenv is usually
// os.Getenv.
func FromEnv(getenv func(string) string) model.Config {
	first := func(names ...string) string {
		for _, name := range names {
			if v := getenv(name); v != "" {
				return v
			}
		}
		return ""
	}
	return model.Config{
		BaseURL: first("SKEIN_OPENAI_BASE_URL", "OPENAI_BASE_URL"),
		APIKey:  first("SKEIN_OPENAI_API_KEY", "OPENAI_API_KEY"),
	}
}

// New returns a reactor that calls an endpoint; by default OpenAI's. The error names everything that
// is wrong with the configuration.
func New(c model.Config) (*model.Reactor, error) { return model.New(c, Codec{}) }

// Codec is the codec of the Responses protocol.
type Codec struct{}

// Protocol implements model.Codec.
func (Codec) Protocol() model.Protocol {
	return model.Protocol{
		Name: "Responses", Path: "/responses", EmbeddingsPath: "/embeddings", LastName: "response.completed", TooLong: `"context_length_exceeded"`,
		Params:  rules(),
		BaseURL: DefaultBaseURL, Provider: "openai", Setting: "SKEIN_OPENAI",
		Authorize: func(h http.Header, key string) {
			if key != "" {
				h.Set("Authorization", "Bearer "+key)
			}
		},
		Returns: returns,
	}
}

// event is an event of an answer, of any type.
type event struct {
	Type     string      `json:"type"`
	At       int64       `json:"output_index"`
	ItemID   string      `json:"item_id"`
	Delta    events.JSON `json:"delta"`
	Item     events.JSON `json:"item"`
	Response events.JSON `json:"response"`
	Error    events.JSON `json:"error"`
}

// item is an item of an answer, of any type.
type item struct {
	Type             string      `json:"type"`
	ID               string      `json:"id"`
	Status           string      `json:"status"`
	Phase            string      `json:"phase"`
	CallID           string      `json:"call_id"`
	Name             string      `json:"name"`
	Arguments        string      `json:"arguments"`
	Summary          events.JSON `json:"summary"`
	Content          events.JSON `json:"content"`
	EncryptedContent events.JSON `json:"encrypted_content"`
}

// response is a whole answer.
type response struct {
	Model             string        `json:"model"`
	Output            []events.JSON `json:"output"`
	Error             events.JSON   `json:"error"`
	IncompleteDetails struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage events.JSON `json:"usage"`
}

// usage is what an answer has used.
type usage struct {
	InputTokens        int64 `json:"input_tokens"`
	InputTokensDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens        int64 `json:"output_tokens"`
	OutputTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

// decoder reads the events of one answer.
type decoder struct{ out *model.Output }

// Decode implements model.Codec.
func (c Codec) Decode(out *model.Output) model.Decoder { return decoder{out}.event }

func (d decoder) event(raw model.Event) (last bool, err error) {
	if raw.Over() {
		return true, nil
	}
	var e event
	if err := model.Read(events.JSON(raw), &e); err != nil {
		return false, model.Unreadable(err.Error())
	}
	if e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null" {
		return false, Codec{}.Protocol().Failure(events.JSON(raw))
	}
	switch e.Type {
	case "":
		return false, model.Unreadable("an event has no type")
	case "response.output_text.delta":
		d.out.Text(e.At, e.ItemID, model.Text(e.Delta))
	case "response.refusal.delta":
		d.out.Refusal(e.At, e.ItemID, model.Text(e.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		d.out.Reasoning(e.At, e.ItemID, model.Text(e.Delta))
	case "response.function_call_arguments.delta":
		d.out.Arguments(e.At, model.Text(e.Delta))
	case "response.output_item.added":
		d.added(e)
	case "response.output_item.done":
		d.done(e)
	case "response.completed", "response.incomplete":
		return true, d.end(e)
	case "response.failed":
		var r response
		_ = model.Read(e.Response, &r) // without an error it names none
		return false, Codec{}.Protocol().Failure(r.Error)
	case "response.cancelled":
		return false, &model.Failure{Text: "the model's endpoint cancelled the answer", Retry: true}
	}
	return false, nil
}

// added streams that an item has begun.
func (d decoder) added(e event) {
	var i item
	_ = model.Read(e.Item, &i) // what is none of its type is found at its end
	switch i.Type {
	case "message":
		d.out.Phase(e.At, i.Phase)
	case "function_call":
		d.out.BeginCall(e.At, i.CallID, i.Name)
	}
}

// done notes a complete item, and streams its end.
func (d decoder) done(e event) {
	e.Item = withText(e.Item)
	d.out.Item(e.At, e.Item)
	var i item
	_ = model.Read(e.Item, &i) // what is none of its type is found at the end of the answer
	switch {
	case i.Type == "message":
		var parts []struct {
			Annotations []events.JSON `json:"annotations"`
		}
		if model.Read(i.Content, &parts) == nil && len(parts) == 1 { // its deltas are one text
			d.out.Annotations(e.At, i.ID, parts[0].Annotations)
		}
	case i.Type == "reasoning" && (model.Holds(i.Summary) || model.Holds(i.Content) || model.Holds(i.EncryptedContent)):
		d.out.EndReasoning(e.At, i.ID, model.Text(i.EncryptedContent))
	case i.Type == "function_call" && i.Status != "incomplete":
		d.out.EndCall(e.At, i.CallID, i.Name, i.Arguments)
	case i.Type != "" && i.Type != "reasoning" && i.Type != "function_call":
		d.out.OwnItem(e.Item)
	}
}

// withText returns an item with the arguments of a call as text: some endpoints send an object.
func withText(raw events.JSON) events.JSON {
	var call map[string]events.JSON
	if model.Read(raw, &call) != nil || model.Text(call["type"]) != "function_call" || jsontext.Value(call["arguments"]).Kind() != '{' {
		return raw
	}
	call["arguments"] = events.Quote(string(call["arguments"]))
	text, err := json.Marshal(call, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return raw // the end of the answer says what is wrong with it
	}
	return text
}

// end reads the last event.
func (d decoder) end(e event) error {
	var r response
	if err := model.Read(e.Response, &r); err != nil {
		return model.Unreadable(err.Error())
	}
	for n := range r.Output {
		r.Output[n] = withText(r.Output[n])
	}
	d.out.Items(r.Output)
	var u usage
	_ = model.Read(r.Usage, &u) // an answer is not lost for a count that is none
	d.out.Usage(runtime.Usage{
		Model: r.Model, InputTokens: u.InputTokens, CachedTokens: u.InputTokensDetails.CachedTokens,
		OutputTokens: u.OutputTokens, ReasoningTokens: u.OutputTokensDetails.ReasoningTokens, TotalTokens: u.TotalTokens,
	}, r.Usage)
	finish := ""
	if r.IncompleteDetails.Reason != "" || e.Type == "response.incomplete" {
		finish = model.FinishReason(r.IncompleteDetails.Reason)
	}
	d.out.End(finish)
	return nil
}
