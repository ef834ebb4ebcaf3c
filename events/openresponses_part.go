package events

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Types of parts that only Open Responses defines.
const (
	InputImage = "input_image"
	InputFile  = "input_file"
)

// openPartFields is a part of a message in Open Responses, with all fields that it has there.
type openPartFields struct {
	Type        string  `json:"type"`
	Text        *string `json:"text,omitzero"`
	Refusal     *string `json:"refusal,omitzero"`
	ImageURL    string  `json:"image_url,omitzero"`
	Detail      JSON    `json:"detail,omitzero"`
	FileID      JSON    `json:"file_id,omitzero"`
	FileURL     JSON    `json:"file_url,omitzero"`
	FileData    JSON    `json:"file_data,omitzero"`
	Filename    JSON    `json:"filename,omitzero"`
	Annotations JSON    `json:"annotations,omitzero"`
	Logprobs    JSON    `json:"logprobs,omitzero"`
}

// plainPart returns a part in the form of Open Responses: an assistant's is output, all others
// are input. It reports whether the part has such a form.
func plainPart(raw JSON, role Role) (JSON, bool) {
	var p struct {
		Type        string `json:"type"`
		Text        JSON   `json:"text"`
		Refusal     JSON   `json:"refusal"`
		ImageURL    JSON   `json:"image_url"`
		Detail      JSON   `json:"detail"`
		FileID      JSON   `json:"file_id"`
		FileURL     JSON   `json:"file_url"`
		FileData    JSON   `json:"file_data"`
		Filename    JSON   `json:"filename"`
		Annotations JSON   `json:"annotations"`
		Logprobs    JSON   `json:"logprobs"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return nil, false
	}
	var out openPartFields
	switch p.Type {
	case InputText, OutputText, "text":
		said := saidIn(p.Text)
		out = openPartFields{Type: InputText, Text: &said}
		if role == Assistant {
			out.Type, out.Annotations, out.Logprobs = OutputText, some(p.Annotations), some(p.Logprobs)
		}
	case Refusal:
		said := saidIn(p.Refusal)
		out = openPartFields{Type: InputText, Text: &said}
		if role == Assistant {
			out = openPartFields{Type: Refusal, Refusal: &said}
		}
	case InputImage, "image_url": // the second is of the chat API
		var wrapped struct {
			URL string `json:"url"`
		}
		url := saidIn(p.ImageURL)
		if jsontext.Value(p.ImageURL).Kind() == '{' && json.Unmarshal(p.ImageURL, &wrapped) == nil {
			url = wrapped.URL
		}
		out = openPartFields{Type: InputImage, ImageURL: url, FileID: some(p.FileID), Detail: some(p.Detail)}
	case InputFile:
		out = openPartFields{Type: InputFile, FileID: some(p.FileID), FileURL: some(p.FileURL), FileData: some(p.FileData), Filename: some(p.Filename)}
	default:
		return nil, false
	}
	made, err := json.Marshal(out)
	return made, err == nil
}

// some returns v, or nil if it is null.
func some(v JSON) JSON {
	if k := jsontext.Value(v).Kind(); k == 0 || k == 'n' {
		return nil
	}
	return v
}
