package a2a

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// tries is how often a context that changes meanwhile is looked at again.
const tries = 4

// run is the run of a task.
type run struct {
	o         *operation
	now       *client.Client // its queries show everything that was committed before
	thread    string
	execution string
	context   string
	from      int64 // the version of the thread from which its events are read
	seq       int64 // the sequence in the log at which it began; 0: it had begun before

	live *runstream.Live // until it was played; nil: the run may have begun before the request
}

// begin does what a message asks for, and returns the run that answers.
func (o *operation) begin(in *sendRequest) (*run, error) {
	f, err := o.beginOrAnswer(in)
	if err == nil && in.Message.ContextID != "" { // a thread has two names: the client's is kept
		f.context = in.Message.ContextID
	}
	if err == nil {
		err = f.pushTo(o.r.Context(), in.Configuration.Push)
	}
	return f, err
}

func (o *operation) beginOrAnswer(in *sendRequest) (*run, error) {
	ctx, m := o.r.Context(), in.Message
	one := o.onceOf(m)
	if m.TaskID != "" {
		return o.answer(ctx, m, one)
	}
	return edge.BeginOnce(one.name, "context", m.ContextID, tries, func(try int) (*run, error) { return o.ask(ctx, in, one, try == 1) })
}

// contextOf returns the contextId of a thread.
func contextOf(t *events.Thread) string {
	if t.Key != nil && strings.HasPrefix(*t.Key, keyPrefix) {
		return strings.TrimPrefix(*t.Key, keyPrefix)
	}
	return t.ID
}

// threadOf returns the thread of a context, nil if there is none yet.
func threadOf(ctx context.Context, now *client.Client, id string) (*events.Thread, error) {
	if id == "" {
		return nil, nil
	}
	ref := "key:" + keyPrefix + id
	if events.ValidThreadID(id) { // no key of a thread looks like an id
		ref = id
	}
	t, err := client.Read(ctx, now, events.GetThread{ThreadID: ref})
	if events.IsNotFound(err) {
		if ref == id {
			return nil, events.Missing("context", id)
		}
		return nil, nil
	}
	return t, err
}

// ask begins a task, unless the message has begun one.
func (o *operation) ask(ctx context.Context, in *sendRequest, one once, first bool) (*run, error) {
	now, err := o.c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	m := in.Message
	t, err := threadOf(ctx, now, m.ContextID)
	if err != nil {
		return nil, err
	}
	ids, thread := []string{one.number}, runstream.BegunBy(one.number)
	if t != nil {
		ids, thread = append(ids, runstream.NumberIn(t.ID, one.number)), t.ID
	}
	for _, number := range ids {
		x, err := runstream.FindIn(ctx, now, events.ExecutionPrefix+number, thread)
		if events.IsNotFound(err) {
			continue
		}
		if err == nil && keptOf(x).Request != one.digest {
			return nil, edge.ReusedKey(one.name)
		}
		if err != nil {
			return nil, err
		}
		return o.runOf(ctx, now, x)
	}
	if first {
		if _, err := agentNamed(ctx, now, o.c, o.agent); err != nil {
			return nil, err
		}
	}
	if t != nil && t.Run != nil {
		x, err := client.Read(ctx, now, events.GetExecution{ThreadID: t.ID, ExecutionID: t.Run.ExecutionID})
		if err != nil {
			return nil, err
		}
		if runview.AwaitsPeople(x) {
			return nil, unsupported("the context has a task that waits for input: send the answer with taskId " + x.ID + ", or cancel that task; it waits for: " + asked(x))
		}
	}
	return o.commit(ctx, now, in, one, t, ids[len(ids)-1])
}

// commit writes the message, and asks the agent about it, in one commit.
func (o *operation) commit(ctx context.Context, now *client.Client, in *sendRequest, one once, t *events.Thread, number string) (*run, error) {
	m := in.Message
	item, err := m.item()
	if err != nil {
		return nil, err
	}
	f := &run{o: o, now: now, execution: events.ExecutionPrefix + number, from: 1}
	var commands []events.SubCommand
	made := t != nil
	if made {
		f.thread, f.from = t.ID, t.Version+1
	} else {
		create := events.CreateThread{AgentID: o.agent, UserID: o.c.User}
		if m.ContextID != "" {
			create.Key = keyPrefix + m.ContextID
		}
		large, err := attachment.Large(attachment.Held{JSON: &item.Content})
		if err != nil {
			return nil, ofParts(err)
		}
		f.thread = runstream.BegunBy(number)
		if made = large; made { // its files are stored in the thread
			if _, err := now.Send(ctx, f.thread, create, client.CommandID(one.command()+"-create")); err != nil {
				return nil, err
			}
		} else {
			first, err := client.Sub("thread.create", create)
			if err != nil {
				return nil, err
			}
			commands = append(commands, first)
		}
	}
	if made {
		if err := attachment.Store(ctx, now.Files(f.thread), attachment.Held{JSON: &item.Content}); err != nil {
			return nil, ofParts(err)
		}
	}
	own := kept{MessageID: m.ID, Request: one.digest}
	if hasValue(in.Metadata) {
		own.Metadata = in.Metadata
	}
	react, err := client.Sub("thread.react", events.ReactThread{
		Item: item, AgentID: o.agent, Policy: events.Enqueue, ExecutionID: f.execution, Settings: &events.RunSettings{Metadata: marshal(map[string]kept{"a2a": own})},
	})
	if err != nil {
		return nil, err
	}
	f.live = runstream.Ahead(ctx, now, f.thread)
	reply, err := now.Commit(ctx, f.thread, append(commands, react), client.CommandID(one.command()))
	f.live = f.live.Begun(reply)
	if err != nil {
		return nil, ofParts(err)
	}
	f.now, f.thread, f.context, f.seq = now.WithMinSeq(reply.Seq), reply.ThreadID, reply.ThreadID, reply.Seq
	return f, nil
}

