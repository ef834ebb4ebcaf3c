package agui

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// follow says which run to stream.
type follow struct {
	of                *conversation
	thread, execution string
	from              int64    // the version of the thread from which its events are read
	after             []string // the client has the run up to where people have answered these calls
	tools             []events.CallerTool
	live              *runstream.Live // nil: the run may have begun before the request
}

// mostCommands is how many commands one commit may have.
const mostCommands = 200

// tries is how often a conversation that changes meanwhile is looked at again.
const tries = 8

// begin does what a request asks for, and returns the run that answers.
func begin(r *http.Request, c *edge.Caller, agent string, in *input) (*follow, error) {
	once := in.onceOf(r, c, agent)
	if len(in.Resume) > 0 {
		t, err := open(r.Context(), c, in.ThreadID)
		if err != nil {
			return nil, err
		}
		if f, err := t.earlier(r.Context(), in, once); f != nil || err != nil {
			return f, err
		}
		return t.resume(r.Context(), in, once)
	}
	return edge.BeginOnce(once.name, "thread", in.ThreadID, tries, func(try int) (*follow, error) {
		t, err := open(r.Context(), c, in.ThreadID)
		if err != nil {
			return nil, err
		}
		p, err := t.locate(r.Context(), in)
		if err != nil {
			return nil, err
		}
		// Now: a run that begins later was not seen in the thread, and this request does as that one does.
		if f, err := t.earlier(r.Context(), in, once); f != nil || err != nil {
			return f, err
		}
		if try == 1 {
			if err := check(r, c, agent, in); err != nil {
				return nil, err
			}
		}
		t.expects = try < tries
		return t.ask(r.Context(), agent, in, once, p)
	})
}

// check refuses an agent that is not there, and tools that its runs would refuse.
func check(r *http.Request, c *edge.Caller, agent string, in *input) error {
	tools := []map[string]any{}
	for _, t := range in.callerTools() {
		one := map[string]any{"type": "function", "name": t.Name, "description": t.Description}
		if t.Parameters != nil {
			one["parameters"] = t.Parameters
		}
		tools = append(tools, one)
	}
	asked := openresponses.Asked{Body: marshal(map[string]any{"model": agent, "input": ".", "tools": tools})}
	err := asked.Check(r, c)
	if openresponses.IsNoModel(err) {
		return events.Errorf(events.NotFound, "there is no agent %.80q; GET /agui/info lists those that are defined", agent)
	}
	return err
}

// earlier returns the run of an earlier request with the same runId, nil if there is none.
func (t *conversation) earlier(ctx context.Context, in *input, o once) (*follow, error) {
	for _, b := range t.branches {
		x, err := client.Read(ctx, t.now, events.GetExecution{ThreadID: b.ID, ExecutionID: o.execution()})
		if err == nil {
			if err := t.checkSame(ctx, in, o, x.ThreadID, settingsOf(x.Settings).asked); err != nil {
				return nil, err
			}
			return t.follow(ctx, x)
		}
		if !events.IsNotFound(err) {
			return nil, err
		}
		list, err := t.now.ListQueue(ctx, events.ListQueue{ThreadID: b.ID})
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(list.Queued, func(q events.Queued) bool { return q.ExecutionID == o.execution() })
		if at < 0 {
			continue
		}
		var item events.NewItem
		var own metadata
		_ = json.Unmarshal(list.Queued[at].Item, &item) // it was checked when it was stored
		_ = json.Unmarshal(item.Metadata, &own)         // likewise
		if err := t.checkSame(ctx, in, o, b.ID, own.AGUI.asked); err != nil {
			return nil, err
		}
		return &follow{of: t, thread: b.ID, execution: o.execution(), from: b.Version}, nil
	}
	return nil, nil
}

// checkSame refuses a request with the runId of another one. A repeat has its state, or one that changes
// nothing now: the client may have been told another since.
func (t *conversation) checkSame(ctx context.Context, in *input, o once, thread string, first asked) error {
	differs := first.Request != o.Request
	if !differs && first.State != o.State {
		var err error
		if differs, err = t.stateDiffers(ctx, thread, in.State); err != nil {
			return err
		}
	}
	if differs {
		return edge.ReusedKey(o.name)
	}
	return nil
}

