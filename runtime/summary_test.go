package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
)

// lawful checks the precondition of each event of a thread, and returns them.
func (w *world) lawful(id string) []events.Event {
	w.t.Helper()
	ledger, all := &thread.Ledger{}, []events.Event{}
	for c, err := range w.log.Thread(w.t.Context(), tenant, id, 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		ledger.Commit(c, func(e *events.Event, fault error) { w.t.Errorf("%s: %s: %v", id, e.Type, fault) })
		all = append(all, c.Events...)
	}
	return all
}

// talk creates a thread with a message of a user and an answer.
func (w *world) talk(agent, text string) string {
	w.t.Helper()
	id, execution := w.begin(agent, text)
	w.finished(id, execution)
	return id
}

// first returns the text and the id of a thread's first message.
func firstMessage(all []events.Event) (text, id string, role events.Role) {
	for _, e := range all {
		if d, ok := e.Data.(events.ItemCreated); ok {
			return events.TextOfParts(d.Content), d.ID, d.Role
		}
	}
	return "", "", ""
}

// AM-33, AM-36, AM-43: without a summary an agent writes it, from the whole conversation, without
// tools. The run ends with the commit that creates the new thread; it adds no message to the
// thread, which is as it was.
func TestSummary_IsWrittenByAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("triage", script(says("It was lost.")))
	var in *StepInput
	w.agent("scribe", ReactorFunc(func(_ context.Context, step *StepInput, _ Stream) (*Reaction, error) {
		in = step
		return says("  Order 42 was lost.\n"), nil
	}), tool{spec: ToolSpec{Name: "find"}}).Continue = func(Outcome) bool { return true }
	w.work(Config{})
	id := w.talk("triage", "Where is order 42?")
	before := len(w.lawful(id))
	r := w.must("thread.handoff", id, events.HandoffThread{AgentID: "scribe", Comment: "the refund", Key: "refund"})
	child, execution := r.Result.ChildID, r.Result.ExecutionID
	if !events.ValidThreadID(child) || execution == "" {
		t.Fatalf("answered with %+v", r.Result)
	}
	all := w.finished(id, execution)
	w.lawful(id)
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Fatalf("it ended %s (%s)", status, text)
	}
	made := w.lawful(child)
	text, item, role := firstMessage(made)
	if text != "Order 42 was lost." || item != r.Result.ReactionItemID || role != events.System {
		t.Errorf("the new thread begins with %q (%s, %s)", text, item, role)
	}
	d := made[0].Data.(events.ThreadCreated)
	if d.AgentID != "scribe" || *d.Key != "refund" || made[len(made)-1].Data.(events.RelationshipAdded).Comment != "the refund" {
		t.Errorf("created as %+v, with %+v", d, made[len(made)-1].Data)
	}
	var last events.RelationshipAdded
	for _, e := range all[before:] {
		switch d := e.Data.(type) {
		case events.ItemCreated, events.MessageEdited, events.ItemStatusChanged, events.ProfileChanged:
			t.Errorf("the thread has a %s of it", e.Type)
		case events.RelationshipAdded:
			last = d
		}
	}
	if last.ThreadID != child || last.Role != events.ParentRole || *last.MessageIndex != 1 || last.Comment != "the refund" {
		t.Errorf("recorded as %+v", last)
	}
	n := len(in.Items)
	if n != 3 || !strings.Contains(string(in.Items[0].Content), "order 42") || !strings.Contains(string(in.Items[n-1].Content), "the refund") || len(in.Tools) != 0 {
		t.Errorf("the agent was given %d items and %d tools: %+v", n, len(in.Tools), in.Items)
	}
	w.look(id, func(s *thread.State) {
		if s.Status != events.ThreadOpen || s.AgentID() != "triage" || s.Active() != "" {
			t.Errorf("the thread is %s, of %s", s.Status, s.AgentID())
		}
	})
}

