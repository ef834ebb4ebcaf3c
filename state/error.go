package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/skein-threads/skein/events"
)

var errShutdown = errors.New("state: the application has shut down")

// EndedError reports the use of the state of a request that has ended.
type EndedError struct{ SessionID string }

func (e *EndedError) Error() string {
	return fmt.Sprintf("state of session %s: the request has ended; do work that outlives a handler in state.WaitUntil", e.SessionID)
}

// UnfinishedError reports that requests or background work were still in progress when the time to
// shut down was over.
type UnfinishedError struct {
	Count int // requests and background work
	Cause error
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("shut down: %d requests and pieces of background work are still in progress; give them more time, or end them by their contexts: %v", e.Count, e.Cause)
}

func (e *UnfinishedError) Unwrap() error { return e.Cause }

// timeoutError reports that a listener has used up its time.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the listener has not returned after %v; set a longer Timeout, or do less in a run", e.after)
}

// PanicError is a panic of background work, a listener or an agent.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// unsure reports whether a failed command may have been executed, or may still be.
func unsure(err error) bool {
	var e *events.Error
	return !errors.As(err, &e) || e.Retry()
}