// follow returns an execution from its beginning.
func (t *conversation) follow(ctx context.Context, x *events.Execution) (*follow, error) {
	thread, err := client.Read(ctx, t.now, events.GetThread{ThreadID: x.ThreadID})
	if err != nil {
		return nil, err
	}
	f := &follow{of: t, thread: x.ThreadID, execution: x.ID}
	if x.Settings != nil {
		f.tools = x.Settings.Tools
	}
	f.from, err = runstream.Beginning(ctx, t.now, x, thread.Version)
	return f, err
}

// active returns the execution that is active on a thread, nil if none is.
func (t *conversation) active(ctx context.Context, thread *events.Thread) (*events.Execution, error) {
	if thread == nil || thread.Run == nil {
		return nil, nil
	}
	return client.Read(ctx, t.now, events.GetExecution{ThreadID: thread.ID, ExecutionID: thread.Run.ExecutionID})
}

// ask asks the agent about what is new.
func (t *conversation) ask(ctx context.Context, agent string, in *input, o once, p place) (*follow, error) {
	x, err := t.active(ctx, p.thread)
	if err != nil {
		return nil, err
	}
	switch {
	case len(p.fresh) == 0 && x != nil: // another run has the answer
		return t.follow(ctx, x)
	case len(p.fresh) == 0:
		return nil, events.Invalid("/messages", "there is nothing new to answer: send a message of the user, or the result of a tool, as the last one")
	case x != nil && !p.forks && runview.AwaitsPeople(x):
		return nil, events.Invalid("/messages", "thread %.200q waits for answers to its interrupts, and goes on with nothing else; resume it with: %s", t.id, strings.Join(waiting(x), ", "))
	}
	if err := p.checkResults(); err != nil {
		return nil, err
	}
	list, err := items(p.fresh, p.first)
	if err != nil {
		return nil, err
	}
	if n := len(list); n == 0 || list[n-1].Role == events.Assistant {
		return nil, events.Invalid("/messages", "the last message is a user's, or the result of a tool")
	}
	thread, err := t.settle(ctx, &p, o)
	if err != nil {
		return nil, err
	}
	return t.commit(ctx, agent, in, o, thread, list)
}

// checkResults refuses results of calls that nobody has made, and leaves out those that are part of a
// message.
func (p *place) checkResults() error {
	of := map[string]bool{} // calls of messages of the request that no run has written
	for i, m := range p.fresh {
		for _, c := range m.ToolCalls {
			of[c.ID] = true
		}
		if m.Role == roleTool && !p.open[m.ToolCallID] && !of[m.ToolCallID] {
			return events.Invalid("/messages/"+strconv.Itoa(p.first+i)+"/toolCallId", "the thread has no call %.80q that waits for a result of its client", m.ToolCallID)
		}
	}
	p.fresh = slices.DeleteFunc(slices.Clone(p.fresh), func(m message) bool { return m.Role == roleTool && of[m.ToolCallID] })
	return nil
}

// waiting returns the calls for which people are asked.
func waiting(x *events.Execution) (ids []string) {
	for _, a := range x.WaitingApprovals() {
		ids = append(ids, a.CallID)
	}
	return ids
}

// settle returns the thread in which a request goes on, nil if it is to be created. It forks one that
// differs.
func (t *conversation) settle(ctx context.Context, p *place, o once) (*events.Thread, error) {
	if p.thread == nil || !p.forks {
		return p.thread, nil
	}
	fork := events.ForkThread{ItemID: p.at, Key: t.forkPrefix() + o.number[:16]}
	if p.at == "" {
		fork.Version = new(int64(1)) // of a thread without messages
	}
	reply, err := t.now.Send(ctx, p.thread.ID, fork, client.CommandID(o.command()+"-fork-"+p.at))
	if err != nil {
		return nil, err
	}
	if reply.Result == nil || reply.Result.ChildID == "" {
		return nil, events.Errorf(events.Unavailable, "the fork of thread %s has no id; send the request again", p.thread.ID)
	}
	t.now = t.now.WithMinSeq(reply.Seq)
	return client.Read(ctx, t.now, events.GetThread{ThreadID: reply.Result.ChildID})
}