// A run that writes nothing that can be used fails, says why, and creates nothing; the thread
// stays open, and what can be retried is what could be before.
func TestSummary_ThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("triage", script(says("It was lost.")))
	var got *Reaction
	var wrong error
	w.agent("scribe", ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) { return got, wrong }))
	w.agent("both", script(says("x"))).Type = DualAgent
	w.agents.agents["both"].B = w.agents.agents["both"].A
	w.work(Config{})
	id := w.talk("triage", "Where is order 42?")
	for _, c := range []struct {
		name, agent, says string
		got               *Reaction
		wrong             error
	}{
		{"nothing", "scribe", "needs a text", says(" \n "), nil},
		{"too much", "scribe", "at most 65536 characters", says(strings.Repeat("x", 65537)), nil},
		{"a call", "scribe", "called the tool pay", says("x", call("c1", "pay", `{}`)), nil},
		{"a refusal", "scribe", "needs a text", &Reaction{AssistantEvent: Assistant{Content: []events.JSON{object("type", events.Refusal, "refusal", "no")}}}, nil},
		{"an error", "scribe", "the model is away", nil, errors.New("the model is away")},
		{"two authors", "both", "dual_ai", nil, nil},
		{"no such agent", "nobody", "nobody", nil, nil},
	} {
		got, wrong = c.got, c.wrong
		r := w.must("thread.handoff", id, events.HandoffThread{AgentID: c.agent})
		var text string
		for _, e := range w.finished(id, r.Result.ExecutionID) {
			if d, ok := e.Data.(events.ExecutionStatusChanged); ok && e.Subject == r.Result.ExecutionID {
				text = string(d.To) + ": " + d.ErrorText
			}
		}
		if !strings.HasPrefix(text, "failed: ") || !strings.Contains(text, c.says) {
			t.Errorf("%s: it ended %s", c.name, text)
		}
		if all := w.lawful(r.Result.ChildID); len(all) > 0 {
			t.Errorf("%s: the new thread has %s", c.name, kinds(all))
		}
	}
	w.lawful(id)
	w.look(id, func(s *thread.State) {
		if s.Status != events.ThreadOpen || s.Parents != 0 {
			t.Errorf("the thread is %s, with %d children", s.Status, s.Parents)
		}
	})
	if _, err := w.ask("run.retry", id, events.RetryRun{}); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("a retry: %v", err)
	}
}

// What happens to the thread while the summary is written: it is truncated or deleted, the key
// is taken, the run is stopped, or messages come.
func TestSummary_Meanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		do     func(w *world, id, execution string)
		status events.ExecutionStatus
		text   string
	}{
		{"a message waits", func(w *world, id, _ string) {
			if r := w.must("thread.react", id, events.ReactThread{Text: new("and?"), Policy: events.Steer}); r.Result.QueuedID == "" {
				w.t.Errorf("answered with %+v", r.Result)
			}
			w.must("tool.queue", id, events.QueueTool{Name: "later"})
		}, events.ExecutionCompleted, ""},
		{"its last message is deleted", func(w *world, id, _ string) {
			var last string
			for _, e := range w.lawful(id) {
				if d, ok := e.Data.(events.ItemCreated); ok {
					last = d.ID
				}
			}
			w.must("message.delete", id, events.DeleteMessage{ItemID: last})
		}, events.ExecutionCompleted, ""},
		{"the key is taken", func(w *world, _, _ string) {
			w.must("thread.create", "", events.CreateThread{Key: "mine"})
		}, events.ExecutionFailed, "mine"},
		{"another handoff", func(w *world, id, _ string) {
			if _, err := w.ask("thread.handoff", id, events.HandoffThread{AgentID: "scribe"}); !errors.Is(err, &events.Error{Code: events.VersionConflict}) {
				w.t.Errorf("a second one: %v", err)
			}
			if r := w.must("thread.handoff", id, events.HandoffThread{Summary: "s"}); r.Result.ChildID == "" {
				w.t.Errorf("one with a summary: %+v", r.Result)
			}
		}, events.ExecutionCompleted, ""},
		{"a truncation is refused", func(w *world, id, _ string) {
			if _, err := w.ask("thread.truncate", id, events.TruncateThread{MessageIndex: new(int64)}); !errors.Is(err, &events.Error{Code: events.VersionConflict}) {
				w.t.Errorf("truncated: %v", err)
			}
		}, events.ExecutionCompleted, ""},
		{"a truncation that interrupts", func(w *world, id, _ string) {
			w.must("thread.truncate", id, events.TruncateThread{MessageIndex: new(int64), Interrupt: true})
		}, events.ExecutionFailed, thread.Aborted},
		{"a stop", func(w *world, id, execution string) {
			w.must("run.stop", id, events.StopRun{ExecutionID: execution})
		}, events.ExecutionFailed, thread.Aborted},
		{"a deletion", func(w *world, id, _ string) {
			w.must("thread.delete", id, events.DeleteThread{})
		}, events.ExecutionFailed, thread.Aborted},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.agent("triage", script(says("It was lost.")))
			entered, on := make(chan struct{}), make(chan struct{})
			w.agent("scribe", ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) {
				close(entered)
				<-on
				return says("s"), nil
			}))
			w.work(Config{})
			id := w.talk("triage", "Where is order 42?")
			r := w.must("thread.handoff", id, events.HandoffThread{AgentID: "scribe", Key: "mine"})
			<-entered
			c.do(w, id, r.Result.ExecutionID)
			close(on)
			all := w.until(id, func(e *events.Event) bool {
				d, ok := e.Data.(events.ExecutionStatusChanged)
				return ok && e.Subject == r.Result.ExecutionID && d.To != events.Executing
			})
			i := slices.IndexFunc(all, func(e events.Event) bool {
				return e.Type == events.ExecutionStatusChangedType && e.Subject == r.Result.ExecutionID
			})
			if d := all[i].Data.(events.ExecutionStatusChanged); d.To != c.status || !strings.Contains(d.ErrorText, c.text) {
				t.Errorf("it ended %s (%s)", d.To, d.ErrorText)
			}
			w.lawful(id)
			if made := w.lawful(r.Result.ChildID); (len(made) > 0) != (c.status == events.ExecutionCompleted) {
				t.Errorf("the new thread has %s", kinds(made))
			}
		})
	}
}

