package a2a

import (
	"errors"
	"net/http"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/internal/excerpt"
)

// Codes of JSON-RPC.
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603
)

// refusal is an error of the protocol.
type refusal struct {
	code   int    // of JSON-RPC
	reason string // empty: JSON-RPC's own
	http   int
	text   string
}

func (e *refusal) Error() string { return e.text }

func noTask(id string) error {
	return &refusal{-32001, "TASK_NOT_FOUND", http.StatusNotFound, "there is no task " + excerpt.Of(id, 200)}
}

func notCancelable(id, state string) error {
	return &refusal{-32002, "TASK_NOT_CANCELABLE", http.StatusBadRequest, "task " + id + " cannot be cancelled: it has ended with " + state}
}

func noPush(task, id string) error {
	return &refusal{-32001, "TASK_NOT_FOUND", http.StatusNotFound, "task " + task + " has no configuration of push notifications " + excerpt.Of(id, 200) + ", or has ended"}
}

func unsupported(text string) error {
	return &refusal{-32004, "UNSUPPORTED_OPERATION", http.StatusBadRequest, text}
}

func wrongVersion(v string) error {
	return &refusal{-32009, "VERSION_NOT_SUPPORTED", http.StatusBadRequest, "A2A-Version " + excerpt.Of(v, 32) + " is not supported here; 1.0 is, and 0.3 over JSON-RPC"}
}

// detail is an object that says more of an error.
type detail struct {
	Type       string            `json:"@type"`
	Reason     string            `json:"reason,omitzero"`
	Domain     string            `json:"domain,omitzero"`
	Violations []violation       `json:"fieldViolations,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

// violation is a field that is wrong.
type violation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

// told is how an error is told.
type told struct {
	code    int // of JSON-RPC
	http    int
	rpc     int // the status of an answer of JSON-RPC
	text    string
	details []detail
}

// tell returns how an error is told, and sets the headers of its answer.
func tell(w http.ResponseWriter, err error) told {
	const types = "type.googleapis.com/google.rpc."
	if own := (*refusal)(nil); errors.As(err, &own) {
		t := told{code: own.code, http: own.http, rpc: http.StatusOK, text: own.text}
		if own.reason != "" {
			t.details = []detail{{Type: types + "ErrorInfo", Reason: own.reason, Domain: "a2a-protocol.org"}}
		}
		return t
	}
	p, status := edge.Refuse(w, err)
	t := told{invalidRequest, status, status, p.Message, []detail{{Type: types + "ErrorInfo", Reason: p.Code, Domain: "skein"}}}
	switch {
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		t.code = internalError
	case status == http.StatusNotFound:
		t.code = invalidParams
	case p.Type == "invalid_request": // what is wrong with the request of HTTP has a status of its own
		t.code, t.rpc = invalidParams, http.StatusOK
		if p.Param != "" {
			t.details = append(t.details, detail{Type: types + "BadRequest", Violations: []violation{{p.Param, p.Message}}})
		}
	}
	return t
}

// grpcStatus returns the name that HTTP+JSON has for an error.
func (t *told) grpcStatus() string {
	switch t.code {
	case -32002, -32003, -32004, -32009:
		return "FAILED_PRECONDITION"
	}
	switch t.http {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	}
	if t.http >= http.StatusInternalServerError {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}
