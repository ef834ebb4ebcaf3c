package a2a

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/form"
	"github.com/skein-threads/skein/runview"
)

// keyPrefix begins the keys of threads.
const keyPrefix = "a2a:"

// sendRequest is a request to send a message.
type sendRequest struct {
	Message       *message `json:"message"`
	Configuration struct {
		HistoryLength *int        `json:"historyLength"`
		Immediately   bool        `json:"returnImmediately"`
		Blocking      *bool       `json:"blocking"` // of 0.3
		Push          *pushFields `json:"taskPushNotificationConfig"`
		OldPush       *pushFields `json:"pushNotificationConfig"` // of 0.3
	} `json:"configuration"`
	Metadata events.JSON `json:"metadata"`
}

// readSend decodes a request to send a message.
func (o *operation) readSend() (*sendRequest, error) {
	var in sendRequest
	if err := decode(o.params, &in); err != nil {
		return nil, err
	}
	m := in.Message
	if m == nil {
		return nil, events.Invalid("/message", "a request has a message")
	}
	m.modern()
	if m.Metadata != nil && jsontext.Value(m.Metadata).Kind() == 'n' {
		m.Metadata = nil
	}
	switch conf := &in.Configuration; {
	case m.ID == "" || len(m.ID) > 256:
		return nil, events.Invalid("/message/messageId", "a messageId is a text of 1 to 256 bytes, another one for each message")
	case m.Role != roleUser:
		return nil, events.Invalid("/message/role", "the role of a message to an agent is the user's, and not %.32q", m.Role)
	case len(m.Parts) == 0:
		return nil, events.Invalid("/message/parts", "a message has at least one part")
	case m.TaskID == "" && !slices.ContainsFunc(m.Parts, func(p part) bool { return p.Text == nil || *p.Text != "" }):
		return nil, events.Invalid("/message/parts", "a message that begins a task has a text, data or a file")
	case ambiguous(m.Parts) >= 0:
		return nil, events.Invalid("/message/parts/"+strconv.Itoa(ambiguous(m.Parts)), "a part has one of text, raw, url and data; send each as a part of its own")
	case m.ContextID != "" && (!events.ValidKey(keyPrefix+m.ContextID) || len(m.ContextID) > 200):
		return nil, events.Invalid("/message/contextId", "a contextId has at most 200 bytes, none of them a control character")
	case conf.Blocking != nil && !*conf.Blocking:
		conf.Immediately = true
	}
	if err := in.checkPush(); err != nil {
		return nil, err
	}
	return &in, checkHistory(in.Configuration.HistoryLength)
}

// ambiguous returns the index of the first part that is several things at once, -1 if there is none.
func ambiguous(parts []part) int {
	return slices.IndexFunc(parts, func(p part) bool {
		n := 0
		for _, is := range []bool{p.Text != nil, p.Raw != "", p.URL != "", hasValue(p.Data)} {
			if is {
				n++
			}
		}
		return n > 1
	})
}

// checkHistory refuses a length of the history that is none.
func checkHistory(n *int) error {
	if n != nil && *n < 0 {
		return events.Invalid("/historyLength", "historyLength is 0 or more, and not %d", *n)
	}
	return nil
}

// hasValue reports whether a field says something.
func hasValue(raw events.JSON) bool {
	k := jsontext.Value(raw).Kind()
	return k != 0 && k != 'n'
}

// once names what a message writes. The same message names the same.
type once struct {
	name   string // of what tells it from others: messageId, or the header
	number string
	digest string // of what the message says
}

// onceOf returns the ids for the writes of a message.
func (o *operation) onceOf(m *message) once {
	out := once{name: "messageId", digest: edge.DigestOf(marshal([]any{m.TaskID, m.Parts}))}
	key := o.r.Header.Get(edge.HeaderKey)
	if key != "" {
		out.name = edge.HeaderKey
	}
	id := o.c.Keyed(strings.Join([]string{"/a2a", o.agent, m.ContextID, cmp.Or(key, m.ID)}, "\x00"))
	out.number = hex.EncodeToString(id[:])
	return out
}

func (o *once) command() string { return "a2a-" + o.number }

// answer returns the id of the command of a message that answers what people are asked.
func (o *once) answer() string { return o.command() + "-" + o.digest }

// kept is the metadata that an execution keeps of the message that began it.
type kept struct {
	MessageID string      `json:"messageId"`
	Request   string      `json:"request"` // the digest
	Metadata  events.JSON `json:"metadata,omitzero"`
}

// ofMessage is what an item keeps of the message that it was.
type ofMessage struct {
	A2A struct {
		ID       string      `json:"id"`
		Data     []int       `json:"data,omitempty"` // its parts that are data
		Metadata events.JSON `json:"metadata,omitzero"`
	} `json:"a2a"`
}

