package agents

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// outgoing is a message to an agent.
type outgoing struct{ ID, Context, Task, Text string }

// method returns the name of a method of 1.0.
func (v version) method(name string) string {
	if v == v1 {
		return name
	}
	return map[string]string{"SendMessage": "message/send", "GetTask": "tasks/get", "CancelTask": "tasks/cancel"}[name]
}

// params returns the parameters with which a message is sent. The agent is to answer at once, and to
// be asked how far it is.
func (v version) params(m outgoing) map[string]any {
	part, message := map[string]any{"text": m.Text}, map[string]any{"messageId": m.ID, "contextId": m.Context, "role": "ROLE_USER"}
	settings := map[string]any{"returnImmediately": true}
	if v == v0 {
		part["kind"], message["kind"], message["role"] = "text", "message", "user"
		settings = map[string]any{"blocking": false}
	}
	if m.Task != "" {
		message["taskId"] = m.Task
	}
	message["parts"] = []any{part}
	return map[string]any{"message": message, "configuration": settings}
}

// invalidParams is the code with which a request is refused for what it holds.
const invalidParams = -32602

// refusal is an answer of JSON-RPC that refuses the request.
type refusal struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the agent refuses the request (%d): %s", r.Code, r.Message)
}

// rpc sends a request of JSON-RPC, and returns its result. The error may be a *refusal.
func (t *a2aTool) rpc(ctx context.Context, a *a2aAgent, method string, params map[string]any, opts ...remote.Option) (events.JSON, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	raw, err := t.exchange(ctx, a, body, opts...)
	if err != nil {
		return nil, err
	}
	var got struct {
		Result events.JSON `json:"result"`
		Error  *refusal    `json:"error"`
	}
	switch err := json.Unmarshal(raw, &got); {
	case err != nil || got.Result == nil && got.Error == nil:
		return nil, t.wrong("answers with something else than JSON-RPC; the call may have been made")
	case got.Error != nil:
		return nil, got.Error
	}
	return got.Result, nil
}

// send sends a message.
func (t *a2aTool) send(ctx context.Context, a *a2aAgent, m outgoing) (*answer, error) {
	// An agent that cannot answer at once works first.
	raw, err := t.rpc(ctx, a, a.version.method("SendMessage"), a.version.params(m), remote.Timing(time.Second, longestWork))
	if err != nil {
		return nil, err
	}
	var of struct {
		Kind    string  `json:"kind"`
		Task    *task   `json:"task"`
		Message *report `json:"message"`
	}
	err = json.Unmarshal(raw, &of)
	got := &answer{of.Task, of.Message}
	if err == nil && a.version == v0 && of.Kind == "message" {
		err = json.Unmarshal(raw, &got.message)
	} else if err == nil && a.version == v0 {
		err = json.Unmarshal(raw, &got.task)
	}
	if err != nil || got.task == nil && got.message == nil || got.task != nil && got.task.ID == "" {
		return nil, t.wrong("answers a message with neither a task nor a message; the call may have been made")
	}
	return got, nil
}

// get returns a task as it is now.
func (t *a2aTool) get(ctx context.Context, a *a2aAgent, id string) (*answer, error) {
	raw, err := t.rpc(ctx, a, a.version.method("GetTask"), map[string]any{"id": id})
	if err != nil {
		return nil, err
	}
	got := &task{}
	if err := json.Unmarshal(raw, got); err != nil || got.ID == "" {
		return nil, t.wrong("shows something else than a task")
	}
	return &answer{task: got}, nil
}

// answer is an agent's answer: a task, or a message alone.
type answer struct {
	task    *task
	message *report
}

type task struct {
	ID     string `json:"id"`
	Status struct {
		State   string  `json:"state"`
		Message *report `json:"message"`
	} `json:"status"`
	Artifacts []report `json:"artifacts"`
	History   []report `json:"history"`
}

// report is a message, or an artifact.
type report struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

// part is a part of 1.0, or of 0.3, whose file is in a field of its own.
type part struct {
	Text      string      `json:"text"`
	Raw       string      `json:"raw"` // base64
	URL       string      `json:"url"`
	Data      events.JSON `json:"data"`
	Filename  string      `json:"filename"`
	MediaType string      `json:"mediaType"`
	File      *struct {
		Bytes    string `json:"bytes"`
		URI      string `json:"uri"`
		Name     string `json:"name"`
		MimeType string `json:"mimeType"`
	} `json:"file"`
}

