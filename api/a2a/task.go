package a2a

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// find returns the execution of a task of the agent, and its thread.
func (o *operation) find(ctx context.Context, id string) (*client.Client, *events.Execution, *events.Thread, error) {
	now, err := o.c.Client.UpToDate(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if !strings.HasPrefix(id, events.ExecutionPrefix) || !events.ValidID(id) {
		return nil, nil, nil, noTask(id)
	}
	x, err := runstream.Find(ctx, now, id)
	if events.IsNotFound(err) { // it may have been cancelled before it began
		x, err = runstream.Withdrawn(ctx, now, id)
	}
	if events.IsNotFound(err) || err == nil && x.AgentID != o.agent {
		return nil, nil, nil, noTask(id)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	t, err := client.Read(ctx, now, events.GetThread{ThreadID: x.ThreadID})
	if events.IsNotFound(err) {
		err = noTask(id)
	}
	return now, x, t, err
}

// stateOf returns the state of a task.
func stateOf(x *events.Execution) string {
	switch {
	case runstream.IsQueued(x), !x.Finished && x.Token == 0:
		return submitted
	case !x.Finished && runview.AwaitsPeople(x):
		return inputRequired
	case !x.Finished:
		return working
	case x.Status == events.ExecutionFailed && x.Stopped:
		return canceled
	case x.Status == events.ExecutionFailed:
		return failed
	}
	return completed
}

// statusOf returns the status of a task.
func statusOf(x *events.Execution, context string) status {
	s := status{State: stateOf(x), Timestamp: changedAt(x)}
	switch s.State {
	case inputRequired:
		s.Message = askOf(x, context, x.WaitingApprovals())
	case failed:
		s.Message = &message{ID: x.ID + "-failed", ContextID: context, TaskID: x.ID, Role: roleAgent, Parts: []part{textPart(cmp.Or(x.ErrorText, "the run failed"))}}
	}
	return s
}

// ask says what a person is asked, in the data of a message.
type ask struct {
	CallID    string      `json:"callId"`
	Tool      string      `json:"tool"`
	Kind      string      `json:"kind"` // approval, question
	Arguments events.JSON `json:"arguments,omitzero"`
	Answer    events.JSON `json:"answer,omitzero"` // the schema of the answer to a question
}

// askOf returns the message that asks people: a text and data for each call.
func askOf(x *events.Execution, context string, list []events.CallApproval) *message {
	m := &message{ID: x.ID + "-asks", ContextID: context, TaskID: x.ID, Role: roleAgent}
	for i := range list {
		a := &list[i]
		m.ID = x.ID + "-" + a.CallID
		one := ask{a.CallID, a.Name, "approval", a.Arguments, a.Answer}
		if a.Reason == events.ApprovalQuestion {
			one.Kind = "question"
		}
		m.Parts = append(m.Parts, textPart(runview.Prompt(a)), part{Data: marshal(map[string]ask{"skein": one})})
	}
	return m
}

// task returns the run's task as it is now.
func (f *run) task(ctx context.Context, history *int, artifacts bool) (task, error) {
	now, err := f.o.c.Client.UpToDate(ctx)
	if err != nil {
		return task{}, err
	}
	x, err := runstream.FindIn(ctx, now, f.execution, f.thread)
	if events.IsNotFound(err) { // it was removed from its queue, or the thread was deleted
		return task{ID: f.execution, ContextID: f.context, Status: status{State: canceled}}, nil
	}
	if err != nil {
		return task{}, err
	}
	return f.o.site().taskOf(ctx, now, x, f.context, history, artifacts)
}

// site is what the URLs of files begin with.
type site string

func (o *operation) site() site { return site(o.server.edge.BaseURL(o.r)) }

// taskOf returns an execution as a task.
func (b site) taskOf(ctx context.Context, now *client.Client, x *events.Execution, context string, history *int, artifacts bool) (task, error) {
	t := task{ID: x.ID, ContextID: context, Status: statusOf(x, context), Metadata: marshal(map[string]any{"skein": map[string]string{"threadId": x.ThreadID}})}
	if runstream.IsQueued(x) {
		return t, nil
	}
	if artifacts {
		for _, id := range x.Items() {
			item, err := client.Read(ctx, now, events.GetItem{ThreadID: x.ThreadID, ItemID: id})
			if events.IsNotFound(err) { // it was deleted, or is not written yet
				continue
			}
			if err != nil {
				return t, err
			}
			if parts := b.partsOf(item.Content, item.ThreadID, nil); len(parts) > 0 {
				t.Artifacts = append(t.Artifacts, artifact{id, parts})
			}
		}
	}
	if history != nil && *history == 0 {
		return t, nil
	}
	var err error
	if t.History, err = b.historyOf(ctx, now, x, context); err != nil {
		return t, err
	}
	if history != nil && len(t.History) > *history {
		t.History = t.History[len(t.History)-*history:]
	}
	return t, nil
}

// historyOf returns the message that began a task, and what people were asked since and have decided.
func (b site) historyOf(ctx context.Context, now *client.Client, x *events.Execution, context string) (list []message, err error) {
	if x.TriggerItemID == "" { // it never began
		return nil, nil
	}
	item, err := client.Read(ctx, now, events.GetItem{ThreadID: x.ThreadID, ItemID: x.TriggerItemID})
	switch {
	case events.IsNotFound(err): // it was deleted
	case err != nil:
		return nil, err
	default:
		list = append(list, b.messageOf(item, x.ID, context))
	}
	for _, a := range x.Approvals {
		if a.Status == events.ApprovalWaiting || a.Status == events.ApprovalWithdrawn {
			continue
		}
		list = append(list, *askOf(x, context, []events.CallApproval{a}))
		if said := map[events.ApprovalStatus]string{events.ApprovalGrant: `{"grant":true}`, events.ApprovalDenial: `{"deny":true}`}[a.Status]; said != "" {
			list = append(list, message{ID: x.ID + "-" + a.CallID + "-answer", ContextID: context, TaskID: x.ID, Role: roleUser, Parts: []part{{Data: events.JSON(said)}}})
		}
	}
	return list, nil
}

// messageOf returns an item as a message.
func (b site) messageOf(item *events.Item, id, context string) message {
	var own ofMessage
	_ = json.Unmarshal(item.Metadata, &own) // another program's is none
	m := message{ID: cmp.Or(own.A2A.ID, item.ID), ContextID: context, TaskID: id, Role: roleUser, Metadata: own.A2A.Metadata}
	if item.Role == events.Assistant {
		m.Role = roleAgent
	}
	if m.Parts = b.partsOf(item.Content, item.ThreadID, own.A2A.Data); m.Parts == nil {
		m.Parts = []part{}
	}
	return m
}

// partsOf returns the content of an item as parts. data are the places of texts that are data.
func (b site) partsOf(content events.JSON, thread string, data []int) (list []part) {
	var stored []events.JSON
	_ = json.Unmarshal(attachment.Served(content, thread), &stored) // content that is not a list has no parts
	for i, raw := range stored {
		p := runview.ReadPart(raw)
		text, plain := p.PlainText()
		switch {
		case plain && slices.Contains(data, i):
			list = append(list, part{Data: events.JSON(text)})
		case plain && text != "":
			list = append(list, textPart(text))
		case plain:
		default:
			if one, is := partOf(raw, string(b)); is {
				list = append(list, one)
			}
		}
	}
	return list
}

// partOf returns a file, or a program's own data, as a part. base is the prefix of the URLs of
// files.
func partOf(raw events.JSON, base string) (part, bool) {
	p := runview.ReadPart(raw)
	if strings.HasPrefix(p.Type, "data-") {
		var of struct {
			Data events.JSON `json:"data"`
		}
		_ = json.Unmarshal(raw, &of) // it was decoded before
		if of.Data == nil {
			of.Data = raw
		}
		return part{Data: of.Data}, true
	}
	if p.Type != events.InputImage && p.Type != events.InputFile && p.Type != "file" {
		return part{}, false
	}
	url := cmp.Or(p.ImageURL, p.FileData, p.FileURL, p.URL)
	out := part{URL: url, MediaType: p.MediaType, Filename: p.Name}
	if head, data, is := strings.Cut(url, ";base64,"); is && strings.HasPrefix(head, "data:") {
		kind, _, _ := strings.Cut(strings.TrimPrefix(head, "data:"), ";")
		out.URL, out.Raw, out.MediaType = "", data, cmp.Or(p.MediaType, kind)
	} else if strings.HasPrefix(url, "/") {
		out.URL = base + url
	}
	return out, url != ""
}
