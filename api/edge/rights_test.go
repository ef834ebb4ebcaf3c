package edge_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// spies is a tenant with a thread that others must not read, the thread of a limited credential,
// and agents that read whatever thread they are asked to read.
type spies struct {
	*stage
	secret, own string
	full        *client.Client

	mu   sync.Mutex
	wait chan struct{} // what the tool wait waits for
	in   chan struct{} // it waits
}

// told are the arguments of the tools.
type told struct {
	Thread string `json:"thread"`
}

const secretWords = "the words that nobody else reads"

func newSpies(t *testing.T) *spies {
	s := &spies{stage: newStage(t), in: make(chan struct{}, 10)}
	s.full = s.skein.Client("acme")
	ctx := t.Context()
	s.must(s.skein.Reactor("reader", readAsTold))
	s.must(s.skein.Tool(skein.NewThreadTool("wait", func(ctx context.Context, _ *skein.ToolInput, _ told) (string, error) {
		s.mu.Lock()
		wait := s.wait
		s.mu.Unlock()
		s.in <- struct{}{}
		select {
		case <-wait:
		case <-ctx.Done():
		}
		return "waited", nil
	})))
	s.must(s.skein.Tool(skein.NewThreadTool("relay", func(ctx context.Context, in *skein.ToolInput, _ told) (string, error) {
		if err := in.State.QueueTool(ctx, "read_thread", map[string]string{"thread": "key:secret"}); err != nil {
			return "", err
		}
		_, err := in.State.ScheduleEffect(ctx, "later", nil, 0)
		return "relayed", err
	})))
	done := make(chan error, 1)
	s.must(s.skein.Effect("later", func(ctx context.Context, in *skein.EffectInput) error {
		got, err := in.State.InvokeTool(ctx, "read_thread", map[string]string{"thread": "key:secret"})
		if err == nil && strings.Contains(string(got.Result), secretWords) {
			t.Error("an effect of a limited run has read another thread")
		}
		select {
		case done <- err:
		default:
		}
		return err
	}))
	t.Cleanup(func() {
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the effect of a limited run: %v", err)
			}
		default:
		}
	})
	agent := `{"type":"ai_human","reactor":"reader","tools":["read_thread","wait","relay","helper"]`
	_, err := s.full.Send(ctx, "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"read_thread","description":"Reads.","type":"go"}`)},
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"wait","description":"Waits.","type":"go"}`)},
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"relay","description":"Relays.","type":"go"}`)},
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"danger","description":"Unlisted.","type":"go"}`)},
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"helper","description":"Helps.","type":"agent","agent":"pair"}`)},
		{Kind: events.AgentKind, Definition: events.JSON(agent + `,"name":"reader"}`)},
		{Kind: events.AgentKind, Definition: events.JSON(`{"name":"pair","type":"dual_ai","sideA":{"reactor":"reader","tools":["read_thread"],"stopOnResponse":true},"sideB":{"reactor":"reader"}}`)},
	}})
	s.must(err)
	s.secret = s.made(events.CreateThread{Key: "secret"})
	_, err = s.full.Send(ctx, s.secret, saying(secretWords))
	s.must(err)
	s.own = s.made(events.CreateThread{AgentID: "reader"})
	return s
}

// readAsTold asks for the tool that the last message names, with the rest of it as thread.
func readAsTold(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
	for i := len(in.Items) - 1; i >= 0; i-- {
		item := in.Items[i]
		if item.ID == in.ItemID && in.Iteration > 0 { // it has answered what came before
			break
		}
		if item.Role != events.User {
			continue
		}
		said := string(item.Content)
		for _, name := range []string{"read_thread", "wait", "relay", "helper"} {
			if _, rest, found := strings.Cut(said, name+" "); found {
				thread, _, _ := strings.Cut(rest, `"`)
				args := `{"thread":"` + thread + `"}`
				if name == "helper" {
					args = `{"prompt":"read_thread ` + thread + `"}`
				}
				return &skein.Reaction{ToolCalls: []skein.ToolCall{{CallID: "c" + in.StepID, Name: name, Arguments: events.JSON(args)}}}, nil
			}
		}
		break
	}
	return skein.Answer("done"), nil
}

func (s *spies) made(d events.CreateThread) string {
	s.t.Helper()
	made, err := s.full.Send(s.t.Context(), "", d)
	s.must(err)
	return made.ThreadID
}

func react(text string) events.ReactThread { return events.ReactThread{Text: &text} }

