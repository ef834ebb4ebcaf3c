package console

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// activity holds the current run of a thread's agent, the queue, and the approvals that the run
// waits for.
type activity struct {
	Run       *events.Execution
	Last      *events.Execution // the last run, if none is active
	Queue     []queued
	Approvals []events.CallApproval
	viewer
}

// queued is an entry of the queue: a message or a call.
type queued struct {
	ID, Text string
	Call     string // the tool that is called
}

// latestRuns is how many of a thread's latest runs are searched for an active one.
const latestRuns = 20

func loadRun(a *page.Ask) (any, error) {
	p := &activity{viewer: viewerOf(a)}
	list, err := client.Read(a.Context(), a.Client, events.ListExecutions{ThreadID: a.Thread.ID, At: a.At, Order: "desc", Limit: new(int64(latestRuns))})
	if err != nil {
		return nil, err
	}
	for n := range list.Executions {
		e := &list.Executions[n]
		if n == 0 {
			p.Last = e
		}
		if e.Status != events.Executing {
			continue
		}
		p.Run = e
		p.Approvals = append(p.Approvals, e.WaitingApprovals()...)
	}
	if a.Live() && a.Thread.Queued > 0 {
		waiting, err := a.Client.ListQueue(a.Context(), events.ListQueue{ThreadID: a.Thread.ID})
		if err != nil {
			return nil, err
		}
		for _, q := range waiting.Queued {
			p.Queue = append(p.Queue, queuedOf(q))
		}
	}
	return p, nil
}

func queuedOf(q events.Queued) queued {
	var item events.NewItem
	_ = json.Unmarshal(q.Item, &item) // then it has no text
	if item.Type == events.Message {
		return queued{ID: q.ID, Text: events.TextOfParts(item.Content)}
	}
	var call struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(item.Content, &call) // then it has no name
	return queued{ID: q.ID, Call: call.Name}
}

// conversationActions returns the actions of the conversation page.
func conversationActions() []page.Action {
	const thread = "/threads/{thread}"
	return []page.Action{
		{Path: thread + "/say", Do: say},
		{Path: thread + "/stop", Do: stopRun},
		{Path: thread + "/retry", Do: retryRun},
		{Path: thread + "/approve", Right: edge.Approve, Do: answerApproval},
		{Path: thread + "/queue", Do: changeQueue},
		{Path: thread + "/draft", Do: changeDraft},
		{Path: thread + "/again", Do: askAgain},
		{Path: thread + "/fork", Do: forkThread},
		{Path: thread + "/update", Do: updateThread},
	}
}

// say sends a message to the agent, or only adds it.
func say(a *page.Ask) (string, error) {
	text := strings.TrimSpace(a.Form("text"))
	if text == "" {
		return "", events.Invalid("/text", "there is nothing to send; write a message")
	}
	if a.Form("only") != "" || a.Thread.AgentID == "" && a.Form("agentId") == "" {
		_, err := a.Client.Send(a.Context(), a.Thread.ID, events.CreateItem{Item: events.NewItem{
			Type: events.Message, Role: events.User, Content: events.MessageText(false, &text),
		}})
		return a.ThreadLink(""), err
	}
	_, err := a.Client.Send(a.Context(), a.Thread.ID, events.ReactThread{Text: &text, Policy: events.Policy(a.Form("policy")), AgentID: a.Form("agentId")})
	return a.ThreadLink(""), err
}

func stopRun(a *page.Ask) (string, error) {
	var err error
	switch a.Form("how") {
	case "", "stop":
		_, err = a.Client.Send(a.Context(), a.Thread.ID, events.StopRun{Now: true, Reason: "stopped in the console"})
	case "cancel":
		_, err = a.Client.Send(a.Context(), a.Thread.ID, events.CancelRun{Reason: "cancelled in the console"})
	default:
		err = events.Invalid("/how", "how is %.40q; it takes stop or cancel", a.Form("how"))
	}
	return a.Back(a.ThreadLink("")), err
}

func retryRun(a *page.Ask) (string, error) {
	_, err := a.Client.Send(a.Context(), a.Thread.ID, events.RetryRun{ExecutionID: a.Form("executionId")})
	return a.Back(a.ThreadLink("")), err
}

// answerApproval grants or denies a call. Changed arguments replace the requested ones.
func answerApproval(a *page.Ask) (string, error) {
	d := events.ResolveApproval{CallID: a.Form("callId"), Reason: strings.TrimSpace(a.Form("reason"))}
	switch a.Form("answer") {
	case "grant":
		d.Grant = true
		if changed := strings.TrimSpace(a.Form("arguments")); changed != "" && changed != strings.TrimSpace(a.Form("asked")) {
			if !jsontext.Value(changed).IsValid() {
				return "", events.Invalid("/arguments", "the arguments are not JSON; correct them, or reload the page to have them as they were")
			}
			d.Arguments = events.JSON(changed)
		}
	case "deny":
		d.Deny = true
	case "result":
		d.Reason = ""
		d.Result = events.FromText(a.Form("result"))
	default:
		return "", events.Invalid("/answer", "answer is %.40q; it takes grant, deny or result", a.Form("answer"))
	}
	_, err := a.Client.Send(a.Context(), a.Thread.ID, d)
	return a.Back(a.ThreadLink("")), err
}

