package chat

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
)

// chat is a request's view of a chat.
type chat struct {
	id     string
	caller *edge.Caller
	now    *client.Client // its queries show everything that was committed before the request
	thread *events.Thread // nil if there is none
	once   *once          // nil if the request has no Idempotency-Key
	live   *runstream.Live
}

// open looks a chat up.
func open(ctx context.Context, c *edge.Caller, id string) (*chat, error) {
	if err := checkChat(id); err != nil {
		return nil, err
	}
	now, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	h := &chat{id: id, caller: c, now: now}
	h.thread, err = client.Read(ctx, now, events.GetThread{ThreadID: threadOf(id)})
	if events.IsNotFound(err) {
		err = nil
	}
	return h, err
}

// missing returns the refusal of a chat that does not exist.
func (h *chat) missing() error { return events.Missing("chat", h.id) }

// follow says which message to stream.
type follow struct {
	Run
	from  int64    // the version of the thread from which its events are read
	after []string // the client has the message up to where these calls wait
	live  *runstream.Live
}

// ask does what a request asks for, and returns the message that answers.
func (h *chat) ask(ctx context.Context, req *request) (*follow, error) {
	if req.Trigger == triggerRegenerate {
		return h.regenerate(ctx, req)
	}
	m := req.last
	if m.Role == string(events.Assistant) {
		return h.answer(ctx, m)
	}
	item, err := req.userItem(ctx, h)
	if err != nil {
		return nil, err
	}
	if h.thread == nil {
		return h.begin(ctx, req, item)
	}
	if err := attachment.Store(ctx, h.now.Files(h.thread.ID), attachment.Held{JSON: &item.Content, Path: req.path(len(req.Messages) - 1)}); err != nil {
		return nil, err
	}
	if req.MessageID != "" {
		at, err := h.find(ctx, func(m *events.ThreadMessage) bool {
			return m.Role == events.FromUser && messageID(m.ID, m.Metadata) == req.MessageID
		})
		if err != nil {
			return nil, err
		}
		if at != nil {
			return h.replace(ctx, req, at, item)
		}
	}
	what := "send"
	if req.MessageID != "" { // the same message may have been sent before it was hidden
		what = "edit"
	}
	f, err := h.react(ctx, req, item, h.once.options(commandID(what, h.id, item, m.ID))...)
	if events.HasCode(err, events.AlreadyExists) && (h.once == nil || !events.IsReusedID(err)) {
		return h.repeated(ctx, req, item, err)
	}
	return f, err
}

// repeated returns the message that answers an item which the thread has already: a request
// that created the chat, or an old one, was sent again. cause is the refusal of any other.
func (h *chat) repeated(ctx context.Context, req *request, item *events.NewItem, cause error) (*follow, error) {
	stored, err := client.Read(ctx, h.now, events.GetItem{ThreadID: h.thread.ID, ItemID: item.ID})
	switch {
	case events.IsNotFound(err) && req.MessageID == req.last.ID: // hidden, and not asked about
		if err := again(item, req.MessageID); err != nil {
			return nil, err
		}
		return h.react(ctx, req, item, h.once.options("")...)
	case events.IsNotFound(err):
		return nil, cause // it was hidden
	case err != nil:
		return nil, err
	case stored.Role != item.Role || string(stored.Content) != string(item.Content):
		return nil, cause
	}
	x, err := h.execution(ctx, func(x *events.Execution) bool { return x.TriggerItemID == item.ID })
	if err != nil || x == nil {
		return nil, cmp.Or(err, cause)
	}
	from, err := h.beginning(ctx, x)
	return &follow{Run: h.runOf(x, x.ReactionItemID), from: from}, err
}

// begin creates the thread of a chat, with the messages that the client has already, and asks
// the agent.
func (h *chat) begin(ctx context.Context, req *request, item *events.NewItem) (*follow, error) {
	if events.ValidThreadID(h.id) {
		return nil, h.missing() // no key of a thread looks like an id
	}
	earlier, err := req.earlierItems(ctx, h.caller)
	if err != nil {
		return nil, err
	}
	create := events.CreateThread{Key: h.id, AgentID: req.Agent, UserID: h.caller.User}
	id := commandID("begin", h.id, item, req.last.ID) // of what the client sent
	thread, err := h.beginFiles(ctx, req, create, earlier, item)
	if events.HasCode(err, events.AlreadyExists) {
		return h.lost(ctx, req, err)
	}
	if err != nil {
		return nil, err
	}
	ask := events.ReactThread{Item: item, AgentID: req.Agent}
	if err := h.once.mark(&ask); err != nil {
		return nil, err
	}
	commands, err := subs(create, earlier, ask)
	if err != nil {
		return nil, err
	}
	if thread != "" {
		commands = commands[1:]
	}
	h.live = runstream.Ahead(ctx, h.now, cmp.Or(thread, events.DeriveThreadID(h.caller.Tenant, h.once.id(id))))
	reply, err := h.now.Commit(ctx, thread, commands, h.once.options(id)...)
	h.live = h.live.Begun(reply)
	if err == nil {
		err = h.caller.CheckMade(ctx, reply)
	}
	if events.HasCode(err, events.AlreadyExists) {
		return h.lost(ctx, req, err)
	}
	if err != nil {
		return nil, err
	}
	result := reply.Result.Results[len(reply.Result.Results)-1]
	return h.followReply(reply, result, req.Agent), h.same(ctx, reply, result)
}

