package runtime

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// endOf returns how an execution ended: its status, its error text, and the thread's
// status after it.
func endOf(t *testing.T, all []events.Event) (status events.ExecutionStatus, text string, after events.ThreadStatus) {
	t.Helper()
	for _, e := range all {
		switch d := e.Data.(type) {
		case events.ExecutionStatusChanged:
			status, text = d.To, d.ErrorText
		case events.ThreadStatusChanged:
			after = d.To
		}
	}
	if err := events.ValidateTimeline(all); err != nil {
		t.Error(err)
	}
	return status, text, after
}

// A reactor that fails, panics or returns invalid data ends its step and execution,
// says what happened, and leaves a usable thread: C-41, C-42, EK-117.
func TestReactor_Failures(t *testing.T) {
	part := func(raw string) *Reaction {
		return &Reaction{AssistantEvent: Assistant{Content: []events.JSON{events.JSON(raw)}}}
	}
	returning := func(r *Reaction) Reactor {
		return ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) { return r, nil })
	}
	for name, c := range map[string]struct {
		reactor Reactor
		text    string
	}{
		"an error": {ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) {
			return nil, errors.New("the model is away")
		}), "the model is away"},
		"a panic":              {ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) { panic("secret") }), "the reactor panicked"},
		"nothing":              {returning(nil), "returned nothing"},
		"no JSON":              {returning(part(`{"type":`)), "part 0 of its answer is not a JSON object"},
		"no object":            {returning(part(`"text"`)), "not a JSON object"},
		"no type":              {returning(part(`{"text":"x"}`)), "has no type"},
		"50 MB":                {returning(part(`{"type":"output_text","text":"` + strings.Repeat("x", 50<<20) + `"}`)), "bytes; the limit"},
		"a call without an id": {returning(says("x", ToolCall{Name: "find"})), "a call whose id"},
		"a call of no tool":    {returning(says("x", call("c", "a b", `{}`))), "cannot be a tool"},
		"a call twice":         {returning(says("x", call("c", "find", `{}`), call("c", "find", `{}`))), "twice"},
		"a call twice among its parts": {returning(&Reaction{AssistantEvent: Assistant{Content: []events.JSON{
			events.JSON(`{"type":"tool-find","toolCallId":"c","input":{}}`), events.JSON(`{"type":"tool-find","toolCallId":"c","input":{}}`),
		}}}), "twice"},
		"2000 parts": {returning(&Reaction{AssistantEvent: Assistant{Content: make([]events.JSON, 2000)}}), "2000 parts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.agent("a", c.reactor)
			w.work(Config{})
			id, execution := w.begin("a", "hello")
			status, text, after := endOf(t, w.finished(id, execution))
			if status != events.ExecutionFailed || !strings.Contains(text, c.text) || strings.Contains(text, "secret") || after != events.ThreadFailed {
				t.Errorf("it ended %s (%s), the thread %s", status, text, after)
			}
			w.agent("a", script(says("fine")))
			again := w.must("thread.react", id, events.ReactThread{Text: new("again")}).Result.ExecutionID
			if status, text, after := endOf(t, w.finished(id, again)); status != events.ExecutionCompleted || after != events.ThreadOpen {
				t.Errorf("the next ended %s (%s), the thread %s", status, text, after)
			}
		})
	}
}

// A part of an unknown type is stored unchanged: EK-107, EK-108.
func TestReactor_UnknownPartIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("a", script(&Reaction{AssistantEvent: Assistant{Content: []events.JSON{events.JSON(`{"type":"acme.chart","points":[1,2]}`)}}}))
	w.work(Config{})
	id, execution := w.begin("a", "hello")
	var parts []string
	for _, e := range w.finished(id, execution) {
		if d, ok := e.Data.(events.PartCreated); ok {
			parts = append(parts, d.Type+" "+string(d.Part))
		}
	}
	if got := strings.Join(parts, "\n"); got != `acme.chart {"type":"acme.chart","points":[1,2]}` {
		t.Errorf("the parts are %s", got)
	}
}

// A temporary failure is retried, and recorded; another one ends the run.
func TestRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tries := 0
	w.agent("a", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		if tries++; in.Attempt != tries {
			t.Errorf("attempt %d is called %d", tries, in.Attempt)
		}
		if tries < 3 {
			return nil, &RetryError{Err: errors.New("too many requests")}
		}
		return says("fine"), nil
	}))
	w.work(Config{})
	id, execution := w.begin("a", "hello")
	all := w.finished(id, execution)
	status, text, _ := endOf(t, all)
	notes := 0
	for _, e := range all {
		if d, ok := e.Data.(events.TraceRecorded); ok && d.Kind == "log" && strings.Contains(d.Text, "too many requests") {
			notes++
		}
	}
	if status != events.ExecutionCompleted || tries != 3 || notes != 2 {
		t.Errorf("it ended %s (%s) after %d tries with %d notes", status, text, tries, notes)
	}
}

