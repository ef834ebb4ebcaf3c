package runtime

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
)

// follow returns the commits of the log, live, until the test ends.
func follow(t *testing.T, w *world) iter.Seq2[*events.Commit, error] {
	return func(yield func(*events.Commit, error) bool) {
		tail, err := w.log.Tail(t.Context(), "test", 0)
		if err != nil {
			yield(nil, err)
			return
		}
		defer tail.Stop()
		for {
			e, err := tail.Next(t.Context())
			if t.Context().Err() != nil || err != nil || !yield(e.Commit, e.Broken) {
				return
			}
		}
	}
}

// A worker that dies in a reactor is replaced, and the next one continues with the same
// step. EK-124.
func TestWorker_ReplacedDuringStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var steps []string
	var first atomic.Bool
	entered := make(chan struct{})
	w.agent("a", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		if first.CompareAndSwap(false, true) {
			steps = append(steps, in.StepID)
			close(entered)
			select {} // it never returns
		}
		steps = append(steps, in.StepID)
		return says("fine"), nil
	}))
	log, d := w.process()
	dead := New(log, d, Config{Reactors: w.reactors, Agents: w.agents, Arguments: anyArguments{}}, zerolog.Nop())
	queue, err := queues.RunsOf(log).Receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id, execution := w.begin("a", "hello")
	job, err := queue.Next(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	go func() { // it is not kept alive in the queue
		_ = (&turn{w: dead, job: job, scratch: &sync.Map{}, logger: zerolog.Nop()}).execute(t.Context())
	}()
	<-entered
	queue.Close()
	start := time.Now()
	w.work(Config{})
	all := w.finished(id, execution)
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("it took %v", took)
	}
	if len(steps) != 2 || steps[0] != steps[1] {
		t.Errorf("the steps were %v", steps)
	}
	claims := strings.Count(kinds(all), "run.claimed")
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted || claims != 2 {
		t.Errorf("it ended %s (%s) after %d claims", status, text, claims)
	}
}

// A call that may have been made is repeated with the same key if its tool is
// idempotent; otherwise a person is asked. One with a result is never made again.
func TestCalls_AfterHandover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := map[string][]string{}
	record := func(name string, spec ToolSpec) Tool {
		spec.Name = name
		return tool{spec, func(_ context.Context, in *ToolInput) (ToolResult, error) {
			keys[name] = append(keys[name], in.Key)
			return Done(text(name)), nil
		}}
	}
	w.agent("a", script(says("x", call("c1", "done", `{}`), call("c2", "safe", `{}`), call("c3", "pay", `{"eur":5}`)), says("y")),
		record("done", ToolSpec{}), record("safe", ToolSpec{Idempotent: true}), record("pay", ToolSpec{}))
	id, execution := w.begin("a", "hello")
	// State after a worker died: a step with three calls, one of which has its result.
	var run thread.Run
	see := func(s *thread.State) { run, _ = s.Run(execution) }
	step := func(data any) {
		t.Helper()
		c := &thread.Command{ID: events.DeriveID("", events.TimeOf(time.Now()), "t", "t", "c", int(time.Now().UnixNano())), Tenant: tenant, ThreadID: id, Parts: []thread.Part{{Name: "run.x", Data: data}}}
		if _, err := w.d.Run(t.Context(), c, see); err != nil {
			t.Fatal(err)
		}
	}
	step(thread.ClaimRun{ExecutionID: execution, Worker: "dead"})
	parts, calls, err := reaction(says("x", call("c1", "done", `{}`), call("c2", "safe", `{}`), call("c3", "pay", `{"eur":5}`)))
	if err != nil {
		t.Fatal(err)
	}
	d := thread.ReactStep{ExecutionID: execution, Token: run.Token, StepID: run.StepID, Calls: calls}
	for _, p := range parts {
		d.Parts, d.Types = append(d.Parts, p.raw), append(d.Types, p.kind)
	}
	step(d)
	step(thread.EndCalls{ExecutionID: execution, Token: run.Token, StepID: run.StepID, Results: []thread.CallResult{{
		CallID: "c1", Output: text("done"), Part: object("type", "tool-done", "toolCallId", "c1", "state", "output-available", "output", "done"),
	}}})
	w.work(Config{})
	w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
	if len(keys["done"]) != 0 || len(keys["safe"]) != 1 || len(keys["pay"]) != 0 {
		t.Fatalf("calls were made: %v", keys)
	}
	// The key belongs to the call, not to the worker: a provider sees the same key
	// before and after the worker died.
	if want := execution + ":" + run.StepID + ":c2"; keys["safe"][0] != want {
		t.Errorf("the call was repeated with the key %s, want %s", keys["safe"][0], want)
	}
	w.must("approval.grant", id, events.GrantApproval{CallID: "c3"})
	all := w.finished(id, execution)
	if len(keys["done"]) != 0 || len(keys["safe"]) != 1 || len(keys["pay"]) != 1 {
		t.Errorf("calls were made: %v", keys)
	}
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
	var asked []string
	for _, e := range all {
		if d, ok := e.Data.(events.ApprovalRequested); ok {
			asked = append(asked, d.CallID+" "+string(d.Reason))
		}
	}
	if want := "c3 " + string(events.ApprovalMayHaveRun); strings.Join(asked, "|") != want {
		t.Errorf("asked about: %q, and not %q", asked, want)
	}
}

// A tool that requires it waits for an approval, without a worker, and is called with
// the arguments of the approval.
func TestApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got []string
	pay := tool{ToolSpec{Name: "pay", Manual: true}, func(_ context.Context, in *ToolInput) (ToolResult, error) {
		got = append(got, string(in.Arguments))
		return Done(nil), nil
	}}
	w.agent("a", script(says("x", call("c1", "pay", `{"eur":5}`)), says("y", call("c2", "pay", `{"eur":6}`)), says("z")), pay)
	worker := w.work(Config{})
	id, execution := w.begin("a", "hello")
	w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
	worker.mu.Lock()
	if len(worker.turns) > 1 {
		t.Error("a worker holds the run that waits")
	}
	worker.mu.Unlock()
	w.must("approval.grant", id, events.GrantApproval{CallID: "c1", Arguments: []byte(`{"eur":4}`)})
	w.until(id, func(e *events.Event) bool {
		d, ok := e.Data.(events.ApprovalRequested)
		return ok && d.CallID == "c2"
	})
	w.must("approval.deny", id, events.DenyApproval{CallID: "c2", Comment: "too much"})
	all := w.finished(id, execution)
	if len(got) != 1 || got[0] != `{"eur":4}` {
		t.Errorf("it was called with %v", got)
	}
	denied := false
	for _, e := range all {
		if d, ok := e.Data.(events.PartUpdated); ok && strings.Contains(string(d.Part), "the call was denied: too much") {
			denied = true
		}
	}
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted || !denied {
		t.Errorf("it ended %s (%s), denied: %t", status, text, denied)
	}
}
