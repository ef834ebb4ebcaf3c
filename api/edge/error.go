package edge

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Problem is a refusal, as an answer tells it. No string is ever null: clients of Open
// Responses do not read an error whose code or param is.
type Problem struct {
	Type    string               `json:"type"`
	Code    string               `json:"code"`
	Message string               `json:"message"`
	Param   string               `json:"param"`
	Details *events.ErrorDetails `json:"details,omitzero"`
}

// ProblemOf returns how an error is told, and the status of the answer. An error that is no
// *events.Error becomes unavailable, without its text.
func ProblemOf(err error) (Problem, int) {
	if own := (*statusError)(nil); errors.As(err, &own) {
		return Problem{Type: "invalid_request", Code: own.code, Message: own.text, Param: own.param}, own.status
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		err = &events.Error{
			Code: events.PayloadTooLarge, Cause: err, Details: &events.ErrorDetails{Limit: large.Limit},
			Message: fmt.Sprintf("the body is too large; at most %d bytes are allowed", large.Limit),
		}
	}
	e := events.AsError(err)
	p := Problem{Type: kind(e.Code), Code: string(e.Code), Message: e.Message}
	if d := e.Details; d != nil && !reflect.ValueOf(*d).IsZero() {
		p.Details, p.Param = d, param(d.Path)
	}
	return p, e.Code.Status()
}

// kind returns the type of an error, in the words of Open Responses.
func kind(c events.Code) string {
	switch c.Status() {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found"
	case http.StatusTooManyRequests:
		return "too_many_requests"
	case http.StatusServiceUnavailable:
		return "server_error"
	default:
		return "invalid_request"
	}
}

// param returns the field that a JSON pointer names.
func param(pointer string) string {
	if pointer == "" {
		return ""
	}
	return pointer[1:]
}

// NotObject returns the refusal of a body that could not be decoded as an object: that the field which
// the error names has the wrong type, without the name of the type that it was decoded into.
func NotObject(err error) error {
	if wrong := (*json.SemanticError)(nil); errors.As(err, &wrong) {
		if wrong.JSONPointer != "" {
			return events.Invalid(string(wrong.JSONPointer), "%.80q has the wrong type", string(wrong.JSONPointer))
		}
		return events.Invalid("", "the body is not a JSON object")
	}
	return events.Invalid("", "the body is not a JSON object: %s", strings.ReplaceAll(err.Error(), "jsontext: ", ""))
}

// WriteError answers with an error.
func WriteError(w http.ResponseWriter, err error) {
	p, status := Refuse(w, err)
	WriteJSON(w, status, struct {
		Error Problem `json:"error"`
	}{p})
}

// Refuse sets the headers of an answer that tells an error, and returns how it is told, for protocols
// that tell it in their own words.
func Refuse(w http.ResponseWriter, err error) (Problem, int) {
	p, status := ProblemOf(err)
	if status == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" { // a protocol may say more
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if status == http.StatusTooManyRequests {
		after := time.Second
		if full := (*busyError)(nil); errors.As(err, &full) {
			after = full.after
		}
		w.Header().Set("Retry-After", retryAfter(after))
	}
	return p, status
}

// WriteJSON answers with v as JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, v, jsontext.AllowInvalidUTF8(true)) // the client may have gone; what it sent may be told
}