// item returns a message as the item of a thread.
func (m *message) item() (*events.NewItem, error) {
	var own ofMessage
	own.A2A.ID, own.A2A.Metadata = m.ID, m.Metadata
	var content []map[string]string
	for i := range m.Parts {
		p, at := &m.Parts[i], "/message/parts/"+strconv.Itoa(i)
		switch {
		case p.Text != nil:
			content = append(content, map[string]string{"type": events.InputText, "text": *p.Text})
		case hasValue(p.Data):
			own.A2A.Data = append(own.A2A.Data, i)
			content = append(content, map[string]string{"type": events.InputText, "text": string(p.Data)})
		default:
			one, err := p.stored(at)
			if err != nil {
				return nil, err
			}
			content = append(content, one)
		}
	}
	return &events.NewItem{Type: events.Message, Role: events.User, Content: marshal(content), Metadata: marshal(own)}, nil
}

// stored returns a file as the part of an item.
func (p *part) stored(at string) (map[string]string, error) {
	url := p.URL
	switch {
	case p.Raw != "":
		url = "data:" + cmp.Or(p.MediaType, "application/octet-stream") + ";base64," + p.Raw
	case url == "":
		return nil, events.Invalid(at, "a part has text, raw, url or data")
	case !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://"):
		return nil, events.Invalid(at+"/url", "the url of a part begins with http or https")
	}
	fields := map[string]string{"type": events.InputFile}
	switch {
	case strings.HasPrefix(p.MediaType, "image/"):
		fields["type"], fields["image_url"] = events.InputImage, url
	case p.Raw != "":
		fields["file_data"] = url
	default:
		fields["file_url"] = url
	}
	if p.MediaType != "" {
		fields["mediaType"] = p.MediaType
	}
	if p.Filename != "" {
		fields["filename"] = p.Filename
	}
	return fields, nil
}

// decision is a data part that answers what people are asked.
type decision struct {
	CallID    string      `json:"callId"` // empty: what has waited longest
	Grant     bool        `json:"grant"`
	Arguments events.JSON `json:"arguments"`
	Deny      bool        `json:"deny"`
	Reason    string      `json:"reason"`
	Result    events.JSON `json:"result"`
}

// decides returns a part as a decision, nil if it is none.
func (p *part) decides() *decision {
	var d decision
	if jsontext.Value(p.Data).Kind() != '{' || json.Unmarshal(p.Data, &d) != nil || !d.Grant && !d.Deny && !(d.CallID != "" && hasValue(d.Result)) {
		return nil
	}
	return &d
}

// answers returns a message as answers to what a run waits for.
func (m *message) answers(x *events.Execution) (list []events.ResolveApproval, err error) {
	open := x.WaitingApprovals()
	next := func(id string, fits func(*events.CallApproval) bool) *events.CallApproval {
		for i := range open {
			if a := open[i]; (id == "" || a.CallID == id) && fits(&a) {
				open = append(open[:i:i], open[i+1:]...)
				return &a
			}
		}
		return nil
	}
	var texts []string
	var said []events.JSON
	for i := range m.Parts {
		p := &m.Parts[i]
		d := p.decides()
		switch {
		case d != nil:
			a := next(d.CallID, func(a *events.CallApproval) bool { return !d.Grant || a.Reason != events.ApprovalQuestion })
			if a == nil {
				return nil, events.Invalid("/message/parts/"+strconv.Itoa(i), "the task does not wait for this; it waits for: %s", asked(x))
			}
			list = append(list, events.ResolveApproval{CallID: a.CallID, Grant: d.Grant, Arguments: d.Arguments, Deny: d.Deny, Reason: d.Reason, Result: d.Result})
		case p.Text != nil:
			texts = append(texts, *p.Text)
		case hasValue(p.Data):
			said = append(said, p.Data)
		default:
			return nil, events.Invalid("/message/parts/"+strconv.Itoa(i), "an answer is text or data")
		}
	}
	question := func(a *events.CallApproval) bool { return a.Reason == events.ApprovalQuestion }
	for _, data := range said {
		if a := next("", question); a != nil {
			list = append(list, events.ResolveApproval{CallID: a.CallID, Result: data})
		}
	}
	if len(texts) > 0 && len(said) == 0 {
		if a := next("", question); a != nil {
			list = append(list, events.ResolveApproval{CallID: a.CallID, Result: form.Typed(strings.Join(texts, "\n"), a.Answer)})
		}
	}
	if len(list) == 0 {
		return nil, events.Invalid("/message/parts", `the task waits for an approval: send a data part {"grant": true} or {"deny": true, "reason"?}; it waits for: %s`, asked(x))
	}
	return list, nil
}

// asked returns what a run waits for, as a text.
func asked(x *events.Execution) string {
	var list []string
	for _, a := range x.WaitingApprovals() {
		list = append(list, a.CallID+": "+runview.Prompt(&a))
	}
	return strings.Join(list, "; ")
}
