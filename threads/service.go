package threads

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Service reads and changes threads of one tenant. It reads its own writes, and is safe for
// concurrent use.
type Service struct {
	c   *client.Client
	seq atomic.Int64 // the sequence of the last commit that it knows
}

// New returns a service on a client. The caller still has to close the client.
func New(c *client.Client) *Service { return &Service{c: c} }

// reader returns a client with answers that show all writes of the service.
func (s *Service) reader() *client.Client { return s.c.WithMinSeq(s.seq.Load()) }

// wrote records the reply's commit, so that all later reads show it, and returns the reply.
func (s *Service) wrote(r *events.Reply, err error) (*events.Reply, error) {
	if err != nil {
		return nil, err
	}
	for seen := s.seq.Load(); seen < r.Seq && !s.seq.CompareAndSwap(seen, r.Seq); seen = s.seq.Load() {
	}
	return r, nil
}

// tries bounds how often a change is tried again because another client was faster.
const tries = 16

// Get returns a thread, or a *NotFoundError.
func (s *Service) Get(ctx context.Context, id string) (*Thread, error) {
	return s.read(ctx, events.GetThreadDocument{ThreadID: id})
}

// read returns a thread, in parts if it is too large for one answer.
func (s *Service) read(ctx context.Context, q events.GetThreadDocument) (*Thread, error) {
	t, err := client.Read(ctx, s.reader(), q)
	if !events.HasCode(err, events.PayloadTooLarge) {
		return t, named(q.ThreadID, err)
	}
	for {
		var whole *Thread
		for next := int64(0); whole == nil || next > 0; {
			q.FromMessage = &next
			part, err := client.Read(ctx, s.reader(), q)
			if err != nil {
				return nil, named(q.ThreadID, err)
			}
			if whole != nil && part.V != whole.V { // the thread has changed: start again
				whole, next = nil, 0
				continue
			}
			next = part.NextMessageIndex
			if whole != nil {
				part.Messages = append(whole.Messages, part.Messages...)
			}
			part.NextMessageIndex = 0
			whole = part
		}
		return whole, nil
	}
}

// Create creates a thread. Without an id it gets a new one.
func (s *Service) Create(ctx context.Context, id string) (*Thread, error) {
	if id == "" {
		id = NewID()
	}
	reply, err := s.wrote(s.c.Send(ctx, "", events.CreateThread{}, client.ThreadID(id)))
	if err != nil {
		return nil, err
	}
	return s.at(ctx, reply)
}

// create creates a thread as it is.
func (s *Service) create(ctx context.Context, t *Thread) (*Thread, error) {
	p := plan{service: s, ctx: ctx, id: t.ID}
	if err := p.add("thread.create", events.CreateThread{}); err != nil {
		return nil, err
	}
	if err := p.diff(&Thread{ID: t.ID, Created: t.Created, Messages: []Message{}}, t); err != nil {
		return nil, err
	}
	reply, err := s.wrote(s.c.Commit(ctx, t.ID, p.commands, client.ExpectVersion(0)))
	if err != nil {
		return nil, err
	}
	return s.at(ctx, reply)
}

// at returns a thread as it is after a command, or newer.
func (s *Service) at(ctx context.Context, r *events.Reply) (*Thread, error) {
	return s.read(ctx, events.GetThreadDocument{ThreadID: r.ThreadID, Fresh: events.Fresh{MinVersion: &r.Version}})
}

// Save stores a thread as it is, in one commit or not at all: it creates it, or changes the stored
// one, which must have the same v. A thread that was changed since is a version_conflict, and a new
// one that another client creates meanwhile an already_exists.
func (s *Service) Save(ctx context.Context, t *Thread) (*Thread, error) {
	_, err := s.Get(ctx, t.ID)
	if unknown := (*NotFoundError)(nil); errors.As(err, &unknown) && t.V == 0 {
		return s.create(ctx, t)
	}
	saved, _, err := s.Update(ctx, t.ID, func(stored *Thread) error {
		if stored.V != t.V {
			return events.Conflict(t.V, stored.V)
		}
		created := stored.Created
		*stored = *clone(t)
		stored.Created = created
		return nil
	})
	return saved, err
}

// Archive archives a thread, or restores it if archived is false.
func (s *Service) Archive(ctx context.Context, id string, archived bool) error {
	_, err := s.wrote(s.c.Send(ctx, id, events.UpdateThread{Archived: &archived}))
	return named(id, err)
}

