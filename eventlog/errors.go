package eventlog

import "fmt"

// ConflictError says that an aggregate has moved on: nothing was written. Read what came
// after Expected and decide again.
type ConflictError struct {
	Subject  string
	Expected uint64
	Last     uint64 // the sequence that comes after Expected; 0 if that is not known
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s has moved on from sequence %d", e.Subject, e.Expected)
}

// UnknownError says that a commit may or may not be stored, and that the log
// could not be asked. Do not report it as a failure; repeat the command with
// the same id.
type UnknownError struct{ Cause error }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("it is not known whether the commit was stored: %v", e.Cause)
}

func (e *UnknownError) Unwrap() error { return e.Cause }

// UnavailableError says that the log refused a commit for now: nothing was
// written, and the same may pass later.
type UnavailableError struct{ Cause error }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the log takes nothing now: %v", e.Cause)
}

func (e *UnavailableError) Unwrap() error { return e.Cause }

// TooLargeError says that a commit is larger than the server takes: nothing was
// written, and it never will be.
type TooLargeError struct {
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a commit of %d bytes; the log takes %d", e.Size, e.Limit)
}
