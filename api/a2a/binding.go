package a2a

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/events"
)

// mediaType is the media type of HTTP+JSON bodies.
const mediaType = "application/a2a+json"

// binding is how a request is answered.
type binding interface {
	result(w http.ResponseWriter, v any)
	refuse(w http.ResponseWriter, t told)
	frame(v any) (stream.Frame, error)
	failed(t told) stream.Frame
}

// refused is an error with the binding that tells it.
type refused struct {
	error
	binding
}

func (e *refused) Unwrap() error { return e.error }

// refuseWith returns a function that writes the answer to a request that is refused.
func refuseWith(b binding) func(http.ResponseWriter, *http.Request, error) {
	return func(w http.ResponseWriter, _ *http.Request, err error) {
		own := b
		if of := (*refused)(nil); errors.As(err, &of) {
			own = of.binding
		}
		own.refuse(w, tell(w, err))
	}
}

// rpc is JSON-RPC. It has the id of its request.
type rpc struct {
	id  events.JSON
	old bool // of 0.3, of which released clients refuse errors with a list as data
}

// rpcRequest is a request of JSON-RPC.
type rpcRequest struct {
	Version string      `json:"jsonrpc"`
	ID      events.JSON `json:"id"`
	Method  string      `json:"method"`
	Params  events.JSON `json:"params"`
}

// rpcResponse is an answer.
type rpcResponse struct {
	Version string      `json:"jsonrpc"`
	ID      events.JSON `json:"id"`
	Result  any         `json:"result,omitzero"`
	Error   *rpcError   `json:"error,omitzero"`
}

// rpcError is why a request was refused.
type rpcError struct {
	Code    int      `json:"code"`
	Message string   `json:"message"`
	Data    []detail `json:"data,omitempty"`
}

// readRPC decodes a request of JSON-RPC.
func readRPC(r *http.Request) (*rpcRequest, error) {
	body, err := edge.Body(r, edge.MaxMessageBody)
	if err != nil {
		return nil, err
	}
	if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, &refusal{code: parseError, text: "the body is not JSON"}
	}
	var in rpcRequest
	if err := json.Unmarshal(body, &in, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, &refusal{code: invalidRequest, text: "the body is not one request of JSON-RPC; send each request by itself"}
	}
	switch k := jsontext.Value(in.ID).Kind(); {
	case k != 0 && k != '"' && k != '0' && k != 'n':
		in.ID = nil
		return &in, &refusal{code: invalidRequest, text: "the id of a request is a text or a number"}
	case in.Version != "2.0" || in.Method == "":
		return &in, &refusal{code: invalidRequest, text: `a request of JSON-RPC has "jsonrpc": "2.0" and a method`}
	}
	return &in, nil
}

func (b rpc) response() rpcResponse {
	out := rpcResponse{Version: "2.0", ID: b.id}
	if len(out.ID) == 0 {
		out.ID = events.JSON("null")
	}
	return out
}

func (b rpc) result(w http.ResponseWriter, v any) {
	out := b.response()
	out.Result = v
	edge.WriteJSON(w, http.StatusOK, out)
}

func (b rpc) failure(t told) rpcResponse {
	out := b.response()
	if out.Error = (&rpcError{t.code, t.text, t.details}); b.old {
		out.Error.Data = nil
	}
	return out
}

func (b rpc) refuse(w http.ResponseWriter, t told) { edge.WriteJSON(w, t.rpc, b.failure(t)) }

func (b rpc) frame(v any) (stream.Frame, error) {
	out := b.response()
	out.Result = v
	return frameOf(out)
}

func (b rpc) failed(t told) stream.Frame {
	f, _ := frameOf(b.failure(t)) // it is made of texts
	return f
}

// rest is HTTP+JSON.
type rest struct{}

// restError is the body of an answer that tells an error: a google.rpc.Status.
type restError struct {
	Error struct {
		Code    int      `json:"code"`
		Status  string   `json:"status"`
		Message string   `json:"message"`
		Details []detail `json:"details,omitempty"`
	} `json:"error"`
}

func (rest) failure(t told) (out restError) {
	out.Error.Code, out.Error.Status, out.Error.Message, out.Error.Details = t.http, t.grpcStatus(), t.text, t.details
	return out
}

func (rest) write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, v) // the client may have gone
}

func (b rest) result(w http.ResponseWriter, v any)  { b.write(w, http.StatusOK, v) }
func (b rest) refuse(w http.ResponseWriter, t told) { b.write(w, t.http, b.failure(t)) }
func (rest) frame(v any) (stream.Frame, error)      { return frameOf(v) }

func (b rest) failed(t told) stream.Frame {
	f, _ := frameOf(b.failure(t)) // it is made of texts
	f.Name = "error"
	return f
}

func frameOf(v any) (stream.Frame, error) {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return stream.Frame{Data: raw}, err
}

// versionOf returns the version that a request names, as a header or a parameter; "" if it names none.
func versionOf(r *http.Request) string {
	if v := r.Header.Get("A2A-Version"); v != "" {
		return v
	}
	return r.URL.Query().Get("A2A-Version")
}

// decode decodes parameters. Unknown fields are ignored.
func decode(raw events.JSON, into any) error {
	if len(raw) == 0 {
		raw = events.JSON("{}")
	}
	if err := json.Unmarshal(raw, into, jsontext.AllowDuplicateNames(true)); err != nil {
		return edge.NotObject(err)
	}
	return nil
}