// beginFiles creates the thread of a chat whose messages hold large files, and stores them. The
// thread is "" if there are none: it is created with the messages.
func (h *chat) beginFiles(ctx context.Context, req *request, create events.CreateThread, earlier []events.NewItem, item *events.NewItem) (thread string, err error) {
	all := make([]attachment.Held, 0, len(earlier)+1)
	for i := range earlier {
		all = append(all, attachment.Held{JSON: &earlier[i].Content, Path: req.path(i)})
	}
	all = append(all, attachment.Held{JSON: &item.Content, Path: req.path(len(earlier))})
	if large, err := attachment.Large(all...); !large || err != nil {
		return "", err
	}
	reply, err := h.now.Send(ctx, "", create)
	if err != nil {
		return "", err
	}
	return reply.ThreadID, attachment.Store(ctx, h.now.Files(reply.ThreadID), all...)
}

// lost handles a request whose chat has come into being in the meantime: two tabs began it
// together, or its key belongs to a thread that the principal may not see.
func (h *chat) lost(ctx context.Context, req *request, cause error) (*follow, error) {
	again, err := h.reopened(ctx)
	switch {
	case err != nil:
		return nil, err
	case again.thread == nil && events.AsError(cause).Details != nil && events.AsError(cause).Details.Entity == "item":
		return nil, cause // two of the messages have one id
	case again.thread == nil:
		return nil, h.missing()
	}
	return again.ask(ctx, req)
}

// subs returns the commands that begin a chat.
func subs(create events.CreateThread, earlier []events.NewItem, ask events.ReactThread) ([]events.SubCommand, error) {
	list := make([]events.SubCommand, 0, len(earlier)+2)
	add := func(name string, data any) error {
		c, err := client.Sub(name, data)
		list = append(list, c)
		return err
	}
	err := add("thread.create", create)
	for i := range earlier {
		err = errors.Join(err, add("item.create", events.CreateItem{Item: earlier[i]}))
	}
	err = errors.Join(err, add("thread.react", ask))
	switch {
	case err != nil:
		return nil, err
	case len(list) > maxCommands:
		return nil, events.Invalid("/messages", "a chat begins with at most %d earlier messages; this one has %d", maxCommands-2, len(earlier))
	}
	return list, nil
}

// maxCommands is how many commands one commit may have.
const maxCommands = 200

// react asks the agent about a message.
func (h *chat) react(ctx context.Context, req *request, item *events.NewItem, o ...client.Option) (*follow, error) {
	ask := events.ReactThread{Item: item, AgentID: req.Agent}
	if err := h.once.mark(&ask); err != nil {
		return nil, err
	}
	h.live = runstream.Ahead(ctx, h.now, h.thread.ID)
	reply, err := h.now.Send(ctx, h.thread.ID, ask, o...)
	h.live = h.live.Begun(reply)
	if err != nil {
		return nil, err
	}
	return h.followReacted(ctx, req, reply)
}

// followReacted returns the message that answers, where the last thing that was done is a
// thread.react.
func (h *chat) followReacted(ctx context.Context, req *request, reply *events.Reply) (*follow, error) {
	result := *reply.Result
	if n := len(result.Results); n > 0 {
		result = result.Results[n-1]
	}
	if err := h.same(ctx, reply, result); err != nil {
		return nil, err
	}
	f := h.followReply(reply, result, req.Agent)
	begins := slices.ContainsFunc(reply.Events, func(e events.EventRef) bool { return e.Type == events.ExecutionCreatedType })
	if begins || result.QueuedID != "" {
		return f, nil
	}
	x, err := client.Read(ctx, h.now.WithMinSeq(reply.Seq), events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: f.ExecutionID})
	if err != nil {
		return nil, err
	}
	f.live.Close()
	f.live = nil
	f.Later = f.MessageID != x.ReactionItemID // the message steers a run that has begun
	f.from, err = h.beginning(ctx, x)
	return f, err
}

