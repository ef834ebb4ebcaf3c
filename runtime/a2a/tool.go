package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// Parameters is the JSON Schema of a call's arguments.
const Parameters = `{"type":"object","properties":{` +
	`"message":{"type":"string","minLength":1,"description":"What to say to the agent."},` +
	`"task":{"type":"string","description":"The task of an earlier result whose state is input_required: the message answers it."}},` +
	`"required":["message"],"additionalProperties":false}`

// Options say which agent a tool is. URL and Reach are required.
type Options struct {
	// URL is the address of the agent's card, ending in .json, or what /.well-known/agent-card.json
	// follows.
	URL string
	// Token is the bearer token that goes with each request; default: none.
	Token string
	// Reach returns an endpoint for an address. It refuses one to which nothing, or not the token, may
	// be sent.
	Reach func(address string) (remote.Endpoint, error)
	// Logger receives why an agent could not be reached; default: none.
	Logger zerolog.Logger
}

// contextPrefix begins the id of a context, which a thread's id follows: a Skein would take that alone
// for a thread of its own.
const contextPrefix = "skein-"

// Times of a call.
const (
	firstPoll   = 200 * time.Millisecond // doubled with each, up to longestPoll
	longestPoll = 5 * time.Second
	cancelTime  = 5 * time.Second
	longestWork = time.Hour // the call's own limit ends it before
)

// Tool returns a tool that sends messages to an agent. A spec without parameters has [Parameters].
func Tool(o Options, spec runtime.ToolSpec) runtime.Tool {
	if len(spec.Parameters) == 0 {
		spec.Parameters = events.JSON(Parameters)
	}
	return &tool{options: o, spec: spec}
}

// tool is an agent.
type tool struct {
	options Options
	spec    runtime.ToolSpec

	agent atomic.Pointer[agent] // nil: its card was not read
}

// Spec implements runtime.Tool.
func (t *tool) Spec() runtime.ToolSpec { return t.spec }

// Call sends a message, and waits for what becomes of it.
func (t *tool) Call(ctx context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	var arguments struct {
		Message string `json:"message"`
		Task    string `json:"task"`
	}
	if err := json.Unmarshal(in.Arguments, &arguments); err != nil {
		return runtime.ToolResult{}, err
	}
	a, err := t.find(ctx)
	if err != nil {
		return runtime.ToolResult{}, notMade(err)
	}
	sum := sha256.Sum256([]byte(in.Key))
	got, err := t.begin(ctx, a, outgoing{ID: hex.EncodeToString(sum[:16]), Context: contextPrefix + in.ThreadID, Task: arguments.Task, Text: arguments.Message})
	if err == nil {
		got, err = t.await(ctx, a, got)
	}
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return runtime.Failed(t.text(refused.Error())), nil
	case err != nil:
		return runtime.ToolResult{}, err
	}
	return t.result(got), nil
}

// begin sends a message. If the call ends before it is answered, the task is canceled when the answer
// has come.
func (t *tool) begin(ctx context.Context, a *agent, m outgoing) (*answer, error) {
	type outcome struct {
		got *answer
		err error
	}
	sending, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan outcome, 1)
	go func() {
		got, err := t.send(sending, a, m)
		var refused *refusal
		if errors.As(err, &refused) && refused.Code == invalidParams && m.Task == "" { // agents may refuse contexts that they have not named
			m.Context = ""
			got, err = t.send(sending, a, m)
		}
		done <- outcome{got, err}
	}()
	select {
	case of := <-done:
		end()
		return of.got, of.err
	case <-ctx.Done():
	}
	time.AfterFunc(cancelTime, end)
	go func() {
		of := <-done
		t.cancel(ctx, a, of.got)
	}()
	return nil, context.Cause(ctx)
}

// await waits until a task has ended or needs input.
func (t *tool) await(ctx context.Context, a *agent, got *answer) (*answer, error) {
	for pauses := (retry.Policy{First: firstPoll, Max: longestPoll}).Start(); got.goesOn(); {
		err := pauses.Wait(ctx)
		if err == nil {
			var next *answer
			if next, err = t.get(ctx, a, got.task.ID); err == nil {
				got = next
			}
		}
		var again *runtime.RetryError
		switch {
		case ctx.Err() != nil:
			go t.cancel(ctx, a, got)
			return nil, context.Cause(ctx)
		case errors.As(err, &again): // the task goes on
		case err != nil:
			return nil, err
		}
	}
	return got, nil
}

// cancel cancels the task of a call that is no longer wanted, if the agent has named it.
func (t *tool) cancel(ctx context.Context, a *agent, of *answer) {
	if of == nil || of.task == nil || of.task.ID == "" {
		return
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer end()
	_, _ = t.rpc(ctx, a, a.version.method("CancelTask"), map[string]any{"id": of.task.ID}) // its agent may have ended it
}

// notMade returns an error before the message as one of a call that was not made.
func notMade(err error) error {
	var again *runtime.RetryError
	if errors.As(err, &again) {
		return &runtime.RetryError{After: again.After, NotMade: true, Err: again.Err}
	}
	return err
}

// wrong returns an error about the agent.
func (t *tool) wrong(what string) error {
	return errors.New("the agent of the tool " + t.spec.Name + " " + what)
}

// text returns what an agent says, for a model or in an error.
func (t *tool) text(said string) string {
	if t.options.Token != "" {
		said = strings.ReplaceAll(said, t.options.Token, "***")
	}
	return excerpt.Of(said, 4<<10)
}

// masked returns an error without the token, which an agent may repeat.
func (t *tool) masked(err error) error {
	if err == nil || t.options.Token == "" || !strings.Contains(err.Error(), t.options.Token) {
		return err
	}
	var again *runtime.RetryError
	if errors.As(err, &again) {
		return &runtime.RetryError{After: again.After, NotMade: again.NotMade, Absent: again.Absent, Err: errors.New(t.text(again.Err.Error()))}
	}
	return errors.New(t.text(err.Error()))
}