// commit writes the items, and asks the agent about the last of them, in one commit.
func (t *conversation) commit(ctx context.Context, agent string, in *input, o once, thread *events.Thread, list []events.NewItem) (*follow, error) {
	settings, err := in.settings(o)
	if err != nil {
		return nil, err
	}
	var commands []events.SubCommand
	if err := o.mark(&list[len(list)-1]); err != nil {
		return nil, err
	}
	add := func(name string, data any) {
		one, wrong := client.Sub(name, data)
		if commands = append(commands, one); err == nil {
			err = wrong
		}
	}
	id := ""
	if thread == nil {
		if events.ValidThreadID(t.id) { // no key of a thread looks like an id
			return nil, events.Missing("thread", t.id)
		}
		create := events.CreateThread{Key: keyPrefix + t.id, AgentID: agent, UserID: t.caller.User}
		if told(in.State) {
			create.Context = in.State
		}
		if id, err = t.createForFiles(ctx, create, o, list); err != nil {
			return nil, err
		}
		if id == "" {
			add("thread.create", create)
		}
	} else {
		id = thread.ID
		if commands, err = t.addState(ctx, commands, id, in.State); err != nil {
			return nil, err
		}
	}
	if id != "" {
		if err := attachment.Store(ctx, t.now.Files(id), held(list)...); err != nil {
			return nil, refused(err)
		}
	}
	for _, item := range list[:len(list)-1] {
		add("item.create", events.CreateItem{Item: item})
	}
	add("thread.react", events.ReactThread{Item: &list[len(list)-1], AgentID: agent, Policy: events.Enqueue, ExecutionID: o.execution(), Settings: settings})
	switch {
	case err != nil:
		return nil, err
	case len(commands) > mostCommands:
		return nil, events.Invalid("/messages", "a request has at most %d new messages; this one has %d", mostCommands-2, len(list))
	}
	at := id
	if at == "" { // it will be created
		at = events.DeriveThreadID(t.caller.Tenant, o.command())
	}
	live := runstream.Ahead(ctx, t.now, at)
	opts := []client.Option{client.CommandID(o.command())}
	if thread != nil && t.expects {
		opts = append(opts, client.ExpectVersion(thread.Version))
	}
	reply, err := t.now.Commit(ctx, id, commands, opts...)
	live = live.Begun(reply)
	if err != nil {
		return nil, refused(err)
	}
	if thread == nil {
		if err := t.caller.CheckMade(ctx, reply); err != nil {
			return nil, err
		}
	}
	t.now = t.now.WithMinSeq(reply.Seq)
	return &follow{of: t, thread: reply.ThreadID, execution: o.execution(), from: runstream.From(reply), tools: settings.Tools, live: live}, nil
}

// createForFiles creates the thread of a conversation that begins with large files, which are stored
// there. It returns "" if there are none: the thread is created with its messages.
func (t *conversation) createForFiles(ctx context.Context, create events.CreateThread, o once, list []events.NewItem) (string, error) {
	large, err := attachment.Large(held(list)...)
	if err != nil {
		return "", refused(err)
	}
	if !large {
		return "", nil
	}
	reply, err := t.now.Send(ctx, "", create, client.CommandID(o.command()+"-create"))
	if err != nil {
		return "", err
	}
	return reply.ThreadID, nil
}

// held returns the contents of messages that may be large.
func held(list []events.NewItem) []attachment.Held {
	all := make([]attachment.Held, len(list))
	for i := range list {
		all[i].JSON = &list[i].Content
	}
	return all
}

// told reports whether a state says anything.
func told(state events.JSON) bool {
	k := jsontext.Value(state).Kind()
	return k != 0 && k != 'n' && strings.Join(strings.Fields(string(state)), "") != "{}"
}

// addState adds the command that sets a state, if it says something else than the thread's context.
func (t *conversation) addState(ctx context.Context, list []events.SubCommand, thread string, state events.JSON) ([]events.SubCommand, error) {
	differs, err := t.stateDiffers(ctx, thread, state)
	if err != nil || !differs {
		return list, err
	}
	set, err := client.Sub("context.set", events.SetContext{Content: state})
	return append(list, set), err
}

// stateDiffers reports whether a state says something else than the thread's context.
func (t *conversation) stateDiffers(ctx context.Context, thread string, state events.JSON) (bool, error) {
	if !told(state) {
		return false, nil
	}
	now, err := client.Read(ctx, t.now, events.GetContext{ThreadID: thread})
	return err == nil && !events.EqualJSON(state, now.Content), err
}

// refused returns a refusal of a command with a path of the request: the client has never seen the
// command.
func refused(err error) error {
	return events.AtField(err, func(inData string) string {
		switch {
		case strings.Contains(inData, "/settings/tools"):
			return "/tools"
		case strings.HasSuffix(inData, "/agentId"):
			return "/agent"
		}
		return "/messages"
	})
}
