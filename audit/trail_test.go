package audit

import (
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

func (h *house) trail(id string, o TrailOptions) []TrailEntry {
	h.t.Helper()
	var out []TrailEntry
	if err := Trail(h.ctx, h.log, "acme", id, o, func(e TrailEntry) error {
		out = append(out, e)
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// by does a command in somebody's name.
func (h *house) by(actor, command, body string) *events.Reply {
	h.t.Helper()
	return h.do(command, `{"actor":"`+actor+`",`+strings.TrimPrefix(body, "{"))
}

// A trail tells of each event who did it, by which command, and what was before
// and after.
func TestTrail(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.by("ann", "message.edit", `{"commandId":"cmd-edit","threadId":"`+threadOne+`","data":{"itemId":"itm_u1","content":[{"type":"input_text","text":"help"}]}}`)
	h.by("bob", "thread.status", `{"threadId":"`+threadOne+`","data":{"to":"streaming","reason":"work"}}`)
	h.by("bob", "thread.commit", `{"threadId":"`+threadOne+`","data":{"commands":[{"command":"thread.update","data":{"title":"two"}},{"command":"message.delete","data":{"itemId":"itm_u1"}}]}}`)

	all := h.trail(threadOne, TrailOptions{})
	if len(all) != 14 {
		t.Fatalf("%d entries", len(all))
	}
	for i, e := range all {
		if e.Version != int64(i+1) || e.Seq == 0 || e.Command == nil || e.Command.ID == "" || e.Event == "" || len(e.Data) == 0 {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	made := all[0]
	if made.Command.Name != "thread.create" || len(made.Changes) != 1 || made.Changes[0].Model != "threads" || made.Changes[0].What != Added {
		t.Errorf("%+v", made)
	}
	if doc := string(made.Changes[0].After); strings.Contains(doc, `"seq"`) || !strings.Contains(doc, `"title":"one"`) {
		t.Errorf("the thread as it was made: %s", doc)
	}
	edit := all[10]
	if edit.Actor != "ann" || edit.Command.ID != "cmd-edit" || edit.Command.Name != "message.edit" || len(edit.Changes) != 1 || edit.Changes[0].ID != "itm_u1" {
		t.Fatalf("%+v", edit)
	}
	want := map[string]string{"/content/0/text": `"hello" "help"`, "/edited": " true"}
	for _, f := range edit.Changes[0].Fields {
		if want[f.Path] != string(f.Before)+" "+string(f.After) {
			t.Errorf("%s: %s became %s", f.Path, f.Before, f.After)
		}
		delete(want, f.Path)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v", want)
	}
	moved := all[11]
	if moved.Actor != "bob" || moved.Move == nil || *moved.Move != (TrailMove{Entity: "thread", From: "open", To: "streaming", Reason: "work"}) {
		t.Errorf("%+v", moved)
	}
	title, gone := all[12], all[13]
	if title.Command.Index != 1 || gone.Command.Index != 2 || title.Command.Name != "thread.update" || gone.Command.ID != title.Command.ID ||
		len(gone.Changes) != 1 || gone.Changes[0].What != Removed || !strings.Contains(string(gone.Changes[0].Before), "help") {
		t.Errorf("%+v\n%+v", title, gone)
	}
	if ex := all[4]; ex.Type != events.ExecutionCreatedType || ex.Command.Name != "execution.create" {
		t.Errorf("%+v", ex)
	}

	for name, c := range map[string]struct {
		o    TrailOptions
		want int
	}{
		"by actor":     {TrailOptions{Actor: "bob"}, 3},
		"by type":      {TrailOptions{Types: []events.Type{"thread.status.changed"}}, 3},
		"by entity":    {TrailOptions{Types: []events.Type{"thread.*", "step.*"}}, 6},
		"by execution": {TrailOptions{Execution: "exe_1"}, 5},
		"by versions":  {TrailOptions{From: 3, To: 5}, 3},
		"by both":      {TrailOptions{Actor: "bob", Types: []events.Type{"message.*"}}, 1},
		"of nobody":    {TrailOptions{Actor: "eve"}, 0},
	} {
		if got := h.trail(threadOne, c.o); len(got) != c.want {
			t.Errorf("%s: %d entries, want %d: %+v", name, len(got), c.want, got)
		}
	}
}

// Names that stand for other threads, or for none, are refused.
func TestTrailRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	for id, code := range map[string]events.Code{"*": events.InvalidRequest, ">": events.InvalidRequest, "T-x.y": events.InvalidRequest, threadTwo: events.NotFound} {
		tell := func(TrailEntry) error { return errors.New("told") }
		if err := Trail(h.ctx, h.log, "acme", id, TrailOptions{}, tell); !errors.Is(err, &events.Error{Code: code}) {
			t.Errorf("trail of %s: %v", id, err)
		}
		if _, err := DiffThread(h.ctx, h.log, "acme", id, TrailPoint{Start: true}, TrailPoint{}); !errors.Is(err, &events.Error{Code: code}) {
			t.Errorf("diff of %s: %v", id, err)
		}
	}
	if _, err := ResolveThread(h.ctx, h.log, "acme", "key:nobody's"); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Error(err)
	}
}

// A difference is what lies between two points, by version and by time.
func TestDiff(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	before := h.trail(threadOne, TrailOptions{})
	h.do("thread.update", `{"threadId":"`+threadOne+`","data":{"title":"two","metadata":{"a/b":1}}}`)
	h.do("message.delete", `{"threadId":"`+threadOne+`","data":{"itemId":"itm_u1"}}`)

	span, err := DiffThread(h.ctx, h.log, "acme", threadOne, TrailPoint{Version: 10}, TrailPoint{})
	if err != nil || span.From != 10 || span.To != 12 {
		t.Fatal(span, err)
	}
	got := map[string]string{}
	for _, c := range span.Changes {
		got[c.Model+" "+c.ID] = c.What
		for _, f := range c.Fields {
			got[c.Model+f.Path] = string(f.Before) + " " + string(f.After)
		}
	}
	for name, want := range map[string]string{
		"threads ": Changed, "threads/title": `"one" "two"`, "threads/metadata": ` {"a/b":1}`, "items itm_u1": Removed,
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "index") || strings.HasSuffix(name, "/version") || strings.HasSuffix(name, "/seq") {
			t.Errorf("%s is told", name)
		}
	}
	at, err := events.ParseTime(before[9].Time)
	if err != nil {
		t.Fatal(err)
	}
	timed, err := DiffThread(h.ctx, h.log, "acme", threadOne, TrailPoint{Time: at}, TrailPoint{Version: 11})
	if err != nil || timed.From != 10 || timed.To != 11 || len(timed.Changes) != 1 {
		t.Errorf("%+v, %v", timed, err)
	}
	whole, err := DiffThread(h.ctx, h.log, "acme", threadOne, TrailPoint{Start: true}, TrailPoint{Version: 1})
	if err != nil || whole.From != 0 || whole.To != 1 || len(whole.Changes) != 1 || whole.Changes[0].What != Added {
		t.Errorf("%+v, %v", whole, err)
	}
	same, err := DiffThread(h.ctx, h.log, "acme", threadOne, TrailPoint{Version: 5}, TrailPoint{Version: 5})
	if err != nil || len(same.Changes) != 0 {
		t.Errorf("%+v, %v", same, err)
	}
	if _, err := DiffThread(h.ctx, h.log, "acme", threadOne, TrailPoint{Version: 1}, TrailPoint{Version: 99}); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
		t.Error(err)
	}
}
