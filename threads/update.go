package threads

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Update changes a thread: recipe changes a copy of it, and what it changed is stored in one
// commit. It returns the new thread, and the patches that lead from the one that recipe saw to
// it. If another client changes the thread meanwhile, recipe is called again with the newer
// thread, so it must do nothing else. An error of recipe is returned, and nothing is stored.
//
// The title, flags, draft, mode, limit and env may be changed, messages may be added at the end,
// removed, or have their text changed, and queued messages may be removed. Anything else is an
// *UnsupportedError. A thread that does not exist is a *NotLoadedError.
func (s *Service) Update(ctx context.Context, id string, recipe func(*Thread) error) (*Thread, []Patch, error) {
	for attempt := 1; ; attempt++ {
		before, version, err := s.versioned(ctx, id)
		if unknown := (*NotFoundError)(nil); errors.As(err, &unknown) {
			return nil, nil, &NotLoadedError{ID: id}
		}
		if err != nil {
			return nil, nil, err
		}
		wanted := clone(before)
		if err := recipe(wanted); err != nil {
			return nil, nil, err
		}
		after, err := s.store(ctx, before, wanted, version)
		if events.HasCode(err, events.VersionConflict) && attempt < tries {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		return after, Diff(before, after), nil
	}
}

// versioned returns a thread's document and the version of the thread that it shows.
func (s *Service) versioned(ctx context.Context, id string) (*Thread, int64, error) {
	for {
		t, err := client.Read(ctx, s.reader(), events.GetThread{ThreadID: id})
		if err != nil {
			return nil, 0, named(id, err)
		}
		doc, err := s.read(ctx, events.GetThreadDocument{ThreadID: t.ID, Fresh: events.Fresh{MinVersion: &t.Version}})
		if err != nil {
			return nil, 0, err
		}
		if doc.V == t.Changes {
			return doc, t.Version, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, context.Cause(ctx)
		}
	}
}

// store stores what makes one thread another, if it still has that version.
func (s *Service) store(ctx context.Context, before, after *Thread, version int64) (*Thread, error) {
	p := plan{service: s, ctx: ctx, id: before.ID, version: version}
	if err := p.diff(before, after); err != nil {
		return nil, err
	}
	if len(p.commands) == 0 {
		return before, nil
	}
	reply, err := s.wrote(s.c.Commit(ctx, before.ID, p.commands, client.ExpectVersion(version)))
	if err != nil {
		return nil, err
	}
	return s.at(ctx, reply)
}

// plan is the commands that make one thread another.
type plan struct {
	service  *Service
	ctx      context.Context //nolint:containedctx // it lives as long as the call
	id       string          // of the thread
	version  int64
	commands []events.SubCommand
	ids      []string // of the items of the messages; nil: they were not read
}

func (p *plan) add(name string, data any) error {
	c, err := client.Sub(name, data)
	p.commands = append(p.commands, c)
	return err
}

func (p *plan) diff(before, after *Thread) error {
	if err := fixed(before, after); err != nil {
		return err
	}
	if err := p.profile(before, after); err != nil {
		return err
	}
	if err := p.queue(before.QueuedMessages, after.QueuedMessages); err != nil {
		return err
	}
	return p.messages(before, after)
}

// fixed refuses changes of what no command changes.
func fixed(before, after *Thread) error {
	for _, f := range []struct {
		path, why string
		is, was   any
	}{
		{"/v", "it counts the changes by itself; leave it as it is", after.V, before.V},
		{"/id", "a thread keeps its id; use Fork for another one", after.ID, before.ID},
		{"/created", "the time of creation does not change", after.Created, before.Created},
		{"/relationships", "use Fork, Handoff, Mention and Truncate", after.Relationships, before.Relationships},
		{"/originThreadID", "use Fork", after.OriginThreadID, before.OriginThreadID},
		{"/forkPointIndex", "use Fork", after.ForkPointIndex, before.ForkPointIndex},
		{"/mainThreadID", "it is set when the thread is created", after.MainThreadID, before.MainThreadID},
		{"/activatedSkills", "a skill is activated by its command, skill.activate", after.ActivatedSkills, before.ActivatedSkills},
	} {
		if string(encoded(f.is)) != string(encoded(f.was)) {
			return unsupported(f.path, f.why)
		}
	}
	if added := int64(len(after.Messages) - len(before.Messages)); after.NextMessageID != before.NextMessageID && after.NextMessageID != before.NextMessageID+added {
		return unsupported("/nextMessageId", "it counts the messages by itself; leave it as it is")
	}
	return nil
}

// profile adds the change of what describes the thread.
func (p *plan) profile(before, after *Thread) error {
	var d events.UpdateThread
	changed := false
	set := func(is bool, do func()) {
		if is {
			changed = true
			do()
		}
	}
	set(after.Title != before.Title, func() { d.Title = &after.Title })
	set(after.Archived != before.Archived, func() { d.Archived = &after.Archived })
	set(after.Draft != before.Draft, func() { d.Draft = &after.Draft })
	set(after.AutoSubmitDraft != before.AutoSubmitDraft, func() { d.AutoSubmitDraft = &after.AutoSubmitDraft })
	set(after.AgentMode != before.AgentMode, func() { d.AgentMode = &after.AgentMode })
	if string(encoded(after.MaxTokens)) != string(encoded(before.MaxTokens)) {
		if after.MaxTokens == nil {
			return unsupported("/maxTokens", "a limit cannot be removed; set a higher one")
		}
		set(true, func() { d.MaxTokens = after.MaxTokens })
	}
	if string(encoded(after.Env)) != string(encoded(before.Env)) {
		if after.Env == nil {
			return unsupported("/env", "it cannot be removed; set it to {}")
		}
		set(true, func() { d.Env = after.Env })
	}
	if !changed {
		return nil
	}
	return p.add("thread.update", d)
}

// queue adds the removal of waiting messages.
func (p *plan) queue(before, after []Queued) error {
	rest := after
	for _, q := range before {
		if len(rest) > 0 && rest[0].ID == q.ID {
			if string(encoded(rest[0])) != string(encoded(q)) {
				return unsupported("/queuedMessages", "a waiting message is changed by queue.edit")
			}
			rest = rest[1:]
			continue
		}
		if err := p.add("queue.remove", events.RemoveQueued{QueuedID: q.ID}); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return unsupported("/queuedMessages", "use Enqueue to add, and queue.move to move")
	}
	return nil
}

// messages adds the changes of messages: some were removed or changed, and others follow.
func (p *plan) messages(before, after *Thread) error {
	kept := 0 // of after
	for i, m := range before.Messages {
		if kept < len(after.Messages) && sameMessage(m, after.Messages[kept]) {
			if err := p.edit(i, kept, m, after.Messages[kept]); err != nil {
				return err
			}
			kept++
			continue
		}
		if err := p.remove(before, i); err != nil {
			return err
		}
	}
	next := before.NextMessageID
	for i, m := range after.Messages[kept:] {
		path := fmt.Sprintf("/messages/%d", kept+i)
		items, err := itemsOf(m, path)
		if err != nil {
			return err
		}
		if m.MessageID != nil && *m.MessageID != next {
			return unsupported(path+"/messageId", "messages are added at the end, and numbered by themselves; leave it out")
		}
		if items[0].Type == events.Message {
			next++
		}
		if len(items) > 1 { // its calls name it
			items[0].ID = events.ItemPrefix + uuid.NewString()
		}
		for n, item := range items {
			if n > 0 {
				item.ParentItemID = items[0].ID
			}
			if err := p.add("item.create", events.CreateItem{Item: item}); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameMessage reports whether two values are of the same message: they have its number, or are
// the result of the same call.
func sameMessage(a, b Message) bool {
	if a.MessageID != nil || b.MessageID != nil {
		return a.MessageID != nil && b.MessageID != nil && *a.MessageID == *b.MessageID
	}
	return a.CreatedAt == b.CreatedAt && len(a.Content) == len(b.Content) && (len(a.Content) == 0 ||
		a.Content[0].ToolUseID == b.Content[0].ToolUseID && a.Content[0].ID == b.Content[0].ID)
}

// remove adds the deletion of a message.
func (p *plan) remove(before *Thread, i int) error {
	for _, r := range before.Relationships {
		if r.Role == events.ParentRole && r.MessageIndex != nil && *r.MessageIndex >= int64(i) {
			return unsupported(fmt.Sprintf("/messages/%d", i), "another thread is related at or after this message; use Truncate")
		}
	}
	id, err := p.item(i)
	if err != nil {
		return err
	}
	return p.add("message.delete", events.DeleteMessage{ItemID: id})
}

// edit adds the change of a message's texts.
func (p *plan) edit(i, now int, was, is Message) error {
	path := fmt.Sprintf("/messages/%d", now)
	if string(encoded(was)) == string(encoded(is)) {
		return nil
	}
	if was.Role != is.Role || was.CreatedAt != is.CreatedAt || len(was.Content) != len(is.Content) {
		return unsupported(path, "only the text of a message may be changed; remove it and add another one")
	}
	text := ""
	for n := range is.Content {
		old, b := was.Content[n], is.Content[n]
		if b.Type == events.TextBlock && b.Text != nil {
			text, old.Text = *b.Text, b.Text
		}
		if string(encoded(old)) != string(encoded(b)) {
			return unsupported(fmt.Sprintf("%s/content/%d", path, n), "only text may be changed; remove the message and add another one")
		}
	}
	if len(is.Content) != 1 {
		return unsupported(path, "the text of a message with other blocks cannot be changed; remove it and add another one")
	}
	id, err := p.item(i)
	if err != nil {
		return err
	}
	return p.add("message.update", events.UpdateMessage{MessageID: id, MessageUpdates: events.MessageUpdates{Content: &text}})
}

// item returns the id of the item of a message.
func (p *plan) item(i int) (string, error) {
	deep := int64(0)
	for cursor := ""; p.ids == nil || cursor != ""; {
		list, err := client.Read(p.ctx, p.service.reader(), events.ListMessages{
			ThreadID: p.id, GetMessagesOptions: events.GetMessagesOptions{Order: "asc", MaxDepth: &deep}, Cursor: cursor,
			Fresh: events.Fresh{MinVersion: &p.version},
		})
		if err != nil {
			return "", err
		}
		for _, m := range list.Messages {
			p.ids = append(p.ids, m.ID)
		}
		if cursor = list.NextCursor; cursor == "" && p.ids == nil {
			p.ids = []string{}
		}
	}
	if i >= len(p.ids) { // it has changed since
		return "", events.Errorf(events.VersionConflict, "the thread has changed; read it again and retry")
	}
	return p.ids[i], nil
}
