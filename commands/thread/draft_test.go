package thread

import (
	"bytes"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A draft takes commands one after another, shows what they did, and leaves the
// state below alone until it is applied.
func TestDraft_LeavesItsBaseUnchanged(t *testing.T) {
	k := begun(t)
	before := encoded(t, k.state)
	d := NewDraft(k.state)
	first, err := d.Do(k.command(events.SetThreadStatus{To: events.ThreadStreaming}))
	if err != nil {
		t.Fatal(err)
	}
	refused := k.command(events.CreateContext{ID: "ctx_a"}, events.SetThreadStatus{To: events.ThreadStreaming})
	if _, err := d.Do(refused); events.AsError(err).Code != events.IllegalTransition {
		t.Fatalf("it was to be refused on what the draft has done: %v", err)
	}
	if _, there := d.layer.context("ctx_a"); there || len(d.Events()) != 1 || d.layer.Version != k.state.Version+1 {
		t.Errorf("a refused command left %d events, version %d", len(d.Events()), d.layer.Version)
	}
	second, err := d.Do(k.command(events.SetThreadStatus{To: events.ThreadClosed}, message("itm_a", "x")))
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 1 || len(second) != 2 || len(d.Events()) != 3 || d.layer.Status != events.ThreadClosed {
		t.Errorf("%d and %d events, %d in all, thread %s", len(first), len(second), len(d.Events()), d.layer.Status)
	}
	if !bytes.Equal(before, encoded(t, k.state)) {
		t.Error("the state below has changed")
	}
	commit := k.store(d)
	if k.state.Version != commit.Version || k.state.Status != events.ThreadClosed || k.state.Seq != commit.Seq || k.state.Chain != commit.Chain {
		t.Errorf("the state is at version %d, commit %d", k.state.Version, k.state.Seq)
	}
	for _, id := range []string{first[0].CommandID, second[0].CommandID} {
		if seq, ok := k.state.Receipt(id); !ok || seq != commit.Seq {
			t.Errorf("the receipt of %s: %d %v", id, seq, ok)
		}
	}
	if _, ok := k.state.Receipt(refused.ID); ok {
		t.Error("a refused command has a receipt")
	}
}

// A draft that is thrown away costs nothing.
func TestDraft_MayBeDropped(t *testing.T) {
	k := begun(t)
	before := encoded(t, k.state)
	c := k.command(turn()...)
	for range 3 {
		made, err := NewDraft(k.state).Do(c)
		if err != nil || len(made) != 12 {
			t.Fatalf("%d events, %v", len(made), err)
		}
	}
	if !bytes.Equal(before, encoded(t, k.state)) {
		t.Error("the state has changed")
	}
}

// Content that came in a large commit does not keep the commit in memory.
func TestDraft_CopiesContent(t *testing.T) {
	body := []byte(`{"content":{"n":1},"filler":"................"}`)
	content := body[len(`{"content":`):len(`{"content":{"n":1}`)]
	k := begun(t)
	k.do(events.SetContext{Content: content})
	copy(body, bytes.Repeat([]byte("x"), len(body)))
	if c, _ := k.state.context(k.state.ContextID()); string(c.Content) != `{"n":1}` {
		t.Errorf("the content is %s", c.Content)
	}
}

// What a command is about is read off its first part; one without parts is about
// nothing.
func TestCommand_SubjectOfFirstPart(t *testing.T) {
	for name, c := range map[string]struct {
		parts                []any
		creates, tenant, dry bool
	}{
		"nothing":          {nil, false, false, false},
		"a new thread":     {[]any{events.CreateThread{}, events.UpdateThread{}}, true, false, false},
		"a resolved one":   {[]any{events.ResolveThread{}}, true, false, false},
		"a change":         {[]any{events.UpdateThread{}, events.CreateThread{}}, false, false, false},
		"definitions":      {[]any{events.ApplyDefinitions{}}, false, true, false},
		"definitions, dry": {[]any{events.ApplyDefinitions{DryRun: true}}, false, true, true},
	} {
		var cmd Command
		for _, data := range c.parts {
			cmd.Parts = append(cmd.Parts, Part{Data: data})
		}
		if cmd.Creates() != c.creates || cmd.OfTenant() != c.tenant || cmd.Dry() != c.dry {
			t.Errorf("%s: creates %v, of the tenant %v, dry %v", name, cmd.Creates(), cmd.OfTenant(), cmd.Dry())
		}
	}
}
