package chat

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
)

// stored is a part of a message as threads store it, as far as a UI message shows it.
type stored struct {
	Type        string      `json:"type"`
	Text        string      `json:"text"`
	Refusal     string      `json:"refusal"`
	Interrupted bool        `json:"interrupted"`
	Summary     []textual   `json:"summary"`
	Content     []textual   `json:"content"`
	Annotations []citation  `json:"annotations"`
	ToolCallID  string      `json:"toolCallId"`
	State       string      `json:"state"`
	Input       events.JSON `json:"input"`
	Output      events.JSON `json:"output"`
	ErrorText   string      `json:"errorText"`
	ImageURL    string      `json:"image_url"`
	FileURL     string      `json:"file_url"`
	FileData    string      `json:"file_data"`
	Name        string      `json:"filename"`
	MediaType   string      `json:"mediaType"`
	URL         string      `json:"url"` // as the client sent it
}

type textual struct {
	Text string `json:"text"`
}

type citation struct {
	Type  string `json:"type"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

// readPart decodes a stored part. A field that is not of its type is as absent.
func readPart(raw events.JSON) stored {
	var p stored
	if json.Unmarshal(raw, &p) == nil {
		return p
	}
	var fields map[string]events.JSON
	p = stored{}
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

// text returns the text of a part of the kind text, and whether it is one.
func (p *stored) text() (string, bool) {
	switch p.Type {
	case events.OutputText, events.InputText, "text":
		return p.Text, true
	case events.Refusal:
		return p.Refusal, true
	}
	return "", false
}

// reasoning returns what a part of the type reasoning may have been streamed as, the form that
// is shown of a whole one first.
func (p *stored) reasoning() []string {
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

// part takes a part of a step as the log has it.
func (r *Renderer) part(stepID, key string, raw events.JSON) []Chunk {
	s := r.steps[stepID]
	if s == nil {
		return nil
	}
	for i := range s.parts {
		if s.parts[i].key == key {
			s.parts[i].raw = raw
			if p := readPart(raw); toolName(p.Type) != "" {
				return r.toolPart(s, &p)
			}
			return nil // a text that was recorded does not change
		}
	}
	s.parts = append(s.parts, committed{key, raw})
	out, same := r.show(s, key, raw)
	if same {
		return out
	}
	out = s.reset(r)
	s.matched = map[string]int{}
	for _, c := range s.parts {
		more, _ := r.show(s, c.key, c.raw)
		out = append(out, more...)
	}
	return out
}

// show shows a part. It reports false if something else is shown in its place.
func (r *Renderer) show(s *step, key string, raw events.JSON) ([]Chunk, bool) {
	p := readPart(raw)
	if toolName(p.Type) != "" {
		return r.toolPart(s, &p), true
	}
	s.settled = true
	if text, is := p.text(); is {
		out, same := s.whole(kindText, text, p.Interrupted)
		return append(out, sources(key, p.Annotations)...), same
	}
	if p.Type == events.Reasoning {
		return s.thought(&p)
	}
	c, known := passOn(p.Type, raw)
	if !known {
		return []Chunk{dataChunk(dataPart, key, map[string]events.JSON{"part": raw})}, true
	}
	return s.once(c), true
}

// whole shows a text that is known whole. It reports false if what is shown of it differs.
func (s *step) whole(kind, text string, interrupted bool) ([]Chunk, bool) {
	if text == "" {
		return nil, true
	}
	if interrupted {
		return s.cut(text)
	}
	b := s.nth(kind, s.matched[kind])
	s.matched[kind]++
	if b == nil {
		b, out := s.newBlock(kind, "")
		return append(append(out, b.more(text)...), b.end()...), true
	}
	rest, same := strings.CutPrefix(text, string(b.shown))
	if !same {
		return nil, false
	}
	return append(b.more(rest), b.end()...), true
}

// cut shows the text of an interrupted step, which is all that was streamed, as one part.
func (s *step) cut(text string) ([]Chunk, bool) {
	var shown strings.Builder
	var last *block
	for _, b := range s.blocks {
		if b.kind == kindText {
			shown.Write(b.shown)
			last = b
		}
	}
	rest, same := strings.CutPrefix(text, shown.String())
	switch {
	case last == nil:
		b, out := s.newBlock(kindText, "")
		return append(append(out, b.more(text)...), b.end()...), true
	case !same:
		return nil, strings.HasPrefix(shown.String(), text) // not all that was streamed is kept
	}
	return last.more(rest), true
}

// thought shows a reasoning that is known whole. What was streamed of it stays: endpoints stream
// other texts than they return. It reports false if more of it is to be shown, and it has ended.
func (s *step) thought(p *stored) ([]Chunk, bool) {
	forms := p.reasoning()
	if len(forms) == 0 {
		return nil, true
	}
	b := s.nth(kindReasoning, s.matched[kindReasoning])
	s.matched[kindReasoning]++
	if b == nil {
		b, out := s.newBlock(kindReasoning, "")
		return append(append(out, b.more(forms[0])...), b.end()...), true
	}
	ended := b.done
	for _, text := range forms {
		if rest, same := strings.CutPrefix(text, string(b.shown)); same {
			return append(b.more(rest), b.end()...), rest == "" || !ended
		}
	}
	return b.end(), true
}

// toolPart shows a call, and its outcome if there is one.
func (r *Renderer) toolPart(s *step, p *stored) []Chunk {
	if p.ToolCallID == "" {
		return nil
	}
	c := r.calls[p.ToolCallID]
	if c == nil || c.step != s { // an id is unique in its step
		c = &call{id: p.ToolCallID, step: s}
		r.calls[c.id] = c
		s.begun = append(s.begun, c.id)
	}
	c.name = toolName(p.Type)
	var out []Chunk
	if !c.shown {
		c.shown, c.input = true, p.Input
		out = append(out, Chunk{Type: typeToolInput, ToolCallID: c.id, ToolName: c.name, Input: some(p.Input), ProviderExecuted: new(!r.persons[c.name])})
	}
	if c.answered {
		return out
	}
	switch p.State {
	case stateOutput:
		c.answered = true
		return append(out, Chunk{Type: typeToolOutput, ToolCallID: c.id, Output: output(p.Output), ProviderExecuted: new(!c.question)})
	case stateError:
		c.answered = true
		return append(out, Chunk{Type: typeToolError, ToolCallID: c.id, ErrorText: p.failure(), ProviderExecuted: new(!c.question)})
	}
	return out
}

// States of a call in a part.
const (
	stateInput     = "input-available"
	stateRequested = "approval-requested"
	stateResponded = "approval-responded"
	stateOutput    = "output-available"
	stateError     = "output-error"
	stateDenied    = "output-denied"
)

// output returns the output of a call, null if there is none.
func output(v events.JSON) events.JSON {
	if len(v) == 0 {
		return events.JSON("null")
	}
	return v
}

// failure returns why a call failed.
func (p *stored) failure() string {
	switch {
	case p.ErrorText != "":
		return p.ErrorText
	case p.Output != nil:
		return events.TextOf(p.Output)
	}
	return "the call failed"
}

// sources returns the web pages that a text cites.
func sources(key string, list []citation) []Chunk {
	var out []Chunk
	for _, c := range list {
		if c.Type == "url_citation" && c.URL != "" {
			out = append(out, Chunk{Type: typeSourceURL, SourceID: key + "-" + c.URL, URL: c.URL, Title: c.Title})
		}
	}
	return out
}

// pass shows what a reactor streams of a type that clients know.
func (s *step) pass(kind string, data events.JSON) []Chunk {
	c, known := passOn(kind, data)
	if !known || s.settled {
		return nil
	}
	if c.Transient {
		return []Chunk{c}
	}
	return s.once(c)
}

// once shows a chunk, unless the step has shown the same one.
func (s *step) once(c Chunk) []Chunk {
	raw, err := json.Marshal(c, json.Deterministic(true))
	if err != nil || s.passed[string(raw)] {
		return nil
	}
	s.passed[string(raw)] = true
	return []Chunk{c}
}

// passOn returns a part, or a reactor's chunk, as a chunk of the same type, if clients know
// that and it has what they need of it.
func passOn(kind string, raw events.JSON) (Chunk, bool) {
	var d struct {
		SourceID  string      `json:"sourceId"`
		URL       string      `json:"url"`
		MediaType string      `json:"mediaType"`
		Title     string      `json:"title"`
		Filename  string      `json:"filename"`
		ID        string      `json:"id"`
		Data      events.JSON `json:"data"`
		Transient bool        `json:"transient"`
	}
	err := json.Unmarshal(raw, &d)
	c := Chunk{Type: kind}
	switch kind {
	case typeSourceURL:
		c.SourceID, c.URL, c.Title = d.SourceID, d.URL, d.Title
		return c, err == nil && c.SourceID != "" && c.URL != ""
	case typeSourceDocument:
		c.SourceID, c.MediaType, c.Title, c.Filename = d.SourceID, d.MediaType, d.Title, d.Filename
		return c, err == nil && c.SourceID != "" && c.MediaType != "" && c.Title != ""
	case typeFile:
		c.URL, c.MediaType, c.Filename = d.URL, d.MediaType, d.Filename
		return c, err == nil && c.URL != "" && c.MediaType != ""
	case events.InputImage, events.InputFile:
		p := readPart(raw)
		c = p.file()
		return c, c.URL != ""
	case openresponses.ExtensionPart + "image_generation_call":
		return generatedImage(raw)
	}
	if !ownData(kind) {
		return Chunk{}, false
	}
	c.ID, c.Data, c.Transient = d.ID, d.Data, d.Transient
	if err != nil || d.Data == nil {
		c.ID, c.Data, c.Transient = "", raw, false
	}
	return c, jsontext.Value(c.Data).IsValid()
}

// generatedImage returns an image that a provider's own tool has made.
func generatedImage(raw events.JSON) (Chunk, bool) {
	var d struct {
		Item struct {
			Result string `json:"result"`
			Format string `json:"output_format"`
		} `json:"item"`
	}
	err := json.Unmarshal(raw, &d)
	c := Chunk{Type: typeFile, URL: d.Item.Result, MediaType: "image/" + cmp.Or(d.Item.Format, "png")}
	if c.URL != "" && !strings.HasPrefix(c.URL, fileURL) {
		c.URL = "data:" + c.MediaType + ";base64," + c.URL
	}
	return c, err == nil && c.URL != ""
}

// ownData reports whether a type is one of a program's own data parts.
func ownData(kind string) bool {
	if !strings.HasPrefix(kind, dataPrefix) || len(kind) == len(dataPrefix) || strings.HasPrefix(kind, skeinPrefix) {
		return false
	}
	switch kind {
	case events.ChunkContextID, events.ChunkContextSubstate, events.ChunkThreadPing:
		return false
	}
	return true
}

// file returns an image or a file as a chunk; without a URL if the part names none.
func (p *stored) file() Chunk {
	c := Chunk{Type: typeFile, URL: p.URL, MediaType: p.MediaType, Filename: p.Name}
	for _, url := range []string{p.ImageURL, p.FileData, p.FileURL} {
		if c.URL == "" {
			c.URL = url
		}
	}
	if c.MediaType == "" {
		c.MediaType = mediaOf(c.URL)
	}
	if c.MediaType == "" && p.Type == events.InputImage {
		c.MediaType = "image/*"
	} else if c.MediaType == "" {
		c.MediaType = "application/octet-stream"
	}
	return c
}

// mediaOf returns the media type of a data URL, "" for any other.
func mediaOf(url string) string {
	rest, is := strings.CutPrefix(url, "data:")
	if !is {
		return ""
	}
	kind, _, _ := strings.Cut(rest, ",")
	kind, _, _ = strings.Cut(kind, ";")
	return kind
}