// ofParts returns the refusal of a command with a path of the message: the client has never seen the
// command.
func ofParts(err error) error {
	return events.AtField(err, func(string) string { return "/message/parts" })
}

// answer answers what a task waits for, unless the message has done so.
func (o *operation) answer(ctx context.Context, m *message, one once) (*run, error) {
	now, x, t, err := o.find(ctx, m.TaskID)
	if err != nil {
		return nil, err
	}
	if m.ContextID != "" && m.ContextID != contextOf(t) && m.ContextID != t.ID {
		return nil, events.Invalid("/message/contextId", "task %s is of the context %.200q", x.ID, contextOf(t))
	}
	if runstream.IsQueued(x) || !runview.AwaitsPeople(x) {
		f, err := o.answered(ctx, now, x, one)
		switch {
		case f != nil || err != nil:
			return f, err
		case x.Finished:
			return nil, unsupported("task " + x.ID + " has ended: send the message without a taskId, and with the contextId " + contextOf(t))
		default:
			return nil, unsupported("task " + x.ID + " is being worked on and waits for no input: send the message without a taskId, and it begins a task that comes after it")
		}
	}
	list, err := m.answers(x)
	if err != nil {
		if f, repeated := o.answered(ctx, now, x, one); f != nil && repeated == nil {
			return f, nil
		}
		return nil, err
	}
	var commands []events.SubCommand
	for _, d := range list {
		one, err := client.Sub("approval.resolve", d)
		if err != nil {
			return nil, err
		}
		commands = append(commands, one)
	}
	reply, err := now.Commit(ctx, x.ThreadID, commands, client.CommandID(one.answer()))
	switch {
	case events.IsReusedID(err): // it has answered an earlier question
		return nil, edge.ReusedKey(one.name)
	case err != nil:
		return nil, ofParts(err)
	}
	return o.runOf(ctx, now.WithMinSeq(reply.Seq), x)
}

// answered returns the run that a message has answered before, nil if it has not.
func (o *operation) answered(ctx context.Context, now *client.Client, x *events.Execution, one once) (*run, error) {
	if runstream.IsQueued(x) || len(x.Approvals) == 0 {
		return nil, nil
	}
	f, err := o.runOf(ctx, now, x)
	if err != nil {
		return nil, err
	}
	types := []string{string(events.ApprovalGrantedType), string(events.ApprovalDeniedType), string(events.ApprovalResolvedType)}
	for from := f.from; from > 0; {
		page, err := client.Read(ctx, now, events.ListEvents{ThreadID: x.ThreadID, FromVersion: &from, Types: types})
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Events {
			if e, err := events.DecodeEvent(raw); err == nil && e.CommandID == one.answer() {
				return f, nil
			}
		}
		from = page.NextVersion
	}
	return nil, nil
}

// runOf returns the run of an execution, from its beginning.
func (o *operation) runOf(ctx context.Context, now *client.Client, x *events.Execution) (*run, error) {
	t, err := client.Read(ctx, now, events.GetThread{ThreadID: x.ThreadID})
	if err != nil {
		return nil, err
	}
	f := &run{o: o, now: now, thread: t.ID, execution: x.ID, context: contextOf(t), from: t.Version}
	if !runstream.IsQueued(x) {
		f.from, err = runstream.Beginning(ctx, now, x, t.Version)
	}
	return f, err
}

// keptOf returns what an execution keeps of the message that began it.
func keptOf(x *events.Execution) kept {
	var of struct {
		A2A kept `json:"a2a"`
	}
	if x.Settings != nil {
		_ = json.Unmarshal(x.Settings.Metadata, &of) // metadata of another program is ignored
	}
	return of.A2A
}