func changeQueue(a *page.Ask) (string, error) {
	id := a.Form("queuedId")
	var err error
	switch a.Form("do") {
	case "remove":
		_, err = a.Client.Send(a.Context(), a.Thread.ID, events.RemoveQueued{QueuedID: id})
	case "last":
		_, err = a.Client.Send(a.Context(), a.Thread.ID, events.MoveQueued{QueuedID: id})
	case "edit":
		err = editQueued(a, id, strings.TrimSpace(a.Form("text")))
	default:
		err = events.Invalid("/do", "do is %.40q; it takes edit, remove or last", a.Form("do"))
	}
	return a.ThreadLink(""), err
}

// editQueued replaces the text of a queued message. Its other parts stay.
func editQueued(a *page.Ask, id, text string) error {
	if text == "" {
		return events.Invalid("/text", "the message is empty; write one, or remove it")
	}
	waiting, err := a.Client.ListQueue(a.Context(), events.ListQueue{ThreadID: a.Thread.ID})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(waiting.Queued, func(q events.Queued) bool { return q.ID == id })
	if at < 0 {
		return events.Errorf(events.NotFound, "the message does not wait any more: it was sent to the agent, or removed")
	}
	var item events.NewItem
	if err := json.Unmarshal(waiting.Queued[at].Item, &item); err != nil {
		return err
	}
	var parts, rest []jsontext.Value
	if err := json.Unmarshal(item.Content, &parts); err != nil || item.Type != events.Message {
		return events.Invalid("/queuedId", "only messages are edited; remove the call, and queue another one")
	}
	for _, part := range parts {
		var of struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(part, &of); err == nil && of.Type != events.InputText {
			rest = append(rest, part)
		}
	}
	said := []jsontext.Value{}
	if err := json.Unmarshal(events.MessageText(false, &text), &said); err != nil {
		return err
	}
	if item.Content, err = json.Marshal(append(said, rest...)); err != nil {
		return err
	}
	_, err = a.Client.Send(a.Context(), a.Thread.ID, events.EditQueued{QueuedID: id, Item: item})
	return err
}

// askAgain hides a message and all that follow, and sends its text, perhaps changed, to the agent
// again.
func askAgain(a *page.Ask) (string, error) {
	text := strings.TrimSpace(a.Form("text"))
	if text == "" {
		return "", events.Invalid("/text", "there is nothing to send; write a message")
	}
	index, err := messageIndex(a, a.Form("itemId"))
	if err != nil {
		return "", err
	}
	stays := max(index-1, 0)
	if _, err := a.Client.Send(a.Context(), a.Thread.ID, events.TruncateThread{MessageIndex: &stays, Interrupt: true}); err != nil {
		return "", err
	}
	if index == 0 { // a truncation keeps at least one message
		if _, err := a.Client.Send(a.Context(), a.Thread.ID, events.DeleteMessage{ItemID: a.Form("itemId")}); err != nil {
			return "", err
		}
	}
	_, err = a.Client.Send(a.Context(), a.Thread.ID, events.ReactThread{Text: &text})
	return a.ThreadLink(""), err
}

// messageIndex returns the index of a message among the shown messages, from 0.
func messageIndex(a *page.Ask, item string) (int64, error) {
	limit, depth := int64(200), int64(0)
	q := events.ListMessages{ThreadID: a.Thread.ID, GetMessagesOptions: events.GetMessagesOptions{Limit: &limit, MaxDepth: &depth, Order: "desc"}}
	for seen := int64(0); ; {
		list, err := client.Read(a.Context(), a.Client, q)
		if err != nil {
			return 0, err
		}
		for i, m := range list.Messages {
			if m.ID == item {
				return list.Total - 1 - seen - int64(i), nil
			}
		}
		if seen += int64(len(list.Messages)); list.NextCursor == "" {
			return 0, events.Missing("message", item)
		}
		q.Cursor = list.NextCursor
	}
}

// forkThread copies the thread into a new one, at the shown version or up to a message.
func forkThread(a *page.Ask) (string, error) {
	d := events.ForkThread{ItemID: a.Form("itemId")}
	if d.ItemID == "" {
		d.Version = new(a.Shown())
	}
	reply, err := a.Client.Send(a.Context(), a.Thread.ID, d)
	if err != nil {
		return "", err
	}
	return page.LinkThread(reply.Result.ChildID, ""), nil
}

// updateThread changes the title, or archives or restores the thread.
func updateThread(a *page.Ask) (string, error) {
	var d events.UpdateThread
	if a.Request.PostForm.Has("title") {
		d.Title = new(strings.TrimSpace(a.Form("title")))
	}
	if a.Request.PostForm.Has("archived") {
		d.Archived = new(a.Form("archived") == "true")
	}
	_, err := a.Client.Send(a.Context(), a.Thread.ID, d)
	return a.Back(a.ThreadLink("")), err
}
