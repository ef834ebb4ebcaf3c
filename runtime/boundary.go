package runtime

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// Returned returns what a reactor, a tool, an effect or a hook has returned as its error, as an
// error whose methods are safe: it has its text, and what the first *RetryError in its tree
// requests, and nothing else of it. The methods of the error itself may panic; a nil *RetryError
// requests nothing. It is nil for nil.
//
// Every error of code that is not Skein's passes here once, where that code was called.
func Returned(err error) error {
	if err == nil {
		return nil
	}
	safe := errors.New(excerpt.OfError(err, maxErrorText))
	if later := retryIn(err); later != nil {
		return &RetryError{After: later.After, NotMade: later.NotMade, Absent: later.Absent, Err: safe}
	}
	return safe
}

// retryIn returns the first *RetryError in the tree of an error; nil if there is none.
func retryIn(err error) (later *RetryError) {
	defer func() {
		if recover() != nil { // a method of the error
			later = nil
		}
	}()
	errors.As(err, &later)
	return later
}

// logPanic logs the value and the stack of a panic of code that is not Skein's. Call it where the
// panic is recovered. The value is for the log only: it may contain anything.
func logPanic(log *zerolog.Event, value any, what string) {
	log.Str("panic", clip(fmt.Sprint(value))).Bytes("stack", debug.Stack()).Msg(what + " panicked")
}

// askPolicy asks the loop policy of the agent whether another step follows. ok is false if the
// policy panicked.
func (t *turn) askPolicy(o Outcome) (goes, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			logPanic(t.logger.Error().Str("agent", t.agent.Name), p, "a loop policy")
		}
	}()
	return t.agent.Continue(o), true
}

// ask returns the question of a person tool, and the schema of its answer. ok is false if the
// tool panicked.
func (t *turn) ask(tool PersonTool, arguments events.JSON) (question string, answer events.JSON, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			logPanic(t.logger.Error().Str("tool", tool.Spec().Name), p, "a tool")
		}
	}()
	question, answer = tool.Ask(arguments)
	return question, answer, true
}

// registered is a tool of this process with the spec that it had when it was registered: Spec,
// which may panic, is not called again.
type registered struct {
	Tool
	spec ToolSpec
}

// Spec implements Tool.
func (r registered) Spec() ToolSpec { return r.spec }

// registeredPerson is the same for a tool that asks a person.
type registeredPerson struct {
	registered
	person PersonTool
}

// Ask implements PersonTool.
func (r registeredPerson) Ask(arguments events.JSON) (string, events.JSON) {
	return r.person.Ask(arguments)
}

// registeredAgent is the same for a tool that is another agent.
type registeredAgent struct {
	registered
	agent string
	apart bool
}

// AgentName implements AgentTool.
func (r registeredAgent) AgentName() string { return r.agent }

// Apart implements AgentTool.
func (r registeredAgent) Apart() bool { return r.apart }

// register returns a tool as it is registered.
func register(tool Tool, spec ToolSpec) Tool {
	r := registered{tool, spec}
	switch t := tool.(type) {
	case PersonTool:
		return registeredPerson{r, t}
	case AgentTool:
		return registeredAgent{r, t.AgentName(), t.Apart()}
	}
	return r
}
