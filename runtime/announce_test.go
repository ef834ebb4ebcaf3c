package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// streamOf asks an agent and returns what its run streamed until its end.
func (w *world) streamOf(t *testing.T, agent string) (id string, chunks []events.ChunkEmitted) {
	t.Helper()
	sub := w.listen(t)
	id, _ = w.begin(agent, "hello")
	return id, w.chunks(t, sub, func(c events.ChunkEmitted) bool { return c.Type == events.ChunkFinish })
}

func (w *world) listen(t *testing.T) *nats.Subscription {
	t.Helper()
	sub, err := w.nc.SubscribeSync(w.log.Config().Names.Chunk(tenant, "*", "*"))
	if err == nil {
		err = w.nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// chunks returns the streamed chunks up to the last one.
func (w *world) chunks(t *testing.T, sub *nats.Subscription, last func(events.ChunkEmitted) bool) (list []events.ChunkEmitted) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			t.Fatalf("after %+v: %v", list, err)
		}
		e, err := events.DecodeEvent(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		c := e.Data.(events.ChunkEmitted)
		list = append(list, c)
		if last(c) {
			return list
		}
	}
}

// about returns the chunks of one call, as type and data.
func about(list []events.ChunkEmitted, call string) string {
	var out []string
	for _, c := range list {
		if strings.Contains(string(c.Data), `"toolCallId":"`+call+`"`) {
			data := jsontext.Value(c.Data).Clone()
			_ = data.Canonicalize() // valid JSON: it was decoded
			out = append(out, c.Type+" "+string(data))
		}
	}
	return strings.Join(out, "\n")
}

// Every call of a run appears in its stream, with its input and its outcome, whether or
// not the reactor streams, and whether or not it was made: EK-129, EK-130.
func TestStream_ShowsEveryCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fine := tool{ToolSpec{Name: "f"}, func(context.Context, *ToolInput) (ToolResult, error) { return Done(events.JSON(`{"ok":true}`)), nil }}
	w.agent("silent", script(says("one", call("c1", "f", `{"n":1}`), call("c2", "absent", `{}`), call("c3", "f", `[]`), call("c4", "f", `{"instead":1}`)), says("two")), fine)
	w.agent("streams", ReactorFunc(func(_ context.Context, in *StepInput, out Stream) (*Reaction, error) {
		if in.Iteration > 0 {
			return says("two"), nil
		}
		out.Chunk(Chunk{Type: ChunkToolInput, Data: object("toolCallId", "c1", "toolName", "f", "input", events.JSON(`{"n":1}`))})
		return says("one", call("c1", "f", `{"n":1}`)), nil
	}), fine)
	w.work(Config{Hooks: Hooks{BeforeTool: func(_ context.Context, _ ThreadState, in *ToolInput) (*ToolResult, error) {
		if strings.Contains(string(in.Arguments), "instead") {
			return &ToolResult{Status: Success, Result: events.JSON(`"kept"`)}, nil
		}
		return nil, nil
	}}})
	const shown = `tool-input-available {"input":{"n":1},"toolCallId":"c1","toolName":"f"}` + "\n" +
		`tool-output-available {"output":{"ok":true},"toolCallId":"c1"}`
	_, list := w.streamOf(t, "silent")
	for id, want := range map[string]string{
		"c1": shown,
		"c2": `tool-input-available {"input":{},"toolCallId":"c2","toolName":"absent"}` + "\n" +
			`tool-output-error {"errorText":"tool not found: absent","toolCallId":"c2"}`,
		"c3": `tool-input-available {"input":[],"toolCallId":"c3","toolName":"f"}` + "\n" +
			`tool-output-error {"errorText":"the arguments are not a JSON object; send one","toolCallId":"c3"}`,
		"c4": `tool-input-available {"input":{"instead":1},"toolCallId":"c4","toolName":"f"}` + "\n" +
			`tool-output-available {"output":"kept","toolCallId":"c4"}`,
	} {
		if got := about(list, id); got != want {
			t.Errorf("of %s:\n%s\nnot\n%s", id, got, want)
		}
	}
	if _, list := w.streamOf(t, "streams"); about(list, "c1") != shown {
		t.Errorf("of a reactor that streams:\n%s", about(list, "c1"))
	}
}

