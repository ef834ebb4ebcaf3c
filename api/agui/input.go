package agui

import (
	"cmp"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
)

// input is the body of a request to run an agent. Unknown fields are ignored.
type input struct {
	Actor           events.JSON `json:"actor"` // refused
	ThreadID        string      `json:"threadId"`
	RunID           string      `json:"runId"`
	ParentRunID     string      `json:"parentRunId"`
	ProtocolVersion string      `json:"protocolVersion"`
	Messages        []message   `json:"messages"`
	Tools           []tool      `json:"tools"`
	Context         []ambient   `json:"context"`
	State           events.JSON `json:"state"`
	ForwardedProps  events.JSON `json:"forwardedProps"`
	Resume          []answer    `json:"resume"`
}

// tool is a tool that the client runs.
type tool struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Parameters  events.JSON `json:"parameters"`
}

// ambient is what an application says about itself, for one run.
type ambient struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// answer is the answer to an interrupt.
type answer struct {
	InterruptID string      `json:"interruptId"`
	Status      string      `json:"status"` // resolved, cancelled
	Payload     events.JSON `json:"payload"`
}

// readInput decodes a request.
func readInput(r *http.Request) (*input, error) {
	body, err := edge.Body(r, edge.MaxMessageBody)
	if err != nil {
		return nil, err
	}
	var in input
	if err := json.Unmarshal(body, &in, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, edge.NotObject(err)
	}
	if in.Actor != nil {
		return nil, edge.NamedActor()
	}
	if err := checkThread("/threadId", in.ThreadID); err != nil {
		return nil, err
	}
	if in.RunID == "" || len(in.RunID) > 256 {
		return nil, events.Invalid("/runId", "a runId is a text of 1 to 256 bytes, another one for each run")
	}
	return &in, nil
}

// checkThread refuses a threadId that no thread can have.
func checkThread(path, id string) error {
	if !events.ValidKey(keyPrefix+id) || len(id) > 200 || id == "" { // forks have longer keys
		return events.Invalid(path, "a threadId has 1 to 200 bytes, none of them a control character")
	}
	return nil
}

// modern reports whether the client declares version 1 of the protocol: earlier ones refuse what is new.
func (in *input) modern() bool { return strings.HasPrefix(in.ProtocolVersion, "1.") }

// started returns the event with which a run begins.
func (in *input) started() event {
	e := event{Type: runStarted, ThreadID: in.ThreadID, RunID: in.RunID, ParentRunID: in.ParentRunID}
	if in.modern() {
		e.ProtocolVersion = protocolVersion
	}
	return e
}

// once names what a request writes. Another request with the same runId names the same.
type once struct {
	name   string // of what tells it from others: runId, or the header
	number string
	asked
}

// asked tells a request from others with the same runId.
type asked struct {
	Request string `json:"request,omitzero"` // the digest of what it says that is the client's own
	State   string `json:"state,omitzero"`   // the digest of its state; empty: it has none
}

// onceOf returns the ids for the writes of the request. An Idempotency-Key counts instead of the
// runId.
func (in *input) onceOf(r *http.Request, c *edge.Caller, agent string) once {
	o := once{name: "runId", number: numberOf(c, in.ThreadID, cmp.Or(r.Header.Get(edge.HeaderKey), in.RunID))}
	if r.Header.Get(edge.HeaderKey) != "" {
		o.name = edge.HeaderKey
	}
	o.asked = in.asked(agent)
	return o
}

// asked returns what tells the request from others. A client that repeats a run sends the messages that
// it has by then. So what the assistant says is left out, and the results of calls that are not of the
// client's own tools.
func (in *input) asked(agent string) (a asked) {
	said := []any{agent, in.Resume, in.Tools, in.Context, in.ForwardedProps}
	own := map[string]bool{} // calls of the client's tools
	for _, m := range in.Messages {
		switch m.Role {
		case string(events.Assistant):
			for _, c := range m.ToolCalls {
				own[c.ID] = own[c.ID] || slices.ContainsFunc(in.Tools, func(t tool) bool { return t.Name == c.Function.Name })
			}
		case string(events.User), string(events.System), string(events.Developer):
			said = append(said, m.ID, m.Role, m.Content)
		case roleTool:
			if own[m.ToolCallID] {
				said = append(said, m.ToolCallID, m.Content, m.Error)
			}
		}
	}
	a.Request = edge.DigestOf(marshal(said))
	if told(in.State) {
		state := jsontext.Value(slices.Clone(in.State))
		_ = state.Canonicalize() // what it does not accept is another state
		a.State = edge.DigestOf(state)
	}
	return a
}

