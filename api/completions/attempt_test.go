package completions_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
)

// chunkOf returns a chunk with the data of pairs.
func chunkOf(kind string, pairs ...string) skein.Chunk {
	of := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		of[pairs[i]] = pairs[i+1]
	}
	data, _ := json.Marshal(of)
	return skein.Chunk{Type: kind, Data: data}
}

// A stream shows what a model writes once, though the model is asked again in the middle of it: of the
// second attempt only what the first had not shown, and of calls those that were made.
func TestStream_ModelIsAskedAgain(t *testing.T) {
	w := start(t, nil)
	text := func(piece string) skein.Chunk { return chunkOf(events.ChunkTextDelta, "id", "t", "delta", piece) }
	begun := func(id string) skein.Chunk {
		return chunkOf(events.ChunkToolInputStart, "toolCallId", id, "toolName", "weather")
	}
	written := func(id, piece string) skein.Chunk {
		return chunkOf(events.ChunkToolInputDelta, "toolCallId", id, "inputTextDelta", piece)
	}
	call := skein.Answer("")
	call.ToolCalls = []skein.ToolCall{{CallID: "c2", Name: "weather", Arguments: []byte(`{"city":"Paris"}`)}}
	cases := map[string]struct {
		attempts [2][]skein.Chunk
		last     *skein.Reaction
		text     string
		calls    string
	}{
		"the same text": {
			[2][]skein.Chunk{{text("It "), text("left ")}, {text("It "), text("left "), text("today.")}}, skein.Answer("It left today."), "It left today.", "",
		},
		"another text": {[2][]skein.Chunk{{text("It ")}, {text("They left.")}}, skein.Answer("They left."), "It They left.", ""},
		"another call": {
			[2][]skein.Chunk{{begun("c1"), written("c1", `{"ci`)}, {begun("c2"), written("c2", `{"city":`), written("c2", `"Paris"}`)}}, call, "", `c2 weather {"city":"Paris"}`,
		},
	}
	w.s.Must(w.s.Reactor("twice", func(_ context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		c := cases[in.LastText(events.User)]
		n := min(int(in.Attempt)-1, 1)
		for _, chunk := range c.attempts[n] {
			out.Chunk(chunk)
		}
		if n == 0 {
			return nil, &skein.RetryError{Err: errors.New("it broke off")}
		}
		return c.last, nil
	}))
	w.define("agent", `{"name":"twice","type":"ai_human","reactor":"twice"}`)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, raw := w.post(`{"model":"twice","stream":true,"messages":[{"role":"user","content":"` + name + `"}],"tools":[{"type":"function","function":{"name":"weather"}}]}`)
			said, calls := "", map[int]string{}
			for line := range strings.Lines(string(raw)) {
				var f struct {
					Choices []struct {
						Delta struct {
							Content string `json:"content"`
							Calls   []struct {
								Index    int    `json:"index"`
								ID       string `json:"id"`
								Function struct{ Name, Arguments string }
							} `json:"tool_calls"`
						}
					}
				}
				if json.Unmarshal([]byte(strings.TrimPrefix(strings.TrimSpace(line), "data: ")), &f) != nil || len(f.Choices) == 0 {
					continue
				}
				said += f.Choices[0].Delta.Content
				for _, one := range f.Choices[0].Delta.Calls {
					if one.ID != "" {
						calls[one.Index] += one.ID + " " + one.Function.Name + " "
					}
					calls[one.Index] += one.Function.Arguments
				}
			}
			if said != c.text || calls[0] != c.calls || len(calls) > 1 {
				t.Errorf("the text is %q, the calls %v in\n%s", said, calls, raw)
			}
		})
	}
}
