package streams

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Outcome is the meaning of the server's answer to a publish.
type Outcome int

// Outcomes of a publish.
const (
	Stored      Outcome = iota // it is in the stream
	Conflict                   // refused: another sequence was last; or an earlier try was stored
	InFlight                   // refused: a write of the subject is in flight, and may still fail
	TooLarge                   // refused: it will never fit
	TooMany                    // refused: too many in one batch; fewer may pass
	Unavailable                // refused: nothing was stored; the same may pass later
	Unknown                    // no conclusive answer
)

// Refusal is JetStream's error, as an answer of its API holds it.
type Refusal struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *Refusal) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.ErrCode) }

// Unwrap returns what callers of Skein are told of a server whose storage limit was reached.
func (e *Refusal) Unwrap() error {
	if e.ErrCode == codeInsufficient {
		return refusedForRoom()
	}
	return nil
}

// JetStream's error codes that a publish or a read can meet.
const (
	codeWrongLastSequence  = 10071 // the subject has another last sequence
	codeWrongLastID        = 10070 // the stream's last message has another id
	codeWrongLastInFlight  = 10164 // a second check of a subject within a batch, or one while a write of it is in flight
	codeBatchIncomplete    = 10176 // a gap in a batch, or it was abandoned
	codeBatchTooLarge      = 10199 // more messages than a batch may have
	codeBatchDuplicate     = 10201 // an id in the batch is known
	codeBatchTooManyOpen   = 10210 // too many batches in flight
	codeMessageTooLarge    = 10054 // over the stream's limit
	codeStreamStoreFailed  = 10077 // a limit of the stream was reached
	codeInsufficient       = 10023 // to a write: the server's storage limit was reached
	codeTooManyWaiting     = 10167 // the stream's queue is full
	codeStreamOffline      = 10118
	codeClusterUnavailable = 10008
	codeNoStream           = 10059 // to a read
	codeNoMessage          = 10037 // to a read: there is none (10059 is: there is no stream)
)

// Classify says what an answer means: the one place that knows the server's error codes. err is the
// error of the request, refused the error within its reply.
func Classify(err error, refused *Refusal) Outcome {
	var full *FullError
	switch {
	case errors.As(err, &full):
		return Unavailable // it was not sent
	case errors.Is(err, nats.ErrNoResponders):
		return Unavailable // nobody received the message
	case errors.Is(err, nats.ErrMaxPayload):
		return TooLarge // the client did not send it
	case errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrReconnectBufExceeded):
		return Unavailable // nor here
	case err != nil:
		return Unknown // a timeout, or a connection that was closed after the message was sent
	case refused == nil:
		return Stored
	}
	switch refused.ErrCode {
	case codeWrongLastSequence, codeWrongLastID, codeBatchDuplicate:
		return Conflict
	case codeWrongLastInFlight:
		return InFlight
	case codeBatchIncomplete:
		return Unknown
	case codeBatchTooLarge:
		return TooMany
	case codeMessageTooLarge:
		return TooLarge
	case codeBatchTooManyOpen, codeStreamStoreFailed, codeInsufficient, codeTooManyWaiting, codeStreamOffline, codeClusterUnavailable:
		return Unavailable
	}
	if refused.Code == 503 || refused.Code >= 400 && refused.Code < 500 {
		return Unavailable // whatever it is, the server says that it refused
	}
	return Unknown
}

// IsNoStream reports whether an error is the server's answer that there is no such stream.
func IsNoStream(err error) bool {
	var refused *Refusal
	return errors.As(err, &refused) && refused.ErrCode == codeNoStream
}