// blocked begins a run of the server's own on the thread, which has every right, and returns when
// a tool of it waits. release lets it go on.
func (s *spies) blocked() (release func()) {
	s.t.Helper()
	wait := make(chan struct{})
	s.mu.Lock()
	s.wait = wait
	s.mu.Unlock()
	_, err := s.full.Send(s.t.Context(), s.own, react("wait now"))
	s.must(err)
	<-s.in
	return func() { close(wait) }
}

// leaked counts the events of the tenant that have the secret words: one is the secret itself.
func (s *spies) leaked() (n int) {
	s.t.Helper()
	s.skein.WaitIdle()
	all, err := s.full.Timeline(s.t.Context(), client.SubscribeOptions{History: true})
	s.must(err)
	for e, err := range all.All(s.t.Context()) {
		s.must(err)
		raw, err := json.Marshal(e.Data)
		s.must(err)
		if strings.Contains(string(raw), secretWords) {
			n++
		}
	}
	return n
}

// A run works with the rights of the credential that started it, and with fewer where others took
// part in it: whatever way a credential takes that is limited to a thread, no run reads another
// one for it. A run of the server's own does.
func TestRights_RunsReadWhatTheirStarterMay(t *testing.T) {
	s := newSpies(t)
	ctx := t.Context()
	limited := s.as(edge.Principal{Threads: []string{s.own}, Subject: "key:limited"})
	send := func(c *client.Client, d any) *events.Reply {
		t.Helper()
		reply, err := c.Send(ctx, s.own, d)
		s.must(err)
		return reply
	}
	read := react("read_thread key:secret")
	for _, way := range []struct {
		name string
		take func()
	}{
		{"a message", func() { send(limited, read) }},
		{"a call", func() {
			send(limited, events.QueueTool{Name: "read_thread", Arguments: events.JSON(`{"thread":"key:secret"}`)})
		}},
		{"a call of its own", func() {
			send(limited, events.QueueTool{Name: "read_thread", Arguments: events.JSON(`{"thread":"key:secret"}`), Once: true})
		}},
		{"a message that waits", func() {
			release := s.blocked()
			defer release()
			queued := read
			queued.Policy = events.Enqueue
			send(limited, queued)
		}},
		{"a message that interrupts", func() {
			release := s.blocked()
			defer release()
			queued := read
			queued.Policy = events.Interrupt
			send(limited, queued)
		}},
		{"a message that steers", func() {
			release := s.blocked()
			defer release()
			steering := read
			steering.Policy = events.Steer
			send(limited, steering)
		}},
		{"a call that joins a run", func() {
			release := s.blocked()
			defer release()
			send(limited, events.QueueTool{Name: "read_thread", Arguments: events.JSON(`{"thread":"key:secret"}`)})
		}},
		{"a message of another that it edits", func() {
			release := s.blocked()
			defer release()
			waits := react("hello")
			waits.Policy = events.Enqueue
			queued := send(s.full, waits)
			send(limited, events.EditQueued{QueuedID: queued.Result.QueuedID, Item: events.UserText("read_thread key:secret")})
		}},
		{"a draft", func() {
			release := s.blocked()
			defer release()
			send(limited, events.UpdateThread{Draft: new("read_thread key:secret"), AutoSubmitDraft: new(true)})
		}},
		{"a subagent", func() { send(limited, react("helper key:secret")) }},
		{"code of the server in its run", func() { send(limited, react("relay now")) }},
	} {
		way.take()
		if n := s.leaked(); n != 1 {
			t.Errorf("%s: the secret is in %d events, want its own alone", way.name, n)
		}
	}
	related, err := client.Read(ctx, s.full, events.ListRelationships{ThreadID: s.secret})
	if err != nil || len(related.Relationships) != 0 {
		t.Errorf("the secret thread has the relationships %+v, %v", related, err)
	}
	send(s.full, read)
	if n := s.leaked(); n == 1 {
		t.Error("a run of the server's own has not read the thread")
	}
}

// A credential that is limited to threads cannot change whose a thread is.
func TestRights_UserOfThreadStays(t *testing.T) {
	s := newStage(t)
	mine, _ := s.thread("ada", "")
	for what, p := range map[string]edge.Principal{"user": {User: "ada"}, "threads": {Threads: []string{mine}}} {
		c := s.as(p)
		for _, user := range []string{"bob", ""} {
			_, err := c.Send(t.Context(), mine, events.UpdateThread{UserID: &user})
			wantCode(t, what+" to "+user, err, events.Forbidden)
			sub, err := client.Sub("thread.update", events.UpdateThread{UserID: &user})
			s.must(err)
			_, err = c.Commit(t.Context(), mine, []events.SubCommand{sub})
			wantCode(t, what+" to "+user+" in a commit", err, events.Forbidden)
		}
	}
}

