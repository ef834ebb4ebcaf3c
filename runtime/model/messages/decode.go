package messages

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// event is an event of an answer, of any type.
type event struct {
	Type    string `json:"type"`
	Index   int64  `json:"index"`
	Message struct {
		Model string      `json:"model"`
		Usage events.JSON `json:"usage"`
	} `json:"message"`
	Block struct {
		Type     string      `json:"type"`
		ID       string      `json:"id"`
		Name     string      `json:"name"`
		Input    events.JSON `json:"input"`
		Text     string      `json:"text"`
		Thinking string      `json:"thinking"`
		Data     string      `json:"data"`
	} `json:"content_block"`
	Delta struct {
		Type      string      `json:"type"`
		Text      string      `json:"text"`
		Thinking  string      `json:"thinking"`
		Signature string      `json:"signature"`
		Partial   events.JSON `json:"partial_json"` // a piece of text, or an object
		Stop      string      `json:"stop_reason"`
	} `json:"delta"`
	Usage events.JSON `json:"usage"`
	Error events.JSON `json:"error"`
}

// usage is what an answer has used.
type usage struct {
	Input   int64 `json:"input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}

// made is a block of an answer.
type made struct {
	kind, id, name, data, signature string
	text                            strings.Builder
	done                            bool
}

// decoder reads the events of one answer.
type decoder struct {
	out    *model.Output
	blocks map[int64]*made
	model  string
	used   map[string]events.JSON // usage
}

// Decode implements model.Codec.
func (Codec) Decode(out *model.Output) model.Decoder {
	return (&decoder{out: out, blocks: map[int64]*made{}, used: map[string]events.JSON{}}).event
}

func (d *decoder) event(raw model.Event) (last bool, err error) {
	if raw.Over() {
		return true, nil
	}
	var e event
	if err := model.Read(events.JSON(raw), &e); err != nil {
		return false, model.Unreadable(err.Error())
	}
	if e.Type == "error" || model.Holds(e.Error) {
		return false, Codec{}.Protocol().Failure(events.JSON(raw))
	}
	switch e.Type {
	case "":
		return false, model.Unreadable("an event has no type")
	case "message_start":
		d.model = e.Message.Model
		d.noteUsage(e.Message.Usage)
	case "content_block_start":
		d.begin(e)
	case "content_block_delta":
		d.delta(e)
	case "content_block_stop":
		return false, d.finish(e.Index)
	case "message_delta":
		d.noteUsage(e.Usage)
		if e.Delta.Stop != "" {
			for at := range d.blocks {
				if err := d.finish(at); err != nil {
					return false, err
				}
			}
			d.out.End(model.FinishReason(e.Delta.Stop))
		}
	case "message_stop":
		return true, nil
	}
	return false, nil
}

// noteUsage notes usage, whose fields replace earlier ones.
func (d *decoder) noteUsage(said events.JSON) {
	var fields map[string]events.JSON
	if model.Read(said, &fields) != nil {
		return // an answer is not lost for usage that is none
	}
	for name, v := range fields {
		if string(v) != "null" {
			d.used[name] = v
		}
	}
	all, err := json.Marshal(d.used, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	var u usage
	if err != nil || model.Read(all, &u) != nil {
		u = usage{}
	}
	input := u.Input + u.Written + u.Read
	d.out.Usage(runtime.Usage{Model: d.model, InputTokens: input, CachedTokens: u.Read, OutputTokens: u.Output}, all)
}

// begin notes that a block has begun. Some endpoints put all of it there.
func (d *decoder) begin(e event) {
	b := &made{kind: e.Block.Type, id: e.Block.ID, name: e.Block.Name, data: e.Block.Data}
	d.blocks[e.Index] = b
	switch b.kind {
	case "text":
		d.say(e.Index, b, e.Block.Text)
	case "thinking":
		d.think(e.Index, b, e.Block.Thinking)
	case "tool_use":
		d.out.BeginCall(e.Index, b.id, b.name)
		if said := string(e.Block.Input); model.Holds(e.Block.Input) && said != "{}" {
			d.argue(e.Index, b, e.Block.Input)
		}
	}
}

func (d *decoder) delta(e event) {
	b := d.blocks[e.Index]
	if b == nil {
		return
	}
	switch e.Delta.Type {
	case "text_delta":
		d.say(e.Index, b, e.Delta.Text)
	case "thinking_delta":
		d.think(e.Index, b, e.Delta.Thinking)
	case "signature_delta":
		b.signature += e.Delta.Signature
	case "input_json_delta":
		d.argue(e.Index, b, e.Delta.Partial)
	}
}

func (d *decoder) say(at int64, b *made, said string) {
	if said != "" {
		b.text.WriteString(said)
		d.out.Text(at, "", said)
	}
}

func (d *decoder) think(at int64, b *made, said string) {
	if said != "" {
		b.text.WriteString(said)
		d.out.Reasoning(at, "", said)
	}
}

func (d *decoder) argue(at int64, b *made, piece events.JSON) {
	said := string(piece)
	if jsontext.Value(piece).Kind() != '{' {
		said = model.Text(piece)
	}
	if said != "" {
		b.text.WriteString(said)
		d.out.Arguments(at, said)
	}
}

// finish notes a block that is complete.
func (d *decoder) finish(at int64) error {
	b := d.blocks[at]
	if b == nil || b.done {
		return nil
	}
	b.done = true
	said := b.text.String()
	var item map[string]any
	switch b.kind {
	case "text":
		if said == "" {
			return nil
		}
		item = map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": said}}}
	case "thinking", "redacted_thinking":
		kept := thought{Model: d.out.Model(), Signature: b.signature, Redacted: b.data}
		summary := []any{}
		if b.kind == "thinking" {
			kept.Thinking = &said
			if said != "" {
				summary = append(summary, map[string]any{"type": "summary_text", "text": said})
			}
		}
		raw, err := json.Marshal(kept, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return err
		}
		d.out.EndReasoning(at, "", string(raw))
		item = map[string]any{"type": "reasoning", "summary": summary, "encrypted_content": string(raw)}
	case "tool_use":
		d.out.EndCall(at, b.id, b.name, said)
		item = map[string]any{"type": "function_call", "call_id": b.id, "name": b.name, "arguments": said}
	default:
		return nil
	}
	raw, err := json.Marshal(item, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	d.out.Item(at, raw)
	return err
}
