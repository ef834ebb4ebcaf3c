package natsagents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// envelope is a prompt, or the reply to a query.
type envelope struct {
	Prompt      string     `json:"prompt"`
	Attachments []attached `json:"attachments"`
}

// attached is a file.
type attached struct {
	Filename string `json:"filename"`
	Content  []byte `json:"content"` // base64, with padding
}

// chunk is a message of a stream.
type chunk struct {
	Type string `json:"type"` // status, response, query
	Data any    `json:"data"`
}

// ack says that a prompt was accepted, or is still answered.
func ack() chunk { return chunk{"status", "ack"} }

// response is a response with files.
type response struct {
	Text        string     `json:"text"`
	Attachments []attached `json:"attachments,omitempty"`
}

// query asks the caller.
type query struct {
	ID     string `json:"id"`
	Reply  string `json:"reply_subject"`
	Prompt string `json:"prompt"`
}

// decodeEnvelope decodes a message: an object of JSON, or a text.
func decodeEnvelope(body []byte) (e envelope, err error) {
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(trimmed) == 0:
		return e, events.Invalid("", "the message is empty; send a text, or {\"prompt\", \"attachments\"?}")
	case trimmed[0] != '{':
		return envelope{Prompt: string(body)}, nil
	}
	if err := json.Unmarshal(trimmed, &e); err != nil {
		return e, events.Invalid("", "the message begins as JSON, and is not {\"prompt\", \"attachments\"?}: %w", err)
	}
	if e.Prompt == "" {
		return e, events.Invalid("/prompt", "the prompt is missing, or empty")
	}
	for i, a := range e.Attachments {
		if a.Filename == "" || a.Filename == "." || a.Filename == ".." || strings.ContainsAny(a.Filename, "/\\\x00") {
			return e, events.Invalid("/attachments/"+strconv.Itoa(i)+"/filename", "the name of a file is one without folders, and not %.80q", a.Filename)
		}
	}
	return e, nil
}

// stored is a part of a message as threads store it.
type stored struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitzero"`
	ImageURL string `json:"image_url,omitzero"`
	FileData string `json:"file_data,omitzero"`
	Name     string `json:"filename,omitzero"`
}

// item returns a prompt as a message of a user.
func (e *envelope) item() (*events.NewItem, error) {
	parts := []stored{{Type: events.InputText, Text: e.Prompt}}
	for _, a := range e.Attachments {
		kind, _, _ := strings.Cut(http.DetectContentType(a.Content), ";")
		url := "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(a.Content)
		if strings.HasPrefix(kind, "image/") {
			parts = append(parts, stored{Type: events.InputImage, ImageURL: url, Name: a.Filename})
		} else {
			parts = append(parts, stored{Type: events.InputFile, FileData: url, Name: a.Filename})
		}
	}
	raw, err := json.Marshal(parts)
	return &events.NewItem{Type: events.Message, Role: events.User, Content: raw}, err
}

// sizeOf returns a number of bytes as the protocol has it.
func sizeOf(bytes int64) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return strconv.FormatInt(bytes>>20, 10) + "MB"
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return strconv.FormatInt(bytes>>10, 10) + "KB"
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// answerable reports whether an answer may be sent on a subject.
func (s *Service) answerable(reply string) bool {
	return reply != "" && s.o.Names.Answerable(reply) && !strings.HasPrefix(reply, events.AgentsRoot+".")
}

// respond publishes a message. One that cannot be sent was for a connection that is closed.
func (s *Service) respond(subject string, header nats.Header, body any) {
	raw, is := body.([]byte)
	if !is {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return
		}
	}
	if err := s.o.Conn.PublishMsg(&nats.Msg{Subject: subject, Header: header, Data: raw}); err != nil && s.ctx.Err() == nil {
		s.o.Logger.Debug().Err(err).Msg("a message to a caller of an agent could not be sent")
	}
}

// runFailed is the code of a run that has failed.
const runFailed events.Code = "run_failed"

// refuse sends an error.
func (s *Service) refuse(reply string, err error) {
	e := events.AsError(err)
	header := nats.Header(e.Headers())
	if e.Code == runFailed {
		header.Set(events.HeaderErrorCode, "500")
	}
	header.Set(events.HeaderError, firstLine(e.Message))
	s.respond(reply, header, events.EncodeError(e))
}

// firstLine returns the part of a text that a header holds.
func firstLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "")
	}
	return text
}