// A tool that fails, panics, hangs, returns invalid or too much data, is missing, or is
// called with invalid arguments returns a result that tells the model: SA-66, EK-116.
func TestTool_Failures(t *testing.T) {
	made := func(got ToolResult, err error) func(context.Context, *ToolInput) (ToolResult, error) {
		return func(context.Context, *ToolInput) (ToolResult, error) { return got, err }
	}
	for name, c := range map[string]struct {
		tool Tool
		text string
	}{
		"an error":         {tool{ToolSpec{Name: "find"}, made(ToolResult{}, errors.New("no database"))}, "no database"},
		"a failure":        {tool{ToolSpec{Name: "find"}, made(Failed("not there"), nil)}, "not there"},
		"a panic":          {tool{ToolSpec{Name: "find"}, func(context.Context, *ToolInput) (ToolResult, error) { panic("secret") }}, "the tool panicked"},
		"50 MB":            {tool{ToolSpec{Name: "find"}, made(Done(events.JSON(`"`+strings.Repeat("x", 50<<20)+`"`)), nil)}, "the limit"},
		"no JSON":          {tool{ToolSpec{Name: "find"}, made(Done(events.JSON(`{`)), nil)}, "invalid JSON"},
		"no status":        {tool{ToolSpec{Name: "find"}, made(ToolResult{}, nil)}, "the status"},
		"unknown":          {tool{ToolSpec{Name: "other"}, made(Done(nil), nil)}, "tool not found: find"},
		"bad input":        {tool{ToolSpec{Name: "find", Parameters: events.JSON(`"refuse"`)}, made(Done(nil), nil)}, "/n: it is refused"},
		"a list":           {tool{ToolSpec{Name: "find"}, made(Done(nil), nil)}, "not a JSON object"},
		"half JSON":        {tool{ToolSpec{Name: "find"}, made(Done(nil), nil)}, "not a JSON object"},
		"a name twice":     {tool{ToolSpec{Name: "find"}, made(Done(nil), nil)}, "a name twice"},
		"half a character": {tool{ToolSpec{Name: "find"}, made(Done(nil), nil)}, "half of a surrogate pair"},
		"a prototype":      {tool{ToolSpec{Name: "find"}, made(Done(nil), nil)}, "__proto__"},
		"it hangs": {tool{ToolSpec{Name: "find", Timeout: 20 * time.Millisecond}, func(ctx context.Context, _ *ToolInput) (ToolResult, error) {
			<-ctx.Done()
			return ToolResult{}, ctx.Err()
		}}, "took longer than 20ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			arguments, bad := map[string]string{
				"a list": `[1]`, "half JSON": `{"n":`, "a name twice": `{"n":1,"n":2}`, "half a character": `{"n":"\ud83d"}`, "a prototype": `{"n":[{"__proto__":{}}]}`,
			}[name]
			if !bad {
				arguments = `{}`
			}
			w.agent("a", script(says("x", call("c1", "find", arguments)), says("y")), c.tool)
			w.work(Config{})
			id, execution := w.begin("a", "hello")
			all := w.finished(id, execution)
			if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
				t.Errorf("it ended %s (%s)", status, text)
			}
			found := false
			for _, e := range all {
				if d, ok := e.Data.(events.PartUpdated); ok {
					found = strings.Contains(string(d.Part), `"state":"output-error"`) && strings.Contains(string(d.Part), c.text) && !strings.Contains(string(d.Part), "secret")
					if !found {
						t.Errorf("the part is %.300s", d.Part)
					}
				}
			}
			if !found {
				t.Error("the call has no result")
			}
		})
	}
}

// A cancelled run ends during its current operation, and a stopped one after it:
// SA-148, SA-149, C-26.
func TestCancelAndStop(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"run.cancel", "run.stop"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			entered, release := make(chan struct{}), make(chan struct{})
			w.agent("a", ReactorFunc(func(ctx context.Context, _ *StepInput, _ Stream) (*Reaction, error) {
				close(entered)
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-release:
					return says("x", call("c1", "find", `{}`)), nil
				}
			}))
			w.work(Config{})
			go func() { // as the relay does
				for c, err := range follow(t, w) {
					if err == nil {
						for _, e := range c.Events {
							_ = w.nc.Publish(w.log.Config().Names.Timeline(c.Tenant, c.Thread, e.Type), e.Raw())
						}
					}
				}
			}()
			id, execution := w.begin("a", "hello")
			<-entered
			if name == "run.cancel" {
				w.must(name, id, events.CancelRun{})
			} else {
				w.must(name, id, events.StopRun{})
				close(release)
			}
			status, text, after := endOf(t, w.finished(id, execution))
			want := map[string]events.ExecutionStatus{"run.cancel": events.ExecutionFailed, "run.stop": events.ExecutionCompleted}[name]
			if status != want || after != events.ThreadOpen || name == "run.cancel" && text != thread.Aborted {
				t.Errorf("it ended %s (%s), the thread %s", status, text, after)
			}
		})
	}
}

// Limits end a run that would go on without end.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		text   string
	}{
		"steps":  {Limits{Iterations: 3}, "the limit of 3 steps"},
		"tokens": {Limits{Tokens: 100}, "the limit of 100 tokens"},
		"time":   {Limits{WallClock: 50 * time.Millisecond, Iterations: 1 << 30}, "the limit of 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			n := 0
			a := w.agent("a", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
				n++
				r := says("x", call("c", "find", `{}`))
				r.Usage = &Usage{InputTokens: 30, OutputTokens: 10}
				return r, nil
			}), tool{ToolSpec{Name: "find"}, func(context.Context, *ToolInput) (ToolResult, error) { return Done(nil), nil }})
			a.Limits = c.limits
			w.work(Config{})
			id, execution := w.begin("a", "hello")
			if status, text, _ := endOf(t, w.finished(id, execution)); status != events.ExecutionFailed || !strings.Contains(text, c.text) {
				t.Errorf("it ended %s (%s)", status, text)
			}
			if name != "time" && n != 3 {
				t.Errorf("the reactor was asked %d times", n)
			}
		})
	}
}
