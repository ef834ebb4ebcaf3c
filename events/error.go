package events

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Code is the kind of a refusal, as it appears on the wire.
type Code string

// The codes. Each comment says what the code means for the write.
const (
	InvalidRequest    Code = "invalid_request"    // 400: the request is wrong in itself; nothing was written
	Unauthorized      Code = "unauthorized"       // 401: the caller is not authenticated
	Forbidden         Code = "forbidden"          // 403: the caller is not allowed to
	NotFound          Code = "not_found"          // 404: what it names does not exist, or was deleted
	VersionConflict   Code = "version_conflict"   // 409: the thread has another version; read it and decide again
	AlreadyExists     Code = "already_exists"     // 409: the id or key is in use
	Held              Code = "held"               // 409: another writer holds the thread, or the caller's own hold has ended; nothing was written
	PositionAhead     Code = "position_ahead"     // 409: the position is of another log, or beyond the end of this one; read again from the start
	PayloadTooLarge   Code = "payload_too_large"  // 413: too many bytes; nothing was written
	IllegalTransition Code = "illegal_transition" // 422: the state machine does not allow it
	QueueFull         Code = "queue_full"         // 429: try again later
	Unavailable       Code = "unavailable"        // 503: nothing was written; try again
	ProjectionBehind  Code = "projection_behind"  // 503: the read model has not caught up; try again
)

// Status returns the number of the code in the header Nats-Service-Error-Code, which is an
// HTTP status.
func (c Code) Status() int {
	switch c {
	case InvalidRequest:
		return 400
	case Unauthorized:
		return 401
	case Forbidden:
		return 403
	case NotFound:
		return 404
	case VersionConflict, AlreadyExists, Held, PositionAhead:
		return 409
	case PayloadTooLarge:
		return 413
	case IllegalTransition:
		return 422
	case QueueFull:
		return 429
	default:
		return 503
	}
}

// Retry reports whether the same request may succeed later, unchanged: its code says so, and the
// refusal names no damage, which stays until the operator has repaired the store.
func (e *Error) Retry() bool {
	switch e.Code {
	case Unavailable, QueueFull, ProjectionBehind:
		return !IsUnreadable(e)
	}
	return false
}

// Error is a refusal: of a command, of a query, of the command line. It is the
// only error that crosses the wire.
type Error struct {
	Code    Code          `json:"code"`
	Message string        `json:"message"`
	Details *ErrorDetails `json:"details,omitzero"`
	Cause   error         `json:"-"`
}

// ErrorDetails describes a refusal further; which fields are set depends on the code.
type ErrorDetails struct {
	Path           string   `json:"path,omitzero"`           // invalid_request: the JSON pointer of what is wrong
	CurrentVersion *int64   `json:"currentVersion,omitzero"` // version_conflict, position_ahead
	Entity         string   `json:"entity,omitzero"`         // illegal_transition, not_found, already_exists
	ID             string   `json:"id,omitzero"`
	From           string   `json:"from,omitzero"`
	To             string   `json:"to,omitzero"`
	Allowed        []string `json:"allowed,omitzero"` // illegal_transition; empty if the state is final
	Limit          int64    `json:"limit,omitzero"`   // payload_too_large, in bytes
	Size           int64    `json:"size,omitzero"`
	Command        *int     `json:"command,omitzero"` // index in thread.commit's list of the command at fault
	Seq            int64    `json:"seq,omitzero"`     // projection_behind, position_ahead: the sequence it has reached
	Log            string   `json:"log,omitzero"`     // position_ahead: the log that there is; see HistoryEnd
	Outcome        string   `json:"outcome,omitzero"` // "unknown": ask again with the same commandId
	Holder         string   `json:"holder,omitzero"`  // held: the writer that holds the thread; absent if none does
	Until          string   `json:"until,omitzero"`   // held: when its hold ends
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// Is compares codes: errors.Is(err, &Error{Code: c}).
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code && t.Message == ""
}

// HasCode reports whether err is a refusal with one of the codes. Of refusals that wrap each other
// the outermost counts: it is the one that a caller would be sent. An error that is no refusal has
// no code.
func HasCode(err error, codes ...Code) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// IsNotFound reports whether err is a not_found.
func IsNotFound(err error) bool { return HasCode(err, NotFound) }

// Errorf returns a refusal. A %w in the format becomes its cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// Invalid returns an invalid_request that names the failing path, a JSON pointer.
func Invalid(path, format string, args ...any) *Error {
	e := Errorf(InvalidRequest, format, args...)
	e.Details = &ErrorDetails{Path: path}
	return e
}

// Missing returns a not_found that names what was looked for.
func Missing(entity, id string) *Error {
	e := Errorf(NotFound, "%s not found: %s", entity, clip(id))
	e.Details = &ErrorDetails{Entity: entity, ID: clip(id)}
	return e
}

// MissingThread returns a not_found in the words of the commands that relate threads.
func MissingThread(id string) *Error {
	e := Errorf(NotFound, "Thread %s not found", clip(id))
	e.Details = &ErrorDetails{Entity: "thread", ID: clip(id)}
	return e
}

// Taken returns an already_exists.
func Taken(entity, id string) *Error {
	e := Errorf(AlreadyExists, "%s already exists: %s", entity, clip(id))
	e.Details = &ErrorDetails{Entity: entity, ID: clip(id)}
	return e
}

