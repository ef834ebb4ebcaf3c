package rest

import (
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// maxBody bounds a JSON body, in bytes.
const maxBody = 4 << 20

// object is a JSON object by its names.
type object = map[string]jsontext.Value

// readObject reads a body that is a JSON object; an empty body is an empty one.
func readObject(r *http.Request) (object, error) {
	raw, err := edge.Body(r, maxBody)
	switch {
	case err != nil:
		return nil, err // the edge has read it already
	case len(raw) > maxBody:
		return nil, events.TooLarge("the body", max(r.ContentLength, int64(len(raw))), maxBody)
	case len(raw) == 0:
		return object{}, nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return nil, events.Invalid("/Content-Type", "the body's Content-Type is %.80q; send JSON, and say so: Content-Type: application/json", r.Header.Get("Content-Type"))
	}
	return decodeObject(raw)
}

// bodyError returns the error of a content that cannot be read: the edge's own limit, or a client
// that went away, or sent nothing for a time.
func bodyError(err error, stall time.Duration) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return events.TooLarge("the body", large.Limit+1, large.Limit)
	}
	return edge.Broken(err, "an upload may send nothing for "+stall.String()+"; send it again, from its beginning")
}

// decodeObject decodes a JSON object: names are unique, text is valid UTF-8.
func decodeObject(raw []byte) (object, error) {
	if jsontext.Value(raw).Kind() != '{' {
		return nil, events.Invalid("", "the body must be a JSON object")
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, jsonError(err)
	}
	return o, nil
}

// jsonError returns the refusal of text that is not JSON.
func jsonError(err error) error {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return events.Invalid("", "the body is not JSON: it ends too early")
	}
	what := "not JSON: " + syntax.Err.Error()
	if errors.Is(err, jsontext.ErrDuplicateName) {
		what = "the name stands twice"
	}
	pointer := string(syntax.JSONPointer)
	if len(pointer) > 200 {
		pointer = "" // so deep that its name helps nobody
	}
	return events.Invalid(strings.ToValidUTF8(pointer, "?"), "%s, at byte %d", what, syntax.ByteOffset)
}

// refuseActor refuses a body that names an actor: over HTTP that is the principal.
func refuseActor(o object) error {
	if _, named := o["actor"]; named {
		return edge.NamedActor()
	}
	return nil
}

// setText sets a field, which the body may not have.
func (o objectSetter) setText(field, value string) error {
	if _, twice := o.object[field]; twice {
		return events.Invalid("/"+field, "%s is in the path already; leave it out of the body", field)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return events.Invalid("/"+field, "%s must be valid UTF-8", field)
	}
	o.object[field] = text
	return nil
}

// objectSetter sets fields of an object.
type objectSetter struct{ object object }

// encode encodes an object with its names in order.
func (o objectSetter) encode() (events.JSON, error) {
	raw, err := json.Marshal(o.object, json.Deterministic(true))
	if err != nil {
		return nil, jsonError(err)
	}
	return events.JSON(raw), nil
}