// followReply returns the message that answers what a reply says was asked.
func (h *chat) followReply(reply *events.Reply, result events.Result, agent string) *follow {
	f := &follow{Run: Run{
		ThreadID: reply.ThreadID, Key: h.key(), AgentID: agent, ExecutionID: result.ExecutionID, MessageID: result.ReactionItemID,
	}, from: runstream.From(reply), live: h.live}
	if h.thread != nil && agent == "" {
		f.AgentID = h.thread.AgentID
	}
	return f
}

// key returns the key of the chat's thread, "" if it has none.
func (h *chat) key() string {
	switch {
	case h.thread != nil && h.thread.Key != nil:
		return *h.thread.Key
	case events.ValidThreadID(h.id):
		return ""
	}
	return h.id
}

// found is a message of the thread.
type found struct {
	events.ThreadMessage
	index int64 // among the messages that are shown, from 0
}

// find returns the newest message that matches, nil if there is none.
func (h *chat) find(ctx context.Context, matches func(*events.ThreadMessage) bool) (*found, error) {
	limit, depth := int64(200), int64(0)
	q := events.ListMessages{ThreadID: h.thread.ID, GetMessagesOptions: events.GetMessagesOptions{Limit: &limit, MaxDepth: &depth, Order: "desc"}}
	for seen := int64(0); ; {
		page, err := client.Read(ctx, h.now, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Messages {
			if matches(&page.Messages[i]) {
				return &found{page.Messages[i], page.Total - 1 - seen - int64(i)}, nil
			}
		}
		seen += int64(len(page.Messages))
		if page.NextCursor == "" {
			return nil, nil
		}
		q.Cursor = page.NextCursor
	}
}

// regenerate hides an answer and what followed it, and asks again.
func (h *chat) regenerate(ctx context.Context, req *request) (*follow, error) {
	if h.thread == nil {
		if m := req.last; m == nil || m.Role != string(events.User) {
			return nil, h.missing()
		}
		again := *req
		again.Trigger, again.MessageID = triggerSubmit, ""
		return h.ask(ctx, &again)
	}
	reached := req.MessageID == ""
	at, err := h.find(ctx, func(m *events.ThreadMessage) bool {
		reached = reached || messageID(m.ID, m.Metadata) == req.MessageID
		return reached && m.Role == events.FromUser
	})
	switch {
	case err != nil:
		return nil, err
	case at == nil && !reached:
		return h.regenerateHidden(ctx, req)
	case at == nil:
		return nil, events.Errorf(events.InvalidRequest, "chat %s has no message of a user to answer again", h.id)
	}
	stored, err := client.Read(ctx, h.now, events.GetItem{ThreadID: h.thread.ID, ItemID: at.ID})
	if err != nil {
		return nil, err
	}
	return h.replace(ctx, req, at, &events.NewItem{Type: events.Message, Role: stored.Role, Content: stored.Content, Metadata: stored.Metadata})
}

// regenerateHidden asks about the last message of a request that names an answer which is not
// shown. If that message is not shown either, a truncation hid both.
func (h *chat) regenerateHidden(ctx context.Context, req *request) (*follow, error) {
	missing := events.Missing("message", req.MessageID)
	if req.last == nil || req.last.Role != string(events.User) {
		return nil, missing
	}
	shown, err := h.find(ctx, func(m *events.ThreadMessage) bool { return messageID(m.ID, m.Metadata) == req.last.ID })
	switch {
	case err != nil:
		return nil, err
	case shown != nil:
		return nil, missing
	}
	again := *req
	again.Trigger, again.MessageID = triggerSubmit, req.last.ID
	return h.ask(ctx, &again)
}

// replace hides a message and everything after it, aborts what runs, and asks about an item in
// its place, all in one commit: nobody sees the message hidden and not asked about.
func (h *chat) replace(ctx context.Context, req *request, at *found, item *events.NewItem) (*follow, error) {
	if err := again(item, messageID(at.ID, at.Metadata)); err != nil {
		return nil, err
	}
	stays := max(at.index-1, 0)
	hide, err := client.Sub("thread.truncate", events.TruncateThread{MessageIndex: &stays, Interrupt: true})
	list := []events.SubCommand{hide}
	if err == nil && at.index == 0 { // a truncation keeps a message
		hide, err = client.Sub("message.delete", events.DeleteMessage{ItemID: at.ID})
		list = append(list, hide)
	}
	if err != nil {
		return nil, err
	}
	react := events.ReactThread{Item: item, AgentID: req.Agent}
	if err := h.once.mark(&react); err != nil {
		return nil, err
	}
	ask, err := client.Sub("thread.react", react)
	if err != nil {
		return nil, err
	}
	h.live = runstream.Ahead(ctx, h.now, h.thread.ID)
	reply, err := h.now.Commit(ctx, h.thread.ID, append(list, ask), h.once.options("")...)
	h.live = h.live.Begun(reply)
	if err != nil {
		return nil, err
	}
	return h.followReacted(ctx, req, reply)
}
