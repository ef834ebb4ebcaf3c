package agents

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

// a2aParameters is the JSON Schema of a call's arguments.
const a2aParameters = `{"type":"object","properties":{` +
	`"message":{"type":"string","minLength":1,"description":"What to say to the agent."},` +
	`"task":{"type":"string","description":"The task of an earlier result whose state is input_required: the message answers it."}},` +
	`"required":["message"],"additionalProperties":false}`

// A2AOptions say which agent a tool is. URL and Reach are required.
type A2AOptions struct {
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

// NewA2ATool returns a tool that sends messages to an agent. A spec without parameters has a2aParameters.
func NewA2ATool(o A2AOptions, spec runtime.ToolSpec) runtime.Tool {
	if len(spec.Parameters) == 0 {
		spec.Parameters = events.JSON(a2aParameters)
	}
	return &a2aTool{options: o, spec: spec}
}

// a2aTool is an agent that speaks the Agent2Agent protocol: a call sends it a message, waits until its
// task has ended or needs input, and returns what it produced.
//
//   - The agent's card decides how it is spoken to: JSON-RPC of version 1.0, or of 0.3.
//   - The messages of a thread are one context, so the agent knows what was said before. A task that
//     needs input is a result that names the task, and a call with that task continues it.
//   - A message has an id that every attempt at the call shares, so that an agent that knows ids of
//     messages works on it once.
//   - A call whose context ends cancels the task, if the agent has named it.
//   - The token goes only where Reach says, whatever a card says, and no error holds it.
//
// It does not subscribe: tasks are polled, so that neither a lost connection nor a slow agent breaks a
// call. It trusts nothing of a card but addresses that Reach allows.
type a2aTool struct {
	options A2AOptions
	spec    runtime.ToolSpec

	agent atomic.Pointer[a2aAgent] // nil: its card was not read
}

// Spec implements runtime.Tool.
func (t *a2aTool) Spec() runtime.ToolSpec { return t.spec }

// Call sends a message, and waits for what becomes of it.
func (t *a2aTool) Call(ctx context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
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
func (t *a2aTool) begin(ctx context.Context, a *a2aAgent, m outgoing) (*answer, error) {
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
func (t *a2aTool) await(ctx context.Context, a *a2aAgent, got *answer) (*answer, error) {
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
func (t *a2aTool) cancel(ctx context.Context, a *a2aAgent, of *answer) {
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
func (t *a2aTool) wrong(what string) error {
	return errors.New("the agent of the tool " + t.spec.Name + " " + what)
}

// text returns what an agent says, for a model or in an error.
func (t *a2aTool) text(said string) string {
	if t.options.Token != "" {
		said = strings.ReplaceAll(said, t.options.Token, "***")
	}
	return excerpt.Of(said, 4<<10)
}

// masked returns an error without the token, which an agent may repeat.
func (t *a2aTool) masked(err error) error {
	if err == nil || t.options.Token == "" || !strings.Contains(err.Error(), t.options.Token) {
		return err
	}
	var again *runtime.RetryError
	if errors.As(err, &again) {
		return &runtime.RetryError{After: again.After, NotMade: again.NotMade, Absent: again.Absent, Err: errors.New(t.text(again.Err.Error()))}
	}
	return errors.New(t.text(err.Error()))
}
