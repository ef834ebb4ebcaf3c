package eventlog

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// outcome is what a broker's answer to a publish means.
type outcome int

const (
	stored      outcome = iota // it is in the log
	conflict                   // refused: another sequence was last; or an earlier try was stored
	underway                   // refused: a write of the subject is on its way, and may come to nothing
	tooLarge                   // refused: it will never fit
	tooMany                    // refused: too many in one batch; fewer may pass
	unavailable                // refused: nothing was stored; the same may pass later
	unknown                    // no answer that tells
)

// brokerError is JetStream's refusal, as an acknowledgement holds it.
type brokerError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *brokerError) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.ErrCode) }

// JetStream's codes that a publish can meet.
const (
	codeWrongLastSequence  = 10071 // the subject has another last sequence
	codeWrongLastID        = 10070 // the stream's last message has another id
	codeWrongLastUnderWay  = 10164 // a second check of a subject within a batch, or one while a write of it is on its way
	codeBatchIncomplete    = 10176 // a gap in a batch, or it was given up
	codeBatchTooLarge      = 10199 // more messages than a batch may have
	codeBatchDuplicate     = 10201 // an id in the batch is known
	codeBatchTooManyOpen   = 10210 // too many batches under way
	codeMessageTooLarge    = 10054 // over the stream's limit
	codeStreamStoreFailed  = 10077 // a limit of the stream was reached
	codeInsufficient       = 10023 // resources
	codeTooManyWaiting     = 10167 // the stream's queue is full
	codeStreamOffline      = 10118
	codeClusterUnavailable = 10008
	codeNoMessage          = 10037 // to a read: there is none (10059 is: there is no stream)
)

// classify says what an answer means: the one place that knows the broker's
// codes. err is that of the request, answer the refusal within its reply.
func classify(err error, answer *brokerError) outcome {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return unavailable // nobody took the message
	case errors.Is(err, nats.ErrMaxPayload):
		return tooLarge // the client did not send it
	case errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrReconnectBufExceeded):
		return unavailable // nor here
	case err != nil:
		return unknown // a timeout, or a connection that was closed after the message was sent
	case answer == nil:
		return stored
	}
	switch answer.ErrCode {
	case codeWrongLastSequence, codeWrongLastID, codeBatchDuplicate:
		return conflict
	case codeWrongLastUnderWay:
		return underway
	case codeBatchIncomplete:
		return unknown
	case codeBatchTooLarge:
		return tooMany
	case codeMessageTooLarge:
		return tooLarge
	case codeBatchTooManyOpen, codeStreamStoreFailed, codeInsufficient, codeTooManyWaiting, codeStreamOffline, codeClusterUnavailable:
		return unavailable
	}
	if answer.Code == 503 || answer.Code >= 400 && answer.Code < 500 {
		return unavailable // whatever it is, the server says that it refused
	}
	return unknown
}

// ConflictError says that an aggregate has moved on: nothing was written. Read
// what came after Expected and decide anew.
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
