package openresponses

import (
	"errors"
	"net/http"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// Routes adds the routes under /v1.
func Routes(e *edge.Edge) {
	for pattern, h := range map[string]edge.Handler{
		"POST /v1/responses":                         create,
		"GET /v1/responses":                          connect,
		"GET /v1/responses/{id}":                     retrieve,
		"DELETE /v1/responses/{id}":                  remove,
		"POST /v1/responses/{id}/cancel":             cancel,
		"GET /v1/responses/{id}/input_items":         inputItems,
		"POST /v1/responses/compact":                 compact,
		"POST /v1/responses/input_tokens":            inputTokens,
		"GET /v1/models":                             listModels,
		"GET /v1/models/{id...}":                     getModel,
		"POST /v1/conversations":                     createConversation,
		"GET /v1/conversations/{id}":                 getConversation,
		"POST /v1/conversations/{id}":                updateConversation,
		"DELETE /v1/conversations/{id}":              deleteConversation,
		"GET /v1/conversations/{id}/items":           listItems,
		"POST /v1/conversations/{id}/items":          createItems,
		"GET /v1/conversations/{id}/items/{item}":    getItem,
		"DELETE /v1/conversations/{id}/items/{item}": deleteItem,
	} {
		e.Handle(pattern, told(h))
	}
}

// bodyBytes bounds the body of a request.
const bodyBytes = edge.MaxMessageBody

// told returns a handler whose refusals are told in the words of Open Responses.
func told(h edge.Handler) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		r.Body = http.MaxBytesReader(w, r.Body, bodyBytes)
		err := h(w, r, c)
		var own *refusal
		if errors.As(err, &own) {
			edge.WriteJSON(w, own.status, struct {
				Error edge.Problem `json:"error"`
			}{own.Problem})
			return nil
		}
		return err
	}
}

// refusal is an error with a code of Open Responses that the log does not have.
type refusal struct {
	edge.Problem
	status int
}

func (e *refusal) Error() string { return e.Message }

// problemOf returns how an error is told, with its status.
func problemOf(err error) (edge.Problem, int) {
	var own *refusal
	if errors.As(err, &own) {
		return own.Problem, own.status
	}
	return edge.ProblemOf(err)
}

// noPrevious is the refusal of a response that does not exist, or that this request may not
// continue.
func noPrevious(id string) error {
	return &refusal{edge.Problem{
		Type: "not_found", Code: "previous_response_not_found", Param: "previous_response_id",
		Message: "there is no response " + quoted(id) + " that this request can continue",
	}, http.StatusNotFound}
}

// noResponse is the refusal of a response that does not exist.
func noResponse(id string) error {
	return events.Missing("response", clipped(id))
}
