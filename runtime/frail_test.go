package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
)

// frail is an error whose methods panic for a nil pointer, as those of most errors do.
type frail struct{ text string }

func (f *frail) Error() string              { return f.text }
func (f *frail) As(any) bool                { panic("in As: " + f.text) }
func (f *frail) String() string             { panic("in String") }
func (*frail) MarshalJSON() ([]byte, error) { panic("in MarshalJSON") }

// frailErrors are the errors of code that is not Skein's at which a careless reader panics.
func frailErrors() map[string]error {
	return map[string]error{
		"a nil pointer":                   (*frail)(nil),
		"methods that panic":              &frail{"here"},
		"a nil RetryError":                (*RetryError)(nil),
		"a RetryError without an error":   &RetryError{},
		"one that is joined":              errors.Join(nil, &RetryError{}),
		"one that is wrapped":             fmt.Errorf("the model: %w", &RetryError{Err: (*frail)(nil)}),
		"a RetryError of a nil pointer":   &RetryError{Err: (*frail)(nil)},
		"a nil RetryError that is joined": errors.Join((*RetryError)(nil), errors.New("and more")),
	}
}

func TestReturned(t *testing.T) {
	t.Parallel()
	if err := Returned(nil); err != nil {
		t.Errorf("nil became %v", err)
	}
	for name, err := range frailErrors() {
		got := Returned(err)
		var later *RetryError
		if got == nil || got.Error() == "" || errors.As(got, &later) && later == nil {
			t.Errorf("%s became %v", name, got)
		}
	}
	got := Returned(fmt.Errorf("the model: %w", &RetryError{After: time.Minute, NotMade: true, Absent: true, Err: errors.New("busy")}))
	var later *RetryError
	if !errors.As(got, &later) || later.After != time.Minute || !later.NotMade || !later.Absent || got.Error() != "the model: busy" {
		t.Errorf("it became %+v", got)
	}
	if text := Returned((*frail)(nil)).Error(); text != "an error of the type *runtime.frail, whose text cannot be read" {
		t.Error(text)
	}
}

// An error whose methods panic ends its run, and not the process, wherever it comes from.
func TestFrailErrors_OfRuns(t *testing.T) {
	t.Parallel()
	for name, err := range frailErrors() {
		for from, hooks := range map[string]Hooks{
			"the reactor": {}, "the tool": {},
			"before a run":  {BeforeRun: func(context.Context, ThreadState) error { return err }},
			"before a step": {BeforeStep: func(context.Context, ThreadState, *StepInput) error { return err }},
			"after a step":  {AfterStep: func(context.Context, ThreadState, *StepInput, *Reaction) error { return err }},
			"before a tool": {BeforeTool: func(context.Context, ThreadState, *ToolInput) (*ToolResult, error) { return nil, err }},
			"after a tool":  {AfterTool: func(context.Context, ThreadState, *ToolInput, *ToolResult) error { return err }},
		} {
			t.Run(from+", "+name, func(t *testing.T) {
				w := newWorld(t)
				reactor := script(says("x", call("c1", "f", `{}`)), says("y"))
				if from == "the reactor" {
					reactor = ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) { return nil, err })
				}
				a := w.agent("a", reactor, tool{ToolSpec{Name: "f", Idempotent: true}, func(context.Context, *ToolInput) (ToolResult, error) {
					if from == "the tool" {
						return ToolResult{}, err
					}
					return Done(text("done")), nil
				}})
				a.Retries.Attempts, a.Retries.Backoff = 2, -1
				w.work(Config{Hooks: hooks})
				want := events.ExecutionFailed
				if strings.HasSuffix(from, "tool") { // the model sees it
					want = events.ExecutionCompleted
				}
				if status, text, _ := endOf(t, w.finished(w.begin("a", "hello"))); status != want || status == events.ExecutionFailed && text == "" {
					t.Errorf("it ended %s (%s)", status, text)
				}
			})
		}
	}
}

// A loop policy that panics fails its run, and says so; what the step answered is recorded.
func TestLoopPolicy_Panics(t *testing.T) {
	t.Parallel()
	for name, reactor := range map[string]Reactor{
		"after an answer": script(says("x")), "after calls": script(says("x", call("c1", "f", `{}`)), says("y")),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent("a", reactor, tool{ToolSpec{Name: "f"}, func(context.Context, *ToolInput) (ToolResult, error) { return Done(text("done")), nil }}).
				Continue = func(Outcome) bool { panic("secret") }
			w.work(Config{})
			all := w.finished(w.begin("a", "hello"))
			if status, text, _ := endOf(t, all); status != events.ExecutionFailed || text != "the loop policy of agent a panicked" {
				t.Errorf("it ended %s (%s)", status, text)
			}
		})
	}
}

// asker is a person tool whose question panics.
type asker struct{ tool }

func (asker) Ask(events.JSON) (string, events.JSON) { panic("secret") }

// A person tool that panics is a failed call, which asks no question.
func TestPersonTool_Panics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("a", script(says("x", call("c1", "f", `{}`)), says("y")), asker{tool{spec: ToolSpec{Name: "f"}}})
	w.work(Config{})
	all := w.finished(w.begin("a", "hello"))
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
	for _, e := range all {
		if d, ok := e.Data.(events.PartUpdated); ok && !strings.Contains(string(d.Part), "the tool panicked") {
			t.Errorf("the part is %s", d.Part)
		}
	}
}

// moody is a tool whose description panics after it was registered.
type moody struct {
	tool
	asked *int
}

func (m moody) Spec() ToolSpec {
	if *m.asked++; *m.asked > 1 {
		panic("secret")
	}
	return m.spec
}

// The spec of a registered tool is what it was at registration.
func TestRegistry_AsksForSpecOnce(t *testing.T) {
	t.Parallel()
	r := NewRegistry(nil)
	if err := r.AddTool(moody{tool{spec: ToolSpec{Name: "f"}}, new(int)}); err != nil {
		t.Fatal(err)
	}
	found, err := r.Tool("f")
	if err != nil || found.Spec().Name != "f" {
		t.Errorf("found %v, %v", found, err)
	}
}

// The log has the value of a panic, also one whose methods panic.
func TestPanic_IsLoggedWithItsValue(t *testing.T) {
	t.Parallel()
	for _, value := range []any{"no such customer", errors.New("no such customer"), &frail{"no such customer"}, (*frail)(nil)} {
		var log bytes.Buffer
		logger := zerolog.New(&log)
		LogPanic(logger.Error(), value, "a tool")
		if line := log.String(); !strings.Contains(line, `"panic":"`) || !strings.Contains(line, "frail_test.go") || !strings.Contains(line, "a tool panicked") ||
			value != any((*frail)(nil)) && !strings.Contains(line, "no such customer") {
			t.Errorf("%T: %s", value, line)
		}
	}
}