// A limited credential queues calls of the tools that the thread's agent lists, schedules no
// effect but the purge, and says nothing in the name of the system or the developer.
func TestRights_ToolsAndInstructions(t *testing.T) {
	s := newSpies(t)
	ctx := t.Context()
	note, err := s.full.Send(ctx, s.own, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.System, Content: events.JSON(`[{"type":"input_text","text":"be kind"}]`)}})
	s.must(err)
	release := s.blocked()
	defer release()
	waits := react("hello")
	waits.Policy = events.Enqueue
	queued, err := s.full.Send(ctx, s.own, waits)
	s.must(err)
	as := func(role events.Role) events.NewItem {
		return events.NewItem{Type: events.Message, Role: role, Content: events.JSON(`[{"type":"input_text","text":"obey"}]`)}
	}
	sub, err := client.Sub("item.create", events.CreateItem{Item: as(events.System)})
	s.must(err)
	limits := map[string]edge.Principal{
		"threads": {Threads: []string{s.own}}, "capabilities": {Can: []edge.Capability{edge.Read, edge.Write}},
		"threads and tools": {Threads: []string{s.own}, Can: []edge.Capability{edge.Read, edge.Write, edge.Tools}},
	}
	for what, p := range limits {
		c := s.as(p)
		said := map[string]any{
			"item.create": events.CreateItem{Item: as(events.System)}, "item.create developer": events.CreateItem{Item: as(events.Developer)},
			"message.add": events.AddMessage{Role: events.FromSystem, Content: new("obey")}, "thread.react": events.ReactThread{Item: new(as(events.System))},
			"instructions": events.ReactThread{Text: new("hi"), Settings: &events.RunSettings{Instructions: "obey"}},
			"queue.edit":   events.EditQueued{QueuedID: queued.Result.QueuedID, Item: as(events.System)}, "thread.commit": events.CommitThread{Commands: []events.SubCommand{sub}},
			"message.edit":   events.EditMessage{ItemID: note.Result.ItemID, Content: events.JSON(`[{"type":"input_text","text":"obey"}]`)},
			"message.update": events.UpdateMessage{MessageID: note.Result.ItemID, MessageUpdates: events.MessageUpdates{Content: new("obey")}},
		}
		if what == "capabilities" {
			said["thread.handoff"] = events.HandoffThread{Summary: "obey"}
		}
		if p.Can == nil || len(p.Can) == 2 {
			said["tool.queue"] = events.QueueTool{Name: "danger"}
			said["tool.queue of an agent"] = events.QueueTool{Name: "pair"}
			said["tool.queue with another agent"] = events.QueueTool{Name: "danger", AgentID: "pair"}
			said["effect.schedule"] = events.ScheduleEffect{Name: "later", DelayMs: new(int64(3600_000))}
		}
		for name, d := range said {
			_, err := c.Send(ctx, s.own, d)
			wantCode(t, what+": "+name, err, events.Forbidden)
		}
		may := map[string]any{
			"tool.queue": events.QueueTool{Name: "wait", Once: true}, "purge": events.ScheduleEffect{Name: events.PurgeEffect, DelayMs: new(int64(3600_000))},
			"item.create": events.CreateItem{Item: as(events.User)}, "an empty item": events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.System, Silent: true, Content: events.JSON(`[]`)}},
		}
		if len(p.Can) == 3 {
			may["tool.queue of another tool"] = events.QueueTool{Name: "danger", Once: true}
			may["effect.schedule"] = events.ScheduleEffect{Name: "later", DelayMs: new(int64(3600_000))}
		}
		for name, d := range may {
			if _, err := c.Send(ctx, s.own, d); err != nil {
				t.Errorf("%s: %s: %v", what, name, err)
			}
		}
	}
	for name, d := range map[string]any{"tool.queue": events.QueueTool{Name: "danger", Once: true}, "item.create": events.CreateItem{Item: as(events.Developer)}} {
		if _, err := s.full.Send(ctx, s.own, d); err != nil {
			t.Errorf("server code: %s: %v", name, err)
		}
	}
}

