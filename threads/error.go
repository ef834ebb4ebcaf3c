package threads

import (
	"fmt"

	"github.com/skein-threads/skein/events"
)

// The errors keep the texts of Amp, which begin with a capital letter.

// NotFoundError reports that there is no such thread.
type NotFoundError struct{ ID string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("Thread %s not found", e.ID) }

// NotLoadedError reports a change of a thread that does not exist.
type NotLoadedError struct{ ID string }

func (e *NotLoadedError) Error() string { return "Thread not loaded" }

// DisposedError reports the use of a ReadWriter that was disposed, or lost its thread.
type DisposedError struct{ ID string }

func (e *DisposedError) Error() string { return "Disposed" }

// HeldError reports that another ReadWriter holds the thread.
type HeldError struct {
	ID    string
	Cause error // the refusal, whose details name the holder and the end
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("Thread %s already has an exclusive reader-writer", e.ID)
}

func (e *HeldError) Unwrap() error { return e.Cause }

// TimeoutError reports that a thread did not reach a version in time.
type TimeoutError struct {
	ID      string
	Version int64
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("Timeout waiting for thread %s to reach version %d", e.ID, e.Version)
}

// SummaryError reports that the agent of a handoff wrote no summary.
type SummaryError struct{ ID, Reason string }

func (e *SummaryError) Error() string {
	return fmt.Sprintf("hand off thread %s: its summary was not written: %s", e.ID, e.Reason)
}

// UnsupportedError reports a change of a document that no command makes. Nothing was stored.
type UnsupportedError struct {
	Path string // in the document, a JSON pointer
	Why  string // and what to do instead
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("update thread: %s: %s", e.Path, e.Why)
}

func unsupported(path, why string) error { return &UnsupportedError{Path: path, Why: why} }

// named converts a not_found to a *NotFoundError, and returns any other error unchanged.
func named(id string, err error) error {
	if events.IsNotFound(err) {
		return &NotFoundError{ID: id}
	}
	return err
}
