package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// summarizing is a run that writes the summary for a handoff of a thread of one message.
func summarizing(t *testing.T) (*work, string) {
	k := another(t, threadID)
	k.do(message("itm_1", "a long story"))
	c := k.command(events.HandoffThread{AgentID: "writer", Key: "next", Comment: "for tomorrow"})
	child := HandoffOf(c)
	if _, err := grouped(t, c, k); err != nil {
		t.Fatal(err)
	}
	w := &work{story: k, execution: k.state.head.Active}
	w.claim()
	return w, child
}

// end ends a step of a run with a summary for a thread.
func (w *work) summary(text, child string, change func(*ReactStep)) *Command {
	d := w.reaction()
	d.Summary, d.HandoffTo = text, child
	if change != nil {
		change(&d)
	}
	return w.command(d)
}

// A thread is handed off without a summary only if somebody can write one.
func TestHandoff_NeedsAWriter(t *testing.T) {
	for name, c := range map[string]struct {
		before []any
		writes string // the agent of the tenant's policy
		want   events.Code
	}{
		"nobody":     {before: []any{message("itm_1", "x")}, want: events.InvalidRequest},
		"a policy's": {before: []any{message("itm_1", "x")}, writes: "writer"},
		"no message": {writes: "writer", want: events.InvalidRequest},
		"a run":      {before: []any{message("itm_1", "x"), events.ReactThread{Text: to("hello"), AgentID: "triage"}}, writes: "writer", want: events.VersionConflict},
	} {
		k := another(t, threadID)
		for _, d := range c.before {
			k.do(d)
		}
		cmd := k.command(events.HandoffThread{})
		cmd.Writes = c.writes
		made, err := grouped(t, cmd, k)
		if c.want != "" {
			if events.AsError(err).Code != c.want {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || k.state.Status != events.ThreadStreaming || len(made) == 0 {
			t.Errorf("%s: %v, the thread is %s", name, err, k.state.Status)
		}
	}
}

// A run that writes a summary ends with it, and with nothing else; its thread is created then.
func TestHandoff_EndsWithTheSummary(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		change  func(*ReactStep)
		deleted bool
		refused string
	}{
		"a summary":           {text: "It ended well."},
		"of a deleted":        {text: "It ended well.", deleted: true},
		"another thread":      {text: "It ended well.", change: func(d *ReactStep) { d.HandoffTo = otherID }, refused: "and nothing else"},
		"no thread":           {text: "It ended well.", change: func(d *ReactStep) { d.HandoffTo = "" }, refused: "and nothing else"},
		"a call":              {text: "It ended well.", change: func(d *ReactStep) { d.Calls = []events.ToolCall{{CallID: "c", Name: "n", Arguments: raw(`{}`)}} }, refused: "and nothing else"},
		"no summary":          {text: " ", refused: "needs a text"},
		"the longest summary": {text: strings.Repeat("s", events.MaxSummary)},
	} {
		w, child := summarizing(t)
		if c.deleted {
			w.do(events.DeleteMessage{ItemID: "itm_1"})
		}
		cmd := w.summary(c.text, child, c.change)
		var made []events.Event
		var err error
		if cmd.Groups() {
			made, err = grouped(t, cmd, w.story)
		} else {
			made, err = w.try(cmd)
		}
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v, want %q", name, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		created, related := false, false
		for _, e := range made {
			switch d := e.Data.(type) {
			case events.ThreadCreated:
				created = d.ID == child && d.AgentID == "writer" && *d.Key == "next"
			case events.RelationshipAdded:
				if d.Role == events.ParentRole {
					related = d.Type == events.HandoffRelation && d.Comment == "for tomorrow" && (d.ItemID == "itm_1") != c.deleted
				}
			}
		}
		if !created || !related {
			t.Errorf("%s: created %v, related %v: %v", name, created, related, made)
		}
	}
}

// The request of a run that writes a summary names another thread, and nothing else to do.
func TestHolds_Handoffs(t *testing.T) {
	k := another(t, threadID)
	k.do(message("itm_1", "a long story"))
	c := k.command(events.HandoffThread{AgentID: "writer"})
	made, err := grouped(t, c, k)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range made {
		requested, ok := e.Data.(events.RunRequested)
		if !ok {
			continue
		}
		for name, f := range map[string]struct {
			change func(d *events.RunRequested)
			says   string
		}{
			"itself":    {func(d *events.RunRequested) { d.Handoff.ThreadID = threadID }, "cannot be handed off"},
			"no thread": {func(d *events.RunRequested) { d.Handoff.ThreadID = "T-1" }, "cannot be handed off"},
			"calls":     {func(d *events.RunRequested) { d.Calls = []events.ToolCall{{CallID: "c", ItemID: "itm_1"}} }, "does nothing else"},
			"a parent":  {func(d *events.RunRequested) { d.Parent = &events.Parent{ThreadID: otherID} }, "does nothing else"},
			"once":      {func(d *events.RunRequested) { d.Once = true }, "does nothing else"},
			"a retry":   {func(d *events.RunRequested) { d.RetryOf = "exe_0" }, ""},
		} {
			fresh := another(t, threadID)
			fresh.do(message("itm_1", "a long story"))
			forged := append([]events.Event(nil), made...)
			d, h := requested, *requested.Handoff
			d.Handoff = &h
			f.change(&d)
			forged[i].Data = d
			if err := holds(fresh.state, forged); err == nil || !strings.Contains(err.Error(), f.says) {
				t.Errorf("a handoff with %s: %v", name, err)
			}
			if err := holds(fresh.state, made); err != nil {
				t.Fatalf("the handoff itself: %v", err)
			}
		}
	}
	sub := k.after(events.SubthreadAddedType, threadID, "", events.SubthreadAdded{ThreadID: otherID})
	holdsBut(t, k, sub, anotherSubject("its subject should be"),
		the("itself", "cannot work for it", func(d *events.SubthreadAdded) { d.ThreadID = threadID }),
		the("no thread", "cannot work for it", func(d *events.SubthreadAdded) { d.ThreadID = "T-1" }))
}
