package acp

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
)

// stored is a part of a message as threads store it.
type stored struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitzero"`
	ImageURL string `json:"image_url,omitzero"`
	FileData string `json:"file_data,omitzero"`
	Name     string `json:"filename,omitzero"`
}

// itemOf returns a prompt as a message of a user.
func itemOf(blocks []block) (*events.NewItem, error) {
	if len(blocks) == 0 {
		return nil, events.Invalid("/prompt", "a prompt has at least one block of content")
	}
	var parts []stored
	for i, b := range blocks {
		p, err := b.part("/prompt/" + strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	raw, err := json.Marshal(parts)
	return &events.NewItem{Type: events.Message, Role: events.User, Content: raw}, err
}

// part returns a block as a part of a message.
func (b *block) part(at string) (stored, error) {
	switch {
	case b.Type == "text":
		return stored{Type: events.InputText, Text: b.Text}, nil
	case b.Type == "image" && b.Data != "" && strings.HasPrefix(b.MimeType, "image/"):
		return stored{Type: events.InputImage, ImageURL: "data:" + b.MimeType + ";base64," + b.Data}, nil
	case b.Type == "image":
		return stored{}, events.Invalid(at, "an image has data, and a mimeType that begins with image/")
	case b.Type == "resource_link" && b.URI != "":
		return stored{Type: events.InputText, Text: "[" + b.Name + "](" + b.URI + ")"}, nil
	case b.Type == "resource" && b.Resource != nil && b.Resource.URI != "":
		return b.Resource.part(), nil
	case b.Type == "audio":
		return stored{}, events.Invalid(at, "audio is not supported; promptCapabilities say what is")
	}
	return stored{}, events.Invalid(at, "a block is a text, an image, a resource_link with a uri, or a resource with one; this one is of type %.40q", b.Type)
}

// part returns a file that a prompt has in it: a text with the file's address, or the file.
func (r *resource) part() stored {
	if r.Blob == "" {
		return stored{Type: events.InputText, Text: "<resource uri=" + strconv.Quote(r.URI) + ">\n" + r.Text + "\n</resource>"}
	}
	url := "data:" + r.MimeType + ";base64," + r.Blob
	if strings.HasPrefix(r.MimeType, "image/") {
		return stored{Type: events.InputImage, ImageURL: url}
	}
	return stored{Type: events.InputFile, FileData: url, Name: path.Base(r.URI)}
}

// textOf returns what a prompt says, without its images and files.
func textOf(blocks []block) string {
	var said []string
	for _, b := range blocks {
		if b.Type == "text" {
			said = append(said, b.Text)
		}
	}
	return strings.Join(said, "\n")
}
