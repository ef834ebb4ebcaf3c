package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// drafting is a thread at work with a draft that is to be sent by itself.
func drafting(t *testing.T, draft string) *work {
	t.Helper()
	w := atWork(t)
	w.do(events.UpdateThread{Draft: &draft, AutoSubmitDraft: to(true)})
	return w
}

// AM-13, AM-14, AM-118: when a run has ended and nothing waits, the draft is sent in the commit
// that ends the run, as a message that the user typed; then it and its flag are cleared.
func TestDraft_SentWhenTheRunEnds(t *testing.T) {
	w := drafting(t, " And \"the\" invoice?\n")
	made := w.do(w.reaction())
	wantKinds(t, made, "part.created item.created step.status.changed item.status.changed execution.status.changed thread.finished "+
		"context.status.changed thread.status.changed profile.changed context.resolved item.created thread.status.changed context.status.changed "+
		"execution.created run.requested")
	want(t, made[8:9], fact{events.ProfileChangedType, threadID, "", events.ProfileChanged{Draft: to(""), AutoSubmitDraft: to(false)}})
	item := made[10].Data.(events.ItemCreated)
	if item.Role != events.User || item.Type != events.Message || item.Silent || string(item.Content) != `[{"type":"input_text","text":" And \"the\" invoice?\n"}]` {
		t.Errorf("the message is %+v", item)
	}
	if asked := made[14].Data.(events.RunRequested); asked.AgentID != "triage" {
		t.Errorf("it asks %+v", asked)
	}
	w = &work{story: w.story, execution: made[14].Subject}
	w.claim()
	if made := w.do(w.reaction()); strings.Contains(kinds(made), "run.requested") {
		t.Errorf("it is sent twice: %s", kinds(made))
	}
	if p := w.state.Profile; p.Draft != "" || p.Submit {
		t.Errorf("it stays: %+v", p)
	}
}

// What is not to be sent stays as it is.
func TestDraft_Stays(t *testing.T) {
	failed := func(w *work) any {
		return FailRun{ExecutionID: w.execution, Token: w.run().Token, ErrorText: "no model"}
	}
	completed := func(w *work) any { return w.reaction() }
	for name, c := range map[string]struct {
		draft string
		auto  bool
		setup any
		end   func(*work) any
	}{
		"it is empty":                 {"", true, nil, completed},
		"it is only space":            {" \n\t ", true, nil, completed},
		"it is not to be sent":        {"x", false, nil, completed},
		"the run failed":              {"x", true, nil, failed},
		"the run was cancelled":       {"x", true, events.CancelRun{}, completed},
		"its context was closed":      {"x", true, events.SetContextStatus{To: events.ContextClosed}, completed},
		"no agent has its mode":       {"x", true, events.UpdateThread{AgentMode: to("smart")}, completed},
		"the thread is being deleted": {"x", true, nil, func(*work) any { return events.DeleteThread{} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := atWork(t)
			w.do(events.UpdateThread{Draft: &c.draft, AutoSubmitDraft: &c.auto})
			if c.setup != nil {
				w.do(c.setup)
			}
			cmd := w.command(c.end(w))
			cmd.Modes = map[string]string{"rush": "fast"}
			made, err := w.try(cmd)
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(made); strings.Contains(got, "profile.changed") || strings.Contains(got, "run.requested") || !strings.Contains(got, "execution.status.changed") {
				t.Errorf("it made %s", got)
			}
		})
	}
}

// What waits goes first: the draft is sent when the queue is empty. The draft of a thread at
// rest waits for the end of the next run.
func TestDraft_AfterTheQueue(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{})
	wantKinds(t, k.do(events.UpdateThread{Draft: to("third"), AutoSubmitDraft: to(true)}), "profile.changed")
	k.do(events.ReactThread{Text: to("first"), AgentID: "billing", ExecutionID: "exe_a", ReactionItemID: "itm_a"})
	k.do(events.ReactThread{Text: to("second"), AgentID: "triage", ExecutionID: "exe_b"})
	w := &work{story: k, execution: "exe_a"}
	w.claim()
	if made := w.do(w.reaction()); strings.Contains(kinds(made), "profile.changed") || !strings.Contains(kinds(made), "queue.drained") {
		t.Fatalf("after the first: %s", kinds(made))
	}
	w = &work{story: k, execution: "exe_b"}
	w.claim()
	made := w.do(w.reaction())
	last := made[len(made)-1]
	if d, ok := last.Data.(events.RunRequested); !ok || d.AgentID != "triage" { // the thread has none: that of the run that ended
		t.Errorf("after the second: %s, %+v", kinds(made), last.Data)
	}
}

// A run that was stopped has ended well: what the user wrote meanwhile is sent.
func TestDraft_SentAfterAStop(t *testing.T) {
	w := drafting(t, "x")
	w.do(events.StopRun{})
	if made := w.do(w.reaction()); !strings.HasSuffix(kinds(made), "execution.created run.requested") {
		t.Errorf("it made %s", kinds(made))
	}
}