// A handoff is recorded at the message up to which the summary was written, also if another one
// was added meanwhile.
func TestSummary_RecordedWhereItBegan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("triage", script(says("It was lost.")))
	entered, on := make(chan struct{}), make(chan struct{})
	w.agent("scribe", ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) {
		close(entered)
		<-on
		return says("s"), nil
	}))
	w.work(Config{})
	id := w.talk("triage", "Where is order 42?")
	r := w.must("thread.handoff", id, events.HandoffThread{AgentID: "scribe"})
	<-entered
	later := w.must("item.create", id, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: textContent("and 43?")}}).Result.ItemID
	close(on)
	w.finished(id, r.Result.ExecutionID)
	for _, thread := range []string{id, r.Result.ChildID} {
		for _, e := range w.lawful(thread) {
			if d, ok := e.Data.(events.RelationshipAdded); ok && (d.MessageIndex == nil || *d.MessageIndex != 1 || d.ItemID == later) {
				t.Errorf("%s: recorded at %+v", thread, d)
			}
		}
	}
}

// A worker that dies while the summary is written, or as it is stored, leaves a run that another
// worker takes: there is one new thread, and one record of it.
func TestSummary_WorkerDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("triage", script(says("It was lost.")))
	log, d := w.process()
	dead := New(log, d, Config{Name: "dead", Reactors: w.reactors, Agents: w.agents, Arguments: anyArguments{}}, zerolog.Nop())
	_, stop := w.worker(Config{})
	id := w.talk("triage", "Where is order 42?")
	stop()
	entered, on := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.agent("scribe", ReactorFunc(func(ctx context.Context, _ *StepInput, _ Stream) (*Reaction, error) {
		wait := false
		once.Do(func() { wait = true })
		if wait { // the first worker, which comes back too late
			close(entered)
			<-on
			return says("of the first"), nil
		}
		return says("of the second"), nil
	}))
	queue, err := queues.RunsOf(w.log).Receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := w.must("thread.handoff", id, events.HandoffThread{AgentID: "scribe"})
	job, err := queue.Next(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	late := make(chan error, 1)
	go func() { // it is not kept alive in the queue
		late <- (&turn{w: dead, job: job, scratch: &sync.Map{}, logger: zerolog.Nop()}).execute(t.Context())
	}()
	<-entered
	if err := job.Release(0); err != nil {
		t.Fatal(err)
	}
	queue.Close()
	w.work(Config{})
	all := w.finished(id, r.Result.ExecutionID)
	close(on)
	if err := <-late; !isLost(err) {
		t.Errorf("the first worker ended with %v", err)
	}
	made := w.lawful(r.Result.ChildID)
	if text, _, _ := firstMessage(made); text != "of the second" {
		t.Errorf("the new thread begins with %q", text)
	}
	if n := strings.Count(kinds(all), string(events.RelationshipAddedType)); n != 1 || strings.Count(kinds(made), string(events.ItemCreatedType)) != 1 {
		t.Errorf("%d records; the new thread has %s", n, kinds(made))
	}
}