// Delete deletes a thread and the threads that work for it. A missing thread is no error.
func (s *Service) Delete(ctx context.Context, id string) error {
	_, err := s.wrote(s.c.Send(ctx, id, events.DeleteThread{}))
	if events.IsNotFound(err) {
		return nil
	}
	return err
}

// Fork copies a thread into a new one, up to and including a message, and returns its id. The
// index is the message's in the document.
func (s *Service) Fork(ctx context.Context, id string, messageIndex int64) (childID string, err error) {
	reply, err := s.wrote(s.c.Send(ctx, id, events.ForkThread{MessageIndex: &messageIndex}))
	if err != nil {
		return "", named(id, err)
	}
	return reply.Result.ChildID, nil
}

// HandoffOptions says how a thread is handed off.
type HandoffOptions struct {
	Summary string // the summary with which the new thread begins; empty: an agent writes it
	AgentID string // in charge of the new thread, and without a summary its author; default the thread's, and the author of the policy handoff
	Comment string // what the thread is handed off for
	Key     string // the new thread's public name
}

// Handoff continues a thread in a new one, which begins with a summary, and returns its id. If
// an agent writes the summary, it waits until that is done. The error is a *SummaryError if the
// agent wrote none; then there is no new thread.
func (s *Service) Handoff(ctx context.Context, id string, o HandoffOptions) (childID string, err error) {
	reply, err := s.wrote(s.c.Send(ctx, id, events.HandoffThread{Summary: o.Summary, AgentID: o.AgentID, Comment: o.Comment, Key: o.Key}))
	if err != nil {
		return "", named(id, err)
	}
	if reply.Result.ExecutionID == "" {
		return reply.Result.ChildID, nil
	}
	x, err := s.c.WaitRun(ctx, events.GetExecution{
		ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &reply.Seq},
	})
	switch {
	case err != nil:
		return "", named(id, err)
	case x.Status != events.ExecutionCompleted:
		return "", &SummaryError{ID: reply.ThreadID, Reason: x.ErrorText}
	}
	_, err = s.wrote(&events.Reply{ThreadID: reply.ThreadID, Seq: x.Seq}, nil)
	return reply.Result.ChildID, err
}

// Truncate removes the messages after one, and the relationships made there. A thread that runs
// is refused.
func (s *Service) Truncate(ctx context.Context, id string, messageIndex int64) error {
	_, err := s.wrote(s.c.Send(ctx, id, events.TruncateThread{MessageIndex: &messageIndex}))
	return named(id, err)
}

// Mention records that a thread refers to another one, once for each pair.
func (s *Service) Mention(ctx context.Context, id, mentionedID, comment string) error {
	_, err := s.wrote(s.c.Send(ctx, id, events.MentionThread{MentionedID: mentionedID, Comment: comment}))
	return err
}

// Enqueue sends a message to the thread's agent: it waits while the agent runs. It reports
// whether the message was taken; if five wait already it was not, which is no error. queuedID
// is empty if the message does not wait.
func (s *Service) Enqueue(ctx context.Context, id string, m Message) (queuedID string, taken bool, err error) {
	items, err := itemsOf(m, "/message")
	if err != nil {
		return "", false, err
	}
	if len(items) != 1 || items[0].Type != events.Message {
		return "", false, unsupported("/message/content", "a message with calls or results cannot wait; send its text alone")
	}
	reply, err := s.wrote(s.c.Send(ctx, id, events.ReactThread{Item: &items[0], Policy: events.Enqueue}))
	switch {
	case events.HasCode(err, events.QueueFull):
		return "", false, nil
	case err != nil:
		return "", false, named(id, err)
	}
	return reply.Result.QueuedID, true, nil
}

// HistoryOptions selects summaries.
type HistoryOptions struct {
	Archived bool   // the archived threads, instead of the others
	Limit    int64  // the largest number; default 50
	Cursor   string // NextCursor of the page before
}

// History returns summaries of threads, the newest change first.
func (s *Service) History(ctx context.Context, o HistoryOptions) (*events.ThreadHistory, error) {
	q := events.ListThreadHistory{Archived: &o.Archived, Cursor: o.Cursor}
	if o.Limit > 0 {
		q.Limit = &o.Limit
	}
	return client.Read(ctx, s.reader(), q)
}