// AM-15, AM-118: the thread's mode picks the agent by the tenant's mapping, unless the message
// names one, also of a message that waits and of a draft.
func TestMode_PicksTheAgent(t *testing.T) {
	modes := map[string]string{"rush": "fast", "smart": "deep"}
	react := func(k *story, modes map[string]string, d events.ReactThread) ([]events.Event, *events.Error) {
		d.Text = to("hello")
		c := k.command(d)
		c.Modes = modes
		made, err := k.try(c)
		if err != nil {
			return nil, events.AsError(err)
		}
		return made, nil
	}
	for name, c := range map[string]struct {
		agent, mode string
		modes       map[string]string
		d           events.ReactThread
		want        string
	}{
		"by the mode":                         {"triage", "rush", modes, events.ReactThread{}, "fast"},
		"by the mode, without one in charge":  {"", "smart", modes, events.ReactThread{}, "deep"},
		"by name":                             {"triage", "rush", modes, events.ReactThread{AgentID: "billing"}, "billing"},
		"by name in an unknown mode":          {"triage", "lazy", modes, events.ReactThread{AgentID: "billing"}, "billing"},
		"in charge: there is no mode":         {"triage", "", modes, events.ReactThread{}, "triage"},
		"in charge: the tenant has no policy": {"triage", "rush", nil, events.ReactThread{}, "triage"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newStory(t)
			k.do(events.CreateThread{AgentID: c.agent})
			k.do(events.UpdateThread{AgentMode: &c.mode})
			made, err := react(k, c.modes, c.d)
			if err != nil {
				t.Fatal(err)
			}
			if d := made[len(made)-1].Data.(events.RunRequested); d.AgentID != c.want {
				t.Errorf("it asks %s, want %s", d.AgentID, c.want)
			}
			k.do(events.UpdateThread{AgentMode: to("smart"), Draft: to("x"), AutoSubmitDraft: to(true)})
			if c.modes == nil {
				return
			}
			if made, err = react(k, c.modes, events.ReactThread{}); err != nil || made[0].Data.(events.QueuePushed).AgentID != "deep" {
				t.Errorf("what waits: %v, %v", made, err)
			}
		})
	}

	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.UpdateThread{AgentMode: to("lazy")})
	_, err := react(k, modes, events.ReactThread{})
	wantRefusal(t, err, events.InvalidRequest, events.ErrorDetails{Path: "/data/agentId"})
	if !strings.Contains(err.Message, `agentMode is "lazy"`) || !strings.Contains(err.Message, "it has: rush, smart") {
		t.Errorf("the refusal says: %s", err.Message)
	}

	w := drafting(t, "x")
	w.do(events.UpdateThread{AgentMode: to("smart")})
	cmd := w.command(w.reaction())
	cmd.Modes = modes
	made, failed := w.try(cmd)
	if failed != nil || made[len(made)-1].Data.(events.RunRequested).AgentID != "deep" {
		t.Errorf("the draft: %v, %v", kinds(made), failed)
	}
}

// titled makes a command of a tenant whose threads get titles.
func (k *story) titled(data ...any) *Command {
	c := k.command(data...)
	c.Titles = &Titles{}
	return c
}