// The stream of a run shows the context in which it works, and its state: that the
// reactor is called, called again, and waited for. The reactor's own chunks come in
// between, under its step.
func TestStream_ShowsStateOfRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tries := 0
	a := w.agent("a", ReactorFunc(func(_ context.Context, in *StepInput, out Stream) (*Reaction, error) {
		if tries++; tries == 1 {
			return nil, &RetryError{Err: errors.New("not now")}
		}
		out.Chunk(Chunk{Type: ChunkTextDelta, Data: object("id", "t", "delta", "one moment")})
		if in.Iteration == 0 {
			return says("one moment", call("c1", "f", `{}`)), nil
		}
		return says("one moment"), nil
	}), tool{ToolSpec{Name: "f", Manual: true}, func(context.Context, *ToolInput) (ToolResult, error) { return Done(events.JSON(`1`)), nil }})
	a.Retries.Backoff = time.Millisecond
	w.work(Config{})
	sub := w.listen(t)
	id, _ := w.begin("a", "hello")
	contextID := ""
	for _, e := range w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType }) {
		if d, ok := e.Data.(events.ContextCreated); ok {
			contextID = d.ID
		}
	}
	list := w.chunks(t, sub, func(c events.ChunkEmitted) bool { return strings.Contains(string(c.Data), "waiting") })
	w.must("approval.grant", id, events.GrantApproval{CallID: "c1"})
	list = append(list, w.chunks(t, sub, func(c events.ChunkEmitted) bool { return c.Type == events.ChunkFinish })...)
	var got []string
	steps := map[string]bool{}
	for _, c := range list {
		data := jsontext.Value(c.Data).Clone()
		_ = data.Canonicalize() // valid JSON: it was decoded
		got = append(got, c.Type+" "+string(data))
		if c.StepID != "" {
			steps[c.StepID] = true
		} else if c.Type != events.ChunkContextID && c.Type != events.ChunkFinish {
			t.Errorf("%s is of no step", c.Type)
		}
	}
	want := []string{
		`data-context-id {"contextId":"` + contextID + `"}`,
		`data-context-substate {"substate":"reacting"}`,
		`data-context-substate {"substate":"retrying"}`,
		`text-delta {"delta":"one moment","id":"t"}`,
		`tool-input-available {"input":{},"toolCallId":"c1","toolName":"f"}`,
		`data-context-substate {"substate":"waiting"}`,
		`tool-output-available {"output":1,"toolCallId":"c1"}`,
		`data-context-substate {"substate":"reacting"}`,
		`text-delta {"delta":"one moment","id":"t"}`,
		`finish {"finishReason":"stop"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the stream is\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(steps) != 2 {
		t.Errorf("the chunks are of %d steps, and not of two", len(steps))
	}
}

// A call that a person denies, and one that a caller queues, appear in the stream like
// any other.
func TestStream_ShowsDeniedAndQueuedCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fine := func(context.Context, *ToolInput) (ToolResult, error) { return Done(events.JSON(`1`)), nil }
	w.agent("a", script(says("one", call("c1", "f", `{"n":1}`)), says("two")), tool{ToolSpec{Name: "f", Manual: true}, fine}, tool{ToolSpec{Name: "g"}, fine})
	w.work(Config{})
	sub := w.listen(t)
	id, _ := w.begin("a", "hello")
	w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
	// Who answers has seen that the run waits: its chunks follow the commit.
	before := w.chunks(t, sub, func(c events.ChunkEmitted) bool { return strings.Contains(string(c.Data), `"waiting"`) })
	w.must("approval.deny", id, events.DenyApproval{CallID: "c1", Comment: "no"})
	over := func(c events.ChunkEmitted) bool { return c.Type == events.ChunkFinish }
	if got, want := about(append(before, w.chunks(t, sub, over)...), "c1"), `tool-input-available {"input":{"n":1},"toolCallId":"c1","toolName":"f"}`+"\n"+
		`tool-output-error {"errorText":"the call was denied: no","toolCallId":"c1"}`; got != want {
		t.Errorf("denied:\n%s\nnot\n%s", got, want)
	}
	w.must("tool.queue", id, events.QueueTool{Name: "g", CallID: "c2", Arguments: events.JSON(`{"m":2}`)})
	if got, want := about(w.chunks(t, sub, over), "c2"), `tool-input-available {"input":{"m":2},"toolCallId":"c2","toolName":"g"}`+"\n"+
		`tool-output-available {"output":1,"toolCallId":"c2"}`; got != want {
		t.Errorf("queued:\n%s\nnot\n%s", got, want)
	}
}

// A silent run sends pings: EK-128.
func TestRun_PingsWhileSilent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	w.agent("a", ReactorFunc(func(ctx context.Context, _ *StepInput, _ Stream) (*Reaction, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return says("fine"), nil
	}))
	w.work(Config{Ping: time.Millisecond})
	sub := w.listen(t)
	w.begin("a", "hello")
	pings := 0
	list := w.chunks(t, sub, func(c events.ChunkEmitted) bool {
		if c.Type == events.ChunkThreadPing {
			pings++
		}
		return pings == 3
	})
	close(release)
	var at events.Time
	for _, c := range list {
		if c.Type != events.ChunkThreadPing {
			continue
		}
		now, err := events.ParseTime(strings.TrimSuffix(strings.TrimPrefix(string(c.Data), `{"at":"`), `"}`))
		if err != nil || now < at {
			t.Errorf("%s after %s: %v", c.Data, at, err)
		}
		at = now
	}
	w.chunks(t, sub, func(c events.ChunkEmitted) bool { return c.Type == events.ChunkFinish })
}

// A tool is retried as its own retries say, and not as its agent's, even if that is
// once or without a pause.
func TestCall_UsesRetriesOfTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		spec  ToolSpec
		made  bool
		tries int
		least time.Duration
	}{
		"agent":   {ToolSpec{Idempotent: true}, true, 3, 2 * time.Millisecond},
		"once":    {ToolSpec{Idempotent: true, Retries: -1}, true, 1, 0},
		"backoff": {ToolSpec{Idempotent: true, Retries: 2, Backoff: 50 * time.Millisecond}, true, 3, 140 * time.Millisecond},
		"unmade":  {ToolSpec{Retries: 1, Backoff: -1}, false, 2, 0},
	} {
		var at []time.Time
		c.spec.Name = "f"
		a := w.agent(name, script(says("one", call("c1", "f", `{}`)), says("two")), tool{c.spec, func(context.Context, *ToolInput) (ToolResult, error) {
			at = append(at, time.Now())
			return ToolResult{}, &RetryError{NotMade: !c.made, Err: errors.New("not now")}
		}})
		if name == "unmade" {
			a.Retries = Retries{Attempts: 5, Backoff: time.Hour}
		}
		if len(w.workers()) == 0 {
			w.work(Config{})
		}
		w.finished(w.begin(name, "hello"))
		if len(at) != c.tries {
			t.Errorf("%s: it was tried %d times, not %d", name, len(at), c.tries)
		} else if took := at[len(at)-1].Sub(at[0]); took < c.least {
			t.Errorf("%s: its tries took %v, not %v", name, took, c.least)
		}
	}
}