// modern returns a part in the form of 1.0.
func (p part) modern() part {
	if f := p.File; f != nil {
		p.Raw, p.URL, p.Filename, p.MediaType = f.Bytes, f.URI, f.Name, f.MimeType
	}
	return p
}

// state returns the state of a task, as completed or input_required.
func (t *task) state() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(t.Status.State, "TASK_STATE_")), "-", "_")
}

// goesOn reports whether the agent still works.
func (a *answer) goesOn() bool {
	return a.task != nil && (a.task.state() == "submitted" || a.task.state() == "working")
}

// parts returns what a task or a message says: of a task that has ended well its artifacts, else what
// its status says, else the last message of the agent.
func (a *answer) parts() []part {
	if a.task == nil {
		return a.message.Parts
	}
	var list []part
	if a.task.state() == "completed" {
		for _, one := range a.task.Artifacts {
			list = append(list, one.Parts...)
		}
	}
	if s := a.task.Status.Message; len(list) == 0 && s != nil {
		list = s.Parts
	}
	for i := len(a.task.History) - 1; i >= 0 && len(list) == 0; i-- {
		if one := a.task.History[i]; strings.EqualFold(strings.TrimPrefix(one.Role, "ROLE_"), "agent") {
			list = one.Parts
		}
	}
	return list
}

// told is the result of a call.
type told struct {
	Task  string        `json:"task,omitzero"`
	State string        `json:"state,omitzero"`
	Text  string        `json:"text,omitzero"`
	Data  []events.JSON `json:"data,omitempty"`
	Files []toldFile    `json:"files,omitempty"`
}

type toldFile struct {
	Name      string `json:"name,omitzero"`
	MediaType string `json:"mediaType,omitzero"`
	URL       string `json:"url,omitzero"`
	Bytes     int    `json:"bytes,omitzero"`
}

// result returns what an agent has answered as the result of a call: {task, state, text, data, files}.
// With images and PDFs, whose bytes the agent has sent, it is a list of parts that models see, of
// which the first has that as a text.
func (t *a2aTool) result(a *answer) runtime.ToolResult {
	of, texts, shown := told{}, []string{}, []any{}
	if a.task != nil {
		of.Task, of.State = a.task.ID, a.task.state()
	}
	for _, p := range a.parts() {
		switch p = p.modern(); {
		case p.Text != "":
			texts = append(texts, p.Text)
		case p.Data != nil:
			of.Data = append(of.Data, p.Data)
		case p.Raw != "" || p.URL != "":
			content, err := base64.StdEncoding.DecodeString(p.Raw)
			if err != nil {
				continue // it has no bytes
			}
			of.Files = append(of.Files, toldFile{p.Filename, p.MediaType, p.URL, len(content)})
			switch {
			case len(content) > 0 && strings.HasPrefix(p.MediaType, "image/"):
				shown = append(shown, map[string]string{"type": events.InputImage, "image_url": attachment.DataURL(p.MediaType, content)})
			case len(content) > 0 && p.MediaType == "application/pdf":
				shown = append(shown, map[string]string{"type": events.InputFile, "file_data": attachment.DataURL(p.MediaType, content), "filename": p.Filename})
			}
		}
	}
	of.Text = strings.Join(texts, "\n")
	switch of.State {
	case "", "completed", "input_required":
	default: // failed, rejected, canceled, auth_required, and what a later version has
		text := "the agent's task is " + of.State
		if of.Text != "" {
			text += ": " + of.Text
		}
		return runtime.Failed(t.text(text))
	}
	raw, err := json.Marshal(of, json.Deterministic(true))
	if err == nil && len(shown) > 0 {
		raw, err = json.Marshal(append([]any{map[string]string{"type": events.InputText, "text": string(raw)}}, shown...), json.Deterministic(true))
	}
	if err != nil {
		return runtime.Failed("the answer of the agent cannot be encoded as JSON")
	}
	return runtime.Done(raw)
}
