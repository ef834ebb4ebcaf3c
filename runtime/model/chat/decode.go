package chat

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// Places of an answer: its reasoning, its text, and its calls.
const (
	reasoningPlace = iota
	textPlace
	firstCall
)

// chunk is an event of an answer.
type chunk struct {
	Model   string      `json:"model"`
	Error   events.JSON `json:"error"`
	Choices []struct {
		Delta struct {
			Content          events.JSON `json:"content"` // a text, or a list of parts
			Refusal          string      `json:"refusal"`
			ReasoningContent string      `json:"reasoning_content"`
			Reasoning        events.JSON `json:"reasoning"` // of other servers
			Calls            []piece     `json:"tool_calls"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage events.JSON `json:"usage"`
}

// usage is what an answer has used.
type usage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	Total         int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	CacheHits int64 `json:"prompt_cache_hit_tokens"` // of DeepSeek
	Cached    int64 `json:"cached_tokens"`           // of Moonshot
}

// piece is a piece of a call. Some servers leave out its index, or send the same one for all calls.
type piece struct {
	Index    *int64 `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string      `json:"name"`
		Arguments events.JSON `json:"arguments"` // a piece of text, or an object
	} `json:"function"`
}

// made is a call of an answer.
type made struct {
	index     int64
	id, name  string
	arguments strings.Builder
	begun     bool
}

// decoder reads the chunks of one answer.
type decoder struct {
	out                      *model.Output
	reasoning, text, refusal strings.Builder
	calls                    []*made
	model                    string
	usage                    usage
	used                     events.JSON
	ended                    bool
}

// Decode implements model.Codec.
func (Codec) Decode(out *model.Output) model.Decoder { return (&decoder{out: out}).event }

func (d *decoder) event(raw model.Event) (last bool, err error) {
	if raw.Over() {
		return true, nil
	}
	var c chunk
	if err := model.Read(events.JSON(raw), &c); err != nil {
		return false, model.Unreadable(err.Error())
	}
	if model.Holds(c.Error) {
		return false, Codec{}.Protocol().Failure(events.JSON(raw))
	}
	d.note(&c)
	if len(c.Choices) == 0 {
		return false, nil
	}
	choice := c.Choices[0]
	thought := choice.Delta.ReasoningContent
	if thought == "" {
		thought = saidBy(choice.Delta.Reasoning)
	}
	if thought != "" {
		d.reasoning.WriteString(thought)
		d.out.Reasoning(reasoningPlace, "", thought)
	}
	if said := saidBy(choice.Delta.Content); said != "" {
		d.text.WriteString(said)
		d.out.Text(textPlace, "", said)
	}
	if said := choice.Delta.Refusal; said != "" {
		d.refusal.WriteString(said)
		d.out.Refusal(textPlace, "", said)
	}
	for _, p := range choice.Delta.Calls {
		d.piece(p)
	}
	if choice.Finish == "" || d.ended {
		return false, nil
	}
	if choice.Finish == "error" {
		return false, &model.Failure{Text: "the model failed", Retry: true}
	}
	return false, d.end(model.FinishReason(choice.Finish))
}

// note notes which model answers, and what it has used so far.
func (d *decoder) note(c *chunk) {
	d.model = cmp.Or(c.Model, d.model)
	if jsontext.Value(c.Usage).Kind() == '{' {
		d.used, d.usage = c.Usage, usage{}
		_ = model.Read(c.Usage, &d.usage) // an answer is not lost for a count that is none
	}
	u := &d.usage
	d.out.Usage(runtime.Usage{
		Model: d.model, InputTokens: u.Prompt, CachedTokens: max(u.PromptDetails.Cached, u.CacheHits, u.Cached), OutputTokens: u.Completion,
		ReasoningTokens: u.CompletionDetails.Reasoning, TotalTokens: u.Total,
	}, d.used)
}

// piece adds a piece to the call that it belongs to.
func (d *decoder) piece(p piece) {
	var c *made
	for _, one := range d.calls {
		if p.Index == nil || one.index == *p.Index {
			c = one // the last one
		}
	}
	if c == nil || p.ID != "" && c.id != "" && p.ID != c.id || p.Index == nil && p.ID == "" && p.Function.Name != "" && c.name != "" {
		c = &made{index: int64(len(d.calls))}
		if p.Index != nil {
			c.index = *p.Index
		}
		d.calls = append(d.calls, c)
	}
	if c.id == "" {
		c.id = p.ID
	}
	if c.name == "" {
		c.name = p.Function.Name
	}
	at := int64(firstCall)
	for n, one := range d.calls {
		if one == c {
			at += int64(n)
		}
	}
	if !c.begun && c.name != "" {
		c.begun = true
		d.out.BeginCall(at, c.id, c.name)
	}
	said := string(p.Function.Arguments)
	switch jsontext.Value(p.Function.Arguments).Kind() {
	case '{', '[':
	default:
		said = saidBy(p.Function.Arguments)
	}
	if said != "" {
		c.arguments.WriteString(said)
		d.out.Arguments(at, said)
	}
}

// end notes the items of the answer.
func (d *decoder) end(finish string) error {
	d.ended = true
	type content struct {
		Type    string `json:"type"`
		Text    string `json:"text,omitzero"`
		Refusal string `json:"refusal,omitzero"`
	}
	item := func(at int64, v map[string]any) error {
		raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		d.out.Item(at, raw)
		return err
	}
	if said := d.reasoning.String(); said != "" {
		d.out.EndReasoning(reasoningPlace, "", "")
		if err := item(reasoningPlace, map[string]any{"type": "reasoning", "summary": []any{}, "content": []content{{Type: "reasoning_text", Text: said}}}); err != nil {
			return err
		}
	}
	var said []content
	if s := d.text.String(); s != "" {
		said = append(said, content{Type: "output_text", Text: s})
	}
	if s := d.refusal.String(); s != "" {
		said = append(said, content{Type: "refusal", Refusal: s})
	}
	if said != nil {
		if err := item(textPlace, map[string]any{"type": "message", "role": "assistant", "content": said}); err != nil {
			return err
		}
	}
	for n, c := range d.calls {
		at := int64(firstCall + n)
		d.out.EndCall(at, c.id, c.name, c.arguments.String())
		if err := item(at, map[string]any{"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments.String()}); err != nil {
			return err
		}
	}
	d.out.End(finish)
	return nil
}

// saidBy returns a text, or the texts of a list of parts.
func saidBy(raw events.JSON) (said string) {
	var parts []struct {
		Text string `json:"text"`
	}
	if jsontext.Value(raw).Kind() != '[' || model.Read(raw, &parts) != nil {
		return model.Text(raw)
	}
	for _, p := range parts {
		said += p.Text
	}
	return said
}
