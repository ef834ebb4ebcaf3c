package a2a

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// version is a version of the protocol.
type version string

// The versions that are spoken here.
const (
	v1 version = "1.0"
	v0 version = "0.3"
)

// States of tasks.
const (
	submitted     = "TASK_STATE_SUBMITTED"
	working       = "TASK_STATE_WORKING"
	inputRequired = "TASK_STATE_INPUT_REQUIRED"
	completed     = "TASK_STATE_COMPLETED"
	failed        = "TASK_STATE_FAILED"
	canceled      = "TASK_STATE_CANCELED"
)

// Roles of messages.
const (
	roleUser  = "ROLE_USER"
	roleAgent = "ROLE_AGENT"
)

// task is a task. The fields kind, here and below, are those of 0.3.
type task struct {
	Kind      string      `json:"kind,omitzero"`
	ID        string      `json:"id"`
	ContextID string      `json:"contextId"`
	Status    status      `json:"status"`
	Artifacts []artifact  `json:"artifacts,omitempty"`
	History   []message   `json:"history,omitempty"`
	Metadata  events.JSON `json:"metadata,omitzero"`
}

// status is the state of a task.
type status struct {
	State     string   `json:"state"`
	Message   *message `json:"message,omitzero"`
	Timestamp string   `json:"timestamp,omitzero"`
}

// terminal reports whether the task has ended.
func (s *status) terminal() bool {
	return slices.Contains([]string{completed, failed, canceled}, s.State)
}

// artifact is something that a task has produced.
type artifact struct {
	ID    string `json:"artifactId"`
	Parts []part `json:"parts"`
}

// message is a message of a client, or of an agent.
type message struct {
	Kind      string      `json:"kind,omitzero"`
	ID        string      `json:"messageId"`
	ContextID string      `json:"contextId,omitzero"`
	TaskID    string      `json:"taskId,omitzero"`
	Role      string      `json:"role"`
	Parts     []part      `json:"parts"`
	Metadata  events.JSON `json:"metadata,omitzero"`
}

// part is a piece of a message or an artifact: a text, bytes, a URL, or data.
type part struct {
	Kind      string      `json:"kind,omitzero"`
	Text      *string     `json:"text,omitzero"`
	Raw       string      `json:"raw,omitzero"` // base64
	URL       string      `json:"url,omitzero"`
	Data      events.JSON `json:"data,omitzero"`
	File      *file       `json:"file,omitzero"`
	Filename  string      `json:"filename,omitzero"`
	MediaType string      `json:"mediaType,omitzero"`
	Metadata  events.JSON `json:"metadata,omitzero"`
}

// file is the file of a part of 0.3.
type file struct {
	Bytes    string `json:"bytes,omitzero"`
	URI      string `json:"uri,omitzero"`
	MimeType string `json:"mimeType,omitzero"`
	Name     string `json:"name,omitzero"`
}

// wrapped marks data of a part of 0.3, which has objects alone, that is another value.
const wrapped = "data_part_compat"

// update is one message of a stream: one of its fields is set.
type update struct {
	Task     *task           `json:"task,omitzero"`
	Status   *statusUpdate   `json:"statusUpdate,omitzero"`
	Artifact *artifactUpdate `json:"artifactUpdate,omitzero"`
}

// statusUpdate says that a task has another status.
type statusUpdate struct {
	Kind      string `json:"kind,omitzero"`
	TaskID    string `json:"taskId"`
	ContextID string `json:"contextId"`
	Status    status `json:"status"`
	Final     *bool  `json:"final,omitzero"` // of 0.3: the stream ends
}

// artifactUpdate is a piece of an artifact.
type artifactUpdate struct {
	Kind      string   `json:"kind,omitzero"`
	TaskID    string   `json:"taskId"`
	ContextID string   `json:"contextId"`
	Artifact  artifact `json:"artifact"`
	Append    bool     `json:"append"`
	Last      bool     `json:"lastChunk"`
}

// update returns a message of a stream, or the answer to a message.
func (v version) update(u update) any {
	if v == v1 {
		return u
	}
	switch {
	case u.Task != nil:
		return v.task(*u.Task)
	case u.Status != nil:
		s := *u.Status
		s.Kind, s.Status = "status-update", v.status(s.Status)
		s.Final = new(u.Status.Status.terminal() || u.Status.Status.State == inputRequired)
		return s
	default:
		a := *u.Artifact
		a.Kind, a.Artifact = "artifact-update", v.artifact(a.Artifact)
		return a
	}
}

func (v version) task(t task) task {
	if v == v1 {
		return t
	}
	t.Kind, t.Status = "task", v.status(t.Status)
	t.Artifacts, t.History = slices.Clone(t.Artifacts), slices.Clone(t.History)
	for i := range t.Artifacts {
		t.Artifacts[i] = v.artifact(t.Artifacts[i])
	}
	for i := range t.History {
		t.History[i] = v.message(t.History[i])
	}
	return t
}

// status returns a status of 0.3.
func (v version) status(s status) status {
	s.State = strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(s.State, "TASK_STATE_"), "_", "-"))
	if s.Message != nil {
		s.Message = new(v.message(*s.Message))
	}
	return s
}

// artifact returns an artifact of 0.3.
func (v version) artifact(a artifact) artifact {
	a.Parts = v.parts(a.Parts)
	return a
}

// message returns a message of 0.3.
func (v version) message(m message) message {
	m.Kind, m.Role, m.Parts = "message", strings.ToLower(strings.TrimPrefix(m.Role, "ROLE_")), v.parts(m.Parts)
	return m
}

// parts returns parts of 0.3.
func (v version) parts(list []part) []part {
	out := slices.Clone(list)
	for i := range out {
		switch p := &out[i]; {
		case p.Text != nil:
			p.Kind = "text"
		case p.Data != nil:
			if p.Kind = "data"; jsontext.Value(p.Data).Kind() != '{' {
				p.Data, p.Metadata = marshal(map[string]events.JSON{"value": p.Data}), events.JSON(`{"`+wrapped+`":true}`)
			}
		default:
			*p = part{Kind: "file", File: &file{p.Raw, p.URL, p.MediaType, p.Filename}, Metadata: p.Metadata}
		}
	}
	return out
}

// modern turns a message of 0.3 into one of 1.0.
func (m *message) modern() {
	m.Kind = ""
	switch m.Role {
	case "user":
		m.Role = roleUser
	case "agent":
		m.Role = roleAgent
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if f := p.File; f != nil {
			p.Raw, p.URL, p.MediaType, p.Filename = f.Bytes, f.URI, f.MimeType, f.Name
		}
		var about map[string]events.JSON
		var inner map[string]events.JSON
		if json.Unmarshal(p.Metadata, &about) == nil && string(about[wrapped]) == "true" && json.Unmarshal(p.Data, &inner) == nil && inner["value"] != nil {
			p.Data = inner["value"]
		}
		p.Kind, p.File = "", nil
	}
}

// textPart returns a text as a part.
func textPart(text string) part { return part{Text: &text} }

// marshal encodes values that were decoded from JSON, or made here.
func marshal(v any) events.JSON {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil { // it was JSON
		return nil
	}
	return raw
}
