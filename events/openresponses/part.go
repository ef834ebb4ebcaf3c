package openresponses

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/skein-threads/skein/events"
)

// partFields is a part of a message in Open Responses, with all fields that it has there.
type partFields struct {
	Type        string      `json:"type"`
	Text        *string     `json:"text,omitzero"`
	Refusal     *string     `json:"refusal,omitzero"`
	ImageURL    string      `json:"image_url,omitzero"`
	Detail      events.JSON `json:"detail,omitzero"`
	FileID      events.JSON `json:"file_id,omitzero"`
	FileURL     events.JSON `json:"file_url,omitzero"`
	FileData    events.JSON `json:"file_data,omitzero"`
	Filename    events.JSON `json:"filename,omitzero"`
	Annotations events.JSON `json:"annotations,omitzero"`
	Logprobs    events.JSON `json:"logprobs,omitzero"`
}

// plainPart returns a part in the form of Open Responses: an assistant's is output, all others
// are input. It reports whether the part has such a form.
func plainPart(raw events.JSON, role events.Role) (events.JSON, bool) {
	var p struct {
		Type        string      `json:"type"`
		Text        events.JSON `json:"text"`
		Refusal     events.JSON `json:"refusal"`
		ImageURL    events.JSON `json:"image_url"`
		Detail      events.JSON `json:"detail"`
		FileID      events.JSON `json:"file_id"`
		FileURL     events.JSON `json:"file_url"`
		FileData    events.JSON `json:"file_data"`
		Filename    events.JSON `json:"filename"`
		Annotations events.JSON `json:"annotations"`
		Logprobs    events.JSON `json:"logprobs"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return nil, false
	}
	var out partFields
	switch p.Type {
	case events.InputText, events.OutputText, "text":
		said := saidIn(p.Text)
		out = partFields{Type: events.InputText, Text: &said}
		if role == events.Assistant {
			out.Type, out.Annotations, out.Logprobs = events.OutputText, some(p.Annotations), some(p.Logprobs)
		}
	case events.Refusal:
		said := saidIn(p.Refusal)
		out = partFields{Type: events.InputText, Text: &said}
		if role == events.Assistant {
			out = partFields{Type: events.Refusal, Refusal: &said}
		}
	case events.InputImage, "image_url": // the second is of the chat API
		var wrapped struct {
			URL string `json:"url"`
		}
		url := saidIn(p.ImageURL)
		if jsontext.Value(p.ImageURL).Kind() == '{' && json.Unmarshal(p.ImageURL, &wrapped) == nil {
			url = wrapped.URL
		}
		out = partFields{Type: events.InputImage, ImageURL: url, FileID: some(p.FileID), Detail: some(p.Detail)}
	case events.InputFile:
		out = partFields{Type: events.InputFile, FileID: some(p.FileID), FileURL: some(p.FileURL), FileData: some(p.FileData), Filename: some(p.Filename)}
	default:
		return nil, false
	}
	made, err := json.Marshal(out)
	return made, err == nil
}

// phaseField is the field of a message, and of each of its parts in a thread, that tells a comment
// on the work from the answer.
const phaseField = "phase"

// phaseOf returns the phase of a part, empty if it has none.
func phaseOf(raw events.JSON) string {
	var p struct {
		Phase events.JSON `json:"phase"`
	}
	_ = json.Unmarshal(raw, &p) // it is a part
	return saidIn(p.Phase)
}

// ChunkAnnotations is the type of a chunk that has the annotations of a text: the field id names
// the text as its deltas do, and annotations is a list.
const ChunkAnnotations = "text-annotations"

// ChunkItem is the type of a chunk that says that the endpoint has made an item of its own kind, such
// as a web_search_call. The field part is the part that it becomes; if it is absent, it comes with the
// step's parts.
const ChunkItem = "provider-item"

// Provider is the field that names the endpoint that made an item. Other endpoints cannot read the
// item. A part that holds such an item has the field too.
const Provider = "skein:provider"

// some returns v, or nil if it is null.
func some(v events.JSON) events.JSON {
	if k := jsontext.Value(v).Kind(); k == 0 || k == 'n' {
		return nil
	}
	return v
}

// compaction is the type of an item that stands for what was said before it.
const compaction = "compaction"

// summaryPrefix begins the encrypted_content of a compaction that holds a summary. It is not
// encrypted: its reader has the conversation.
const summaryPrefix = "skein.summary."

// Compaction returns an item that stands for a conversation with that summary. Read makes a
// developer's message of it.
func Compaction(id, summary string) Item {
	return Item{Type: compaction, ID: id, EncryptedContent: events.Quote(summaryPrefix + base64.RawURLEncoding.EncodeToString([]byte(summary)))}
}

// SummaryOf returns the summary of a compaction that [Compaction] made, and reports whether
// the item is one.
func SummaryOf(o Item) (string, bool) {
	coded, ok := strings.CutPrefix(saidIn(o.EncryptedContent), summaryPrefix)
	if o.Type != compaction || !ok {
		return "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(coded)
	return string(text), err == nil && utf8.Valid(text) && len(text) > 0
}