// finished ends the run of a work as a worker does, of a tenant whose threads get titles.
func (w *work) finished() []events.Event {
	w.t.Helper()
	made, err := w.try(w.titled(w.reaction()))
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// titles returns the titles among events, and from what they were made.
func titles(made []events.Event) (list []string) {
	for i := range made {
		if d, ok := made[i].Data.(events.ProfileChanged); ok && d.Title != nil {
			list = append(list, string(d.TitleFrom)+":"+*d.Title)
		}
	}
	return list
}

// AM-11, AM-111: after the first answer an untitled thread has the beginning of its first message
// as its title, in the commit that ends the run; later runs leave it as it is.
func TestTitle_OfTheFirstMessage(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("triage")
	made := w.finished()
	wantKinds(t, made, "part.created item.created step.status.changed profile.changed item.status.changed execution.status.changed thread.finished "+
		"context.status.changed thread.status.changed")
	if got := titles(made); len(got) != 1 || got[0] != "message:hello" {
		t.Errorf("the titles are %q", got)
	}
	if got := titles(k.reacting("triage").finished()); got != nil {
		t.Errorf("the second run sets %q", got)
	}
}

// A title that somebody set stays, also one that was set or cleared during the run, and what is
// no conversation of a user has none.
func TestTitle_Stays(t *testing.T) {
	silent := events.NewItem{Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":"hidden"}]`), Silent: true}
	blank := events.NewItem{Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":" \n\u202e"},{"type":"input_image"}]`)}
	said := events.NewItem{ID: "itm_said", Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":"first"}]`)}
	again := raw(`[{"type":"input_text","text":"second"}]`)
	for name, c := range map[string]struct {
		create events.CreateThread
		item   *events.NewItem
		during any
		off    bool
		want   string
	}{
		"it has one":                        {create: events.CreateThread{Title: "mine"}},
		"one is set during the run":         {during: events.UpdateThread{Title: to("mine")}},
		"it is cleared during the run":      {during: events.UpdateThread{Title: to("")}},
		"it works for another thread":       {create: events.CreateThread{MainThreadID: otherID}},
		"the tenant has titles off":         {off: true},
		"the message is silent":             {item: &silent},
		"the message shows no text":         {item: &blank},
		"the message was deleted":           {item: &said, during: events.DeleteMessage{ItemID: "itm_said"}},
		"the message was silenced":          {item: &said, during: events.EditMessage{ItemID: "itm_said", Silent: to(true)}},
		"the message was edited":            {item: &said, during: events.EditMessage{ItemID: "itm_said", Content: again}, want: "message:second"},
		"another message of the run":        {item: &silent, during: events.ReactThread{Text: to("aloud"), Policy: events.Steer}, want: "message:aloud"},
		"the agent was changed in the run":  {item: &said, during: events.AssignAgent{AgentID: "billing"}, want: "message:first"},
		"what a run before it failed to do": {item: &said, during: events.CancelRun{}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newStory(t)
			c.create.AgentID = "triage"
			k.do(c.create)
			if c.item == nil {
				c.item = to(events.UserText("hello"))
			}
			k.do(events.ReactThread{Item: c.item, ExecutionID: "exe_a"})
			w := &work{story: k, execution: "exe_a"}
			w.claim()
			if c.during != nil {
				k.do(c.during)
			}
			var made []events.Event
			if c.off {
				made = w.do(w.reaction())
			} else {
				made = w.finished()
				if w.state.Active() != "" { // a message that steered it is answered
					made = w.finished()
				}
			}
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if got := titles(made); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("the titles are %q, want %q", got, want)
			}
		})
	}
}

// How threads get titles is asked for only where one may be given.
func TestNeeds_Titles(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	needs := func(data any) bool { return NewDraft(k.state).Needs(k.command(data)).Titles }
	if needs(events.StopRun{}) {
		t.Error("a thread without a message needs titles")
	}
	w := k.reacting("triage")
	for _, data := range []any{w.reaction(), w.results(), FailRun{}, ClaimRun{}, ParkRun{}, events.StopRun{}} {
		if !needs(data) {
			t.Errorf("%T needs none", data)
		}
	}
	if needs(events.ReactThread{Text: to("x"), Policy: events.Interrupt}) {
		t.Error("a message needs titles")
	}
	k.do(events.UpdateThread{Title: to("mine")})
	if needs(w.reaction()) {
		t.Error("a thread with a title needs titles")
	}
}

// AM-90 AM-91 AM-92: a skill is active once for each name; the first arguments stay, and another
// activation makes no event, be it a caller's or one of a call of the model.
func TestSkill_ActivatedOnce(t *testing.T) {
	w := atWork(t)
	activate := func(d events.ActivateSkill) []events.Event {
		t.Helper()
		c := w.command(d)
		c.Skills = map[string]bool{"refunds": true, "orders": true}
		made, err := w.try(c)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	want(t, activate(events.ActivateSkill{Name: "refunds", Arguments: raw(`{"a":1}`)}),
		fact{events.SkillActivatedType, threadID, "", events.SkillActivated{Name: "refunds", Arguments: raw(`{"a":1}`)}})
	if made := activate(events.ActivateSkill{Name: "refunds", Arguments: raw(`{"a":2}`)}); len(made) > 0 {
		t.Errorf("again: %s", kinds(made))
	}
	wantRefusal(t, w.refuse(events.ActivateSkill{Name: "poems"}), events.NotFound, events.ErrorDetails{Entity: "skill", ID: "poems"})
	large := raw(`{"x":"` + strings.Repeat("x", events.MaxSkillArguments) + `"}`)
	if err := w.refuse(events.ActivateSkill{Name: "refunds", Arguments: large}); err.Code != events.PayloadTooLarge {
		t.Errorf("large arguments: %v", err)
	}

	w.do(w.reaction("call_1", "call_2", "call_3"))
	end := w.results("call_1", "call_2", "call_3")
	end.Results[0].Skill = &events.ActivateSkill{Name: "orders", Arguments: raw(`{"b":1}`)}
	end.Results[1].Skill = &events.ActivateSkill{Name: "orders"}
	end.Results[2].Skill, end.Results[2].IsError = &events.ActivateSkill{Name: "poems"}, true
	var active []events.Event
	for _, e := range w.do(end) {
		if e.Type == events.SkillActivatedType {
			active = append(active, e)
		}
	}
	want(t, active, fact{events.SkillActivatedType, threadID, "exe_a", events.SkillActivated{Name: "orders", Arguments: raw(`{"b":1}`)}})
}