// numberOf returns the number of what a run writes, by which its ids are made.
func numberOf(c *edge.Caller, thread, key string) string {
	id := c.Keyed("/agui\x00" + thread + "\x00" + key)
	return hex.EncodeToString(id[:])
}

func (o *once) execution() string { return events.ExecutionPrefix + o.number }
func (o *once) command() string   { return "agui-" + o.number }

// mark has an item tell which request it is of.
func (o *once) mark(item *events.NewItem) error {
	var own metadata
	if item.Metadata != nil {
		if err := json.Unmarshal(item.Metadata, &own); err != nil {
			return err
		}
	}
	own.AGUI.asked = o.asked
	item.Metadata = marshal(own)
	return nil
}

// kept is the metadata that an execution keeps of the request that began it.
type kept struct {
	RunID       string `json:"runId"`
	ParentRunID string `json:"parentRunId,omitzero"`
	asked
	ForwardedProps events.JSON `json:"forwardedProps,omitzero"`
}

// settings returns the settings of the run: what the client says besides its messages.
func (in *input) settings(o once) (*events.RunSettings, error) {
	own := kept{RunID: in.RunID, ParentRunID: in.ParentRunID, asked: o.asked}
	if k := jsontext.Value(in.ForwardedProps).Kind(); k != 0 && k != 'n' && string(in.ForwardedProps) != "{}" {
		own.ForwardedProps = in.ForwardedProps
	}
	s := &events.RunSettings{Metadata: marshal(map[string]kept{"agui": own}), Tools: in.callerTools()}
	var about []string
	for i := range in.front() {
		about = append(about, in.Messages[i].text())
	}
	for _, one := range in.Context {
		about = append(about, one.Description+":\n"+one.Value)
	}
	s.Instructions = strings.Join(about, "\n\n")
	return s, nil
}

// callerTools returns the tools that the client runs.
func (in *input) callerTools() (list []events.CallerTool) {
	for _, t := range in.Tools {
		one := events.CallerTool{Name: t.Name, Description: t.Description}
		if jsontext.Value(t.Parameters).Kind() == '{' {
			one.Parameters = t.Parameters
		}
		list = append(list, one)
	}
	return list
}

// front returns how many messages at the front are instructions.
func (in *input) front() int {
	n := slices.IndexFunc(in.Messages, func(m message) bool {
		return m.Role != string(events.System) && m.Role != string(events.Developer)
	})
	if n < 0 {
		return len(in.Messages)
	}
	return n
}

// items returns messages as the items of a thread; first is the place of the first of them in the
// request.
func items(list []message, first int) (out []events.NewItem, err error) {
	for i := range list {
		m, path := &list[i], "/messages/"+strconv.Itoa(first+i)
		item := events.NewItem{Type: events.Message, Role: events.Role(m.Role)}
		switch m.Role {
		case string(events.User), string(events.System), string(events.Developer):
			if item.Content, err = m.storedContent(path); err != nil {
				return nil, err
			}
			if m.Role == string(events.User) && attachment.SaysNothing(item.Content) {
				return nil, events.Invalid(path+"/content", "a message of a user has a text, or a file")
			}
		case roleTool:
			result := events.CallResult{CallID: m.ToolCallID, Output: events.FromText(m.text()), IsError: m.Error != ""}
			item = events.NewItem{Type: events.ActionResult, Content: marshal(result)}
		case string(events.Assistant):
			item.Content = m.storedAnswer(list)
		default:
			continue // reasoning and activities are what a run has shown
		}
		if m.ID != "" && len(m.ID) <= 256 {
			var own metadata
			own.AGUI.ID = m.ID
			item.Metadata = marshal(own)
		}
		out = append(out, item)
	}
	return out, nil
}

// storedAnswer returns a message of the assistant that no run has written, with the results of its calls
// that are in the list.
func (m *message) storedAnswer(list []message) events.JSON {
	parts := []any{}
	if text := m.text(); text != "" {
		parts = append(parts, map[string]string{"type": events.OutputText, "text": text})
	}
	for _, c := range m.ToolCalls {
		part := map[string]any{
			"type": events.ToolPart + c.Function.Name, "toolCallId": c.ID, "input": events.FromText(c.Function.Arguments),
			"state": "output-error", "errorText": "the call was not made", "output": "the call was not made",
		}
		if at := slices.IndexFunc(list, func(m message) bool { return m.Role == roleTool && m.ToolCallID == c.ID }); at >= 0 {
			delete(part, "errorText")
			part["state"], part["output"] = "output-available", events.FromText(list[at].text())
		}
		parts = append(parts, part)
	}
	return marshal(parts)
}