// A credential that is limited to threads has their agents do no more than these list: it picks
// another agent by no command, and has no run call a tool that the agent does not list.
func TestRights_AgentOfThreadStays(t *testing.T) {
	s := newSpies(t)
	ctx := t.Context()
	_, err := s.full.Send(ctx, "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.AgentKind, Definition: events.JSON(`{"name":"armed","type":"ai_human","reactor":"reader","tools":["danger"]}`)},
		{Kind: events.PolicyKind, Definition: events.JSON(`{"name":"modes","modes":{"armed":"armed","usual":"reader"}}`)},
	}})
	s.must(err)
	release := s.blocked()
	defer release()
	danger := events.NewItem{Type: events.ActionExecute, Content: events.JSON(`{"callId":"c9","name":"danger","arguments":{}}`)}
	sub, err := client.Sub("agent.assign", events.AssignAgent{AgentID: "armed"})
	s.must(err)
	idle := s.made(events.CreateThread{AgentID: "reader"})
	bare := s.made(events.CreateThread{})
	mode := s.made(events.CreateThread{AgentID: "armed"})
	_, err = s.full.Send(ctx, mode, events.UpdateThread{AgentMode: new("usual")})
	s.must(err)
	for _, way := range []struct {
		name, thread string
		data         any
	}{
		{"agent.assign", s.own, events.AssignAgent{AgentID: "armed"}},
		{"agent.assign in a commit", s.own, events.CommitThread{Commands: []events.SubCommand{sub}}},
		{"agent.assign without an agent", bare, events.AssignAgent{AgentID: "armed"}},
		{"thread.react", idle, events.ReactThread{Text: new("hi"), AgentID: "armed"}},
		{"thread.react that waits", s.own, events.ReactThread{Text: new("hi"), AgentID: "armed", Policy: events.Enqueue}},
		{"thread.react without an agent", bare, events.ReactThread{Text: new("hi"), AgentID: "armed"}},
		{"thread.react past the mode", mode, events.ReactThread{Text: new("hi"), AgentID: "armed"}},
		{"thread.react with a call", idle, events.ReactThread{Item: &danger}},
		{"thread.react with a call that waits", s.own, events.ReactThread{Item: &danger, Policy: events.Enqueue}},
		{"thread.react with a call that steers", s.own, events.ReactThread{Item: &danger, Policy: events.Steer}},
		{"tools of the provider", idle, events.ReactThread{Text: new("hi"), Settings: &events.RunSettings{Params: events.JSON(`{"tools":[{"type":"web_search"}]}`)}}},
		{"tool.queue", idle, events.QueueTool{Name: "wait", AgentID: "armed"}},
		{"another mode", s.own, events.UpdateThread{AgentMode: new("armed")}},
		{"no mode", mode, events.UpdateThread{AgentMode: new("")}},
		{"thread.fork", idle, events.ForkThread{Version: new(int64(1))}},
		{"thread.handoff", idle, events.HandoffThread{AgentID: "armed", Summary: "go on"}},
		{"effect.schedule", idle, events.ScheduleEffect{Name: "later", DelayMs: new(int64(3600_000))}},
	} {
		_, err := s.as(edge.Principal{Threads: []string{way.thread}}).Send(ctx, way.thread, way.data)
		wantCode(t, way.name, err, events.Forbidden)
	}
	threads := []string{s.own, idle, bare, mode}
	limited, armed := edge.Principal{Threads: threads}, edge.Principal{Threads: threads, Can: []edge.Capability{edge.Read, edge.Write, edge.Tools}}
	for _, way := range []struct {
		name, thread string
		by           edge.Principal
		data         any
	}{
		{"its agent", s.own, limited, events.ReactThread{Text: new("hi"), AgentID: "reader", Policy: events.Enqueue}},
		{"the agent of its mode", mode, limited, events.ReactThread{Text: new("hi"), AgentID: "reader"}},
		{"the same agent", s.own, limited, events.AssignAgent{AgentID: "reader"}},
		{"the same mode", mode, limited, events.UpdateThread{AgentMode: new("usual"), Title: new("it")}},
		{"other params", s.own, limited, events.ReactThread{Text: new("hi"), Policy: events.Enqueue, Settings: &events.RunSettings{Params: events.JSON(`{"top_p":0.5}`)}}},
		{"with tools: agent.assign", idle, armed, events.AssignAgent{AgentID: "armed"}},
		{"with tools: thread.react", bare, armed, events.ReactThread{Text: new("hi"), AgentID: "armed"}},
		{"with tools: a mode", mode, armed, events.UpdateThread{AgentMode: new("armed")}},
	} {
		if _, err := s.as(way.by).Send(ctx, way.thread, way.data); err != nil {
			t.Errorf("%s: %v", way.name, err)
		}
	}
}
