package runtime

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
)

// titlesBy is the definitions of a tenant whose titles an agent writes.
type titlesBy struct {
	commands.Definitions
	agent atomic.Pointer[string]
}

func newTitlesBy(agent string) *titlesBy {
	d := &titlesBy{}
	d.agent.Store(&agent)
	return d
}

func (d *titlesBy) Titles(context.Context, string) (*thread.Titles, error) {
	return &thread.Titles{Agent: *d.agent.Load()}, nil
}

func (d *titlesBy) Policy(context.Context, string, string) (events.Policy, error) { return "", nil }

// titlesOf returns the titles that a thread has had, with their sources.
func titlesOf(all []events.Event) string {
	var list []string
	for _, e := range all {
		if d, ok := e.Data.(events.ProfileChanged); ok && d.Title != nil {
			list = append(list, string(d.TitleFrom)+":"+*d.Title)
		}
	}
	return strings.Join(list, " ")
}

// AM-111: after the first answer, and after it alone, the agent of titles is asked for one,
// with the conversation and without tools. The run has ended before.
func TestTitle_WrittenByAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.defined = newTitlesBy("scribe")
	w.agent("triage", script(says("It was lost.")))
	var in *StepInput
	asked := 0
	on := make(chan struct{})
	w.agent("scribe", ReactorFunc(func(_ context.Context, step *StepInput, _ Stream) (*Reaction, error) {
		<-on
		in = step
		asked++
		return says(`"A lost order"` + "\n"), nil
	}), tool{spec: ToolSpec{Name: "find"}})
	w.log, w.d = w.process()
	w.work(Config{})
	id, execution := w.begin("triage", "Where is order 42?")
	if got := titlesOf(w.finished(id, execution)); got != "message:Where is order 42?" { // the run does not wait for the title
		t.Errorf("when the run has ended, the titles are %q", got)
	}
	close(on)
	w.until(id, func(e *events.Event) bool {
		d, ok := e.Data.(events.ProfileChanged)
		return ok && d.TitleFrom == events.TitleFromModel
	})
	second := w.must("thread.react", id, events.ReactThread{Text: new("and 43?")}).Result.ExecutionID
	w.finished(id, second)
	if got := titlesOf(w.lawful(id)); got != "message:Where is order 42? model:A lost order" || asked != 1 {
		t.Errorf("the titles are %q, asked for %d times", got, asked)
	}
	n := len(in.Items)
	if n != 3 || in.Agent != "scribe" || len(in.Tools) != 0 || !strings.Contains(string(in.Items[0].Content), "order 42") || !strings.Contains(string(in.Items[n-1].Content), "Write a title") {
		t.Errorf("%s was given %d tools and %+v", in.Agent, len(in.Tools), in.Items)
	}
}

// AM-111: a model that fails, or writes what is no title, leaves the beginning of the first
// message, and a title that a user has set is not overwritten.
func TestTitle_ThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("triage", script(says("It was lost.")))
	var got *Reaction
	var wrong error
	var during func()
	w.agent("scribe", ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) {
		if during != nil {
			during()
		}
		return got, wrong
	}))
	w.agent("panics", ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) { panic("no") }))
	w.agent("both", script(says("x"))).Type = DualAgent
	by := newTitlesBy("")
	w.defined = by
	worker, stop := w.worker(Config{})
	id := w.talk("triage", "Where is order 42?")
	stop() // it has asked for a title itself, in vain
	mine := "mine"
	const kept = "message:Where is order 42?"
	for _, c := range []struct {
		name, agent string
		got         *Reaction
		wrong       error
		during      func()
		titles      string
	}{
		{"an error", "scribe", nil, errors.New("the model is away"), nil, kept},
		{"nothing", "scribe", says(" \n"), nil, nil, kept},
		{"10 KB", "scribe", says(strings.Repeat("x", 10<<10)), nil, nil, kept},
		{"81 characters", "scribe", says(strings.Repeat("x", 81)), nil, nil, kept},
		{"two lines", "scribe", says("Title\nand more"), nil, nil, kept},
		{"what does not show", "scribe", says("a\u202eb"), nil, nil, kept},
		{"a call", "scribe", says("x", call("c1", "pay", `{}`)), nil, nil, kept},
		{"a panic", "panics", nil, nil, nil, kept},
		{"no such agent", "nobody", nil, nil, nil, kept},
		{"two authors", "both", nil, nil, nil, kept},
		{"no agent", "", nil, nil, nil, kept},
		{"a user was faster", "scribe", says("A lost order"), nil, func() {
			w.must("thread.update", id, events.UpdateThread{Title: &mine})
		}, kept + " :mine"},
		{"a user had cleared it", "scribe", says("A lost order"), nil, func() {
			w.must("thread.update", id, events.UpdateThread{Title: new(string)})
		}, kept + " :mine :"},
		{"the thread is deleted", "scribe", says("A lost order"), nil, func() {
			w.must("thread.delete", id, events.DeleteThread{})
		}, kept + " :mine :"},
	} {
		got, wrong, during = c.got, c.wrong, c.during
		by.agent.Store(&c.agent)
		ended := &turn{w: worker, job: &queues.Run{Tenant: tenant, Thread: id, Execution: "exe_" + strings.ReplaceAll(c.name, " ", "-")}, scratch: &sync.Map{}, logger: zerolog.Nop()}
		w.look(id, func(s *thread.State) { ended.run.ContextID = s.ContextID() })
		err := worker.writeTitle(t.Context(), ended)
		if unchanged := c.during != nil && c.name != "the thread is deleted" || c.agent == ""; (err == nil) != unchanged {
			t.Errorf("%s: it ended with %v", c.name, err)
		}
		if all := titlesOf(w.lawful(id)); all != c.titles {
			t.Errorf("%s: the titles are %q", c.name, all)
		}
	}
}

// What a title costs is counted, and a tenant that has used its tokens gets none.
func TestTitle_IsPaidFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("triage", script(says("It was lost.")))
	said := says("A lost order")
	said.Usage = &Usage{InputTokens: 7, OutputTokens: 3}
	asked := 0
	w.agent("scribe", ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) {
		asked++
		return said, nil
	}))
	by := newTitlesBy("")
	w.defined = by
	p := &purse{}
	worker, stop := w.worker(Config{Budget: p})
	id := w.talk("triage", "Where is order 42?")
	stop() // it has asked for a title itself, in vain
	by.agent.Store(new("scribe"))
	ended := &turn{w: worker, job: &queues.Run{Tenant: tenant, Thread: id, Execution: "exe_1"}, scratch: &sync.Map{}, logger: zerolog.Nop()}
	w.look(id, func(s *thread.State) { ended.run.ContextID = s.ContextID() })
	used := events.Errorf(events.QueueFull, "the tenant has used its tokens")
	p.use(used)
	if err := worker.writeTitle(t.Context(), ended); !errors.Is(err, used) || asked != 0 {
		t.Errorf("of a tenant without tokens: %v, asked %d times", err, asked)
	}
	p.use(nil)
	if err := worker.writeTitle(t.Context(), ended); err != nil || asked != 1 || len(p.spent) != 1 {
		t.Errorf("%v, asked %d times, spent %v", err, asked, p.spent)
	}
	for by, n := range p.spent {
		if n != 10 {
			t.Errorf("%s: %d tokens", by, n)
		}
	}
}