// AnsweredOtherwise returns the illegal_transition of another answer to a call that was answered. is says
// how it was: granted, denied or resolved.
func AnsweredOtherwise(call, is string) *Error {
	e := Errorf(IllegalTransition, "call %s was answered before, and otherwise: it is %s; read the thread to see the answer", clip(call), is)
	e.Details = &ErrorDetails{Entity: "answered call", ID: clip(call)}
	return e
}

// deletedThread is the entity of a refusal that TakenByDeleted returns.
const deletedThread = "deleted thread"

// IsTakenByDeleted reports whether err is the refusal that TakenByDeleted returns.
func IsTakenByDeleted(err error) bool {
	e := AsError(err)
	return e.Code == AlreadyExists && e.Details != nil && e.Details.Entity == deletedThread
}

// TakenByDeleted returns the already_exists of a thread that was deleted.
func TakenByDeleted(thread string) *Error {
	e := Taken(deletedThread, thread)
	e.Message = fmt.Sprintf("thread %s was deleted, and no thread has its id again; create one with another id", clip(thread))
	return e
}

// unreadableStream is the entity of a refusal that Unreadable returns.
const unreadableStream = "unreadable stream"

// Unreadable returns the unavailable of a stream that cannot be read from a sequence on, although
// its server answers. It is not worth repeating.
func Unreadable(stream string, from int64, cause error) *Error {
	e := Errorf(Unavailable, "stream %s cannot be read from sequence %d on: a block of it is damaged, which the operator's skein store check names; "+
		"skein store repair restores it", stream, from)
	e.Details, e.Cause = &ErrorDetails{Entity: unreadableStream, ID: stream, Seq: from}, cause
	return e
}

// IsUnreadable reports whether err is the refusal that Unreadable returns.
func IsUnreadable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == Unavailable && e.Details != nil && e.Details.Entity == unreadableStream
}

// ReusedID returns the already_exists of a command whose id another command has used.
func ReusedID(commandID string) *Error {
	e := Errorf(AlreadyExists, "commandId %s was used for another command; send each command with an id of its own, and a repeat unchanged", clip(commandID))
	e.Details = &ErrorDetails{Path: "/commandId", Entity: "command", ID: clip(commandID)}
	return e
}

// IsReusedID reports whether err is the refusal that ReusedID returns.
func IsReusedID(err error) bool {
	e := AsError(err)
	return e.Code == AlreadyExists && e.Details != nil && e.Details.Path == "/commandId"
}

// Conflict returns a version_conflict with the thread's current version.
func Conflict(expected, current int64) *Error {
	e := Errorf(VersionConflict, "the thread is at version %d, not %d", current, expected)
	e.Details = &ErrorDetails{CurrentVersion: &current}
	return e
}

// DefinitionsConflict returns a version_conflict with the current version of a tenant's definitions.
func DefinitionsConflict(expected, current int64) *Error {
	e := Conflict(expected, current)
	e.Message = fmt.Sprintf("the tenant's definitions are at version %d, not %d", current, expected)
	return e
}

// TooLarge returns a payload_too_large with the size and the limit in bytes.
func TooLarge(what string, size, limit int64) *Error {
	e := Errorf(PayloadTooLarge, "%s has %d bytes; at most %d are allowed", what, size, limit)
	e.Details = &ErrorDetails{Size: size, Limit: limit}
	return e
}

// AsError returns the refusal that err is or wraps. A *TransitionError becomes an
// illegal_transition. Any other error becomes unavailable; its text is kept as the cause only,
// so that no internals cross the wire.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var t *TransitionError
	if errors.As(err, &t) {
		return &Error{Code: IllegalTransition, Message: t.Error(), Cause: err, Details: &ErrorDetails{
			Entity: t.Entity, ID: t.ID, From: t.From, To: t.To, Allowed: t.Allowed,
		}}
	}
	return &Error{Code: Unavailable, Message: "the service could not do it now; nothing was written", Cause: err}
}

// errorBody is the body of a refusal on the wire.
type errorBody struct {
	Error *Error `json:"error"`
}

// Headers returns the headers of a reply that refuses with the error.
func (e *Error) Headers() map[string][]string {
	return map[string][]string{HeaderErrorCode: {strconv.Itoa(e.Code.Status())}, HeaderError: {string(e.Code)}}
}

// DecodeRefusal returns the error that a reply refuses with, nil if code, its HeaderErrorCode, is empty.
func DecodeRefusal(code string, body []byte) *Error {
	if code == "" {
		return nil
	}
	if e := DecodeError(body); e != nil {
		return e
	}
	return Errorf(Unavailable, "the service refused with %s and gave no reason", code)
}

// EncodeError encodes the body of a refusal: {"error": {...}}.
func EncodeError(e *Error) []byte {
	b, err := json.Marshal(errorBody{e}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil { // the details are plain values: cannot fail
		return []byte(`{"error":{"code":"` + string(e.Code) + `","message":"the error could not be written"}}`)
	}
	return b
}

// DecodeError decodes the body of a refusal. It returns nil if body is none.
func DecodeError(body []byte) *Error {
	var b errorBody
	if json.Unmarshal(body, &b, jsontext.AllowInvalidUTF8(true)) != nil || b.Error == nil || b.Error.Code == "" {
		return nil
	}
	return b.Error
}
