package runview

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Part is a part of a message as threads store it.
type Part struct {
	Type        string       `json:"type"`
	Text        string       `json:"text"`
	Refusal     string       `json:"refusal"`
	Interrupted bool         `json:"interrupted"`
	Summary     []textual    `json:"summary"`
	Content     []textual    `json:"content"`
	Annotations []Annotation `json:"annotations"`
	Encrypted   string       `json:"encrypted_content"`
	ToolCallID  string       `json:"toolCallId"`
	State       string       `json:"state"`
	Input       events.JSON  `json:"input"`
	Output      events.JSON  `json:"output"`
	ErrorText   string       `json:"errorText"`
	ImageURL    string       `json:"image_url"`
	FileURL     string       `json:"file_url"`
	FileData    string       `json:"file_data"`
	Name        string       `json:"filename"`
	MediaType   string       `json:"mediaType"`
	URL         string       `json:"url"` // as the client sent it
}

type textual struct {
	Text string `json:"text"`
}

// Annotation says what a text cites.
type Annotation struct {
	Type  string `json:"type"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

// States of a call in a part.
const (
	ResultState = "output-available"
	ErrorState  = "output-error"
)

// ReadPart decodes a stored part. A field of the wrong type counts as absent.
func ReadPart(raw events.JSON) Part {
	var p Part
	if json.Unmarshal(raw, &p) == nil {
		return p
	}
	var fields map[string]events.JSON
	p = Part{}
	if json.Unmarshal(raw, &fields) != nil {
		return p
	}
	for name, value := range fields {
		one, err := json.Marshal(map[string]events.JSON{name: value})
		if err != nil {
			continue
		}
		before := p
		if json.Unmarshal(one, &p) != nil {
			p = before
		}
	}
	return p
}

// Tool returns the tool that a part's type names, "" if it names none.
func Tool(partType string) string {
	name, ok := strings.CutPrefix(partType, events.ToolPart)
	if !ok {
		return ""
	}
	return name
}

// PlainText returns the text of a part, and whether it is a text.
func (p *Part) PlainText() (string, bool) {
	switch p.Type {
	case events.OutputText, events.InputText, "text":
		return p.Text, true
	case events.Refusal:
		return p.Refusal, true
	}
	return "", false
}

// Reasoning returns the texts that a part of the type reasoning may have been streamed as, the
// preferred one first.
func (p *Part) Reasoning() []string {
	list := []string{p.Text}
	for _, texts := range [][]textual{p.Summary, p.Content} {
		var all []string
		for _, t := range texts {
			all = append(all, t.Text)
		}
		list = append(list, strings.Join(all, "\n\n"), strings.Join(all, ""))
	}
	var out []string
	for _, text := range list {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

// Failure returns why a call failed.
func (p *Part) Failure() string {
	switch {
	case p.ErrorText != "":
		return p.ErrorText
	case p.Output != nil:
		return events.TextOf(p.Output)
	}
	return "the call failed"
}
