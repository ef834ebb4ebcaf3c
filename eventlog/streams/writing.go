package streams

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// Writing knows whether what a process writes is stored. The connections of the process share
// it. Its zero value knows of no trouble. It is safe for concurrent use.
type Writing struct {
	// Room returns why the store has no room for so many more bytes, or nil. It is asked before
	// each write, so it must return at once. Nil: there is room until the server refuses.
	Room func(bytes int) error

	wanted  atomic.Int64            // bytes of the largest write that had no room; it has none until they fit
	full    atomic.Pointer[Refusal] // the server's last answer, if its storage limit was reached
	failing atomic.Pointer[FailingError]
}

// FullError says that the store has no room for a write. Nothing was written.
type FullError struct{ Cause error }

func (e *FullError) Error() string { return fmt.Sprintf("the store is full: %v", e.Cause) }

// Unwrap returns the cause, and what callers of Skein are told.
func (e *FullError) Unwrap() []error { return []error{e.Cause, refusedForRoom()} }

func refusedForRoom() error {
	return events.Errorf(events.Unavailable, "the store is full, so that nothing is stored until its operator has made room; nothing was written")
}

// FailingError says that the server answers, but does not store the log's writes.
type FailingError struct {
	Stream string
	Cause  error // of the last write
}

func (e *FailingError) Error() string {
	return fmt.Sprintf("the server does not store writes to stream %s: %v; see the log of nats-server", e.Stream, e.Cause)
}

func (e *FailingError) Unwrap() error { return e.Cause }

// Err returns a *[FullError] or a *[FailingError] if nothing is stored now, as far as is known.
func (w *Writing) Err() error {
	wanted := w.wanted.Load()
	if err := w.RoomFor(int(wanted)); err != nil {
		return err
	}
	w.wanted.CompareAndSwap(wanted, 0)
	if refused := w.full.Load(); refused != nil {
		return &FullError{Cause: refused}
	}
	if failing := w.failing.Load(); failing != nil {
		return failing
	}
	return nil
}

// RoomFor returns a *FullError if a write of so many bytes would not fit.
func (w *Writing) RoomFor(bytes int) error {
	if w == nil || w.Room == nil {
		return nil
	}
	err := w.Room(bytes)
	if err == nil {
		return nil
	}
	for {
		wanted := w.wanted.Load()
		if int64(bytes) <= wanted || w.wanted.CompareAndSwap(wanted, int64(bytes)) {
			return &FullError{Cause: err}
		}
	}
}

// Answered notes the server's answer to a write; nil: it was stored. The server compares what it
// stores with its limit before anything else, so any other refusal proves that there is room.
func (w *Writing) Answered(refused *Refusal) {
	if refused != nil && refused.ErrCode == codeInsufficient {
		w.full.Store(refused)
	} else if w.full.Load() != nil {
		w.full.Store(nil)
	}
}

// AnsweredAs is Answered for the error of a write by package jetstream.
func (w *Writing) AnsweredAs(err error) {
	var refused *jetstream.APIError
	switch {
	case err == nil:
		w.Answered(nil)
	case errors.As(err, &refused):
		w.Answered(&Refusal{Code: refused.Code, ErrCode: int(refused.ErrorCode), Description: refused.Description})
	}
}

// Failed notes that the server did not store a write to a stream, though it answers.
func (w *Writing) Failed(stream string, cause error) {
	w.failing.Store(&FailingError{Stream: stream, Cause: cause})
}

// Stored notes that the server stored a write to the stream of which Failed told.
func (w *Writing) Stored() {
	if w.failing.Load() != nil {
		w.failing.Store(nil)
	}
}
