package runtime

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Answer returns a reaction with a text and no tool calls.
func Answer(said string) *Reaction {
	return &Reaction{AssistantEvent: Assistant{Content: []events.JSON{object("type", "output_text", "text", said)}}}
}

// LastText returns the text of the last message with a role in Items, such as
// events.User: its text parts, joined. It is empty if there is none.
func (in *StepInput) LastText(role events.Role) string {
	for i := len(in.Items) - 1; i >= 0; i-- {
		if in.Items[i].Type != events.Message || in.Items[i].Role != role {
			continue
		}
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		_ = json.Unmarshal(in.Items[i].Content, &parts) // content that is not a list of parts has no text
		var said strings.Builder
		for _, p := range parts {
			switch p.Type {
			case "input_text", "output_text", "text":
				said.WriteString(p.Text)
			}
		}
		return said.String()
	}
	return ""
}
