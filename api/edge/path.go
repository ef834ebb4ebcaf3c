package edge

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// unrouted takes what http.ServeMux answers in words of its own: that no route serves a
// request. A route answers to the writer below.
type unrouted struct {
	to     http.ResponseWriter
	header http.Header
	status int
}

func (m *unrouted) Header() http.Header         { return m.header }
func (m *unrouted) Write(b []byte) (int, error) { return len(b), nil }
func (m *unrouted) WriteHeader(status int)      { m.status = status }

// routed returns the writer to which a route answers.
func routed(w http.ResponseWriter) http.ResponseWriter {
	if m, ok := w.(*unrouted); ok {
		return m.to
	}
	return w
}

// refusal returns the answer to a request that no route serves.
func (m *unrouted) refusal(w http.ResponseWriter, r *http.Request) error {
	if m.status != http.StatusMethodNotAllowed {
		return noRoute(r)
	}
	allowed := m.header.Get("Allow")
	w.Header().Set("Allow", allowed)
	return &statusError{status: http.StatusMethodNotAllowed, code: "method_not_allowed", text: fmt.Sprintf("%s does not take %s; use %s", clip(r.URL.Path), clip(r.Method), allowed)}
}

func noRoute(r *http.Request) error {
	return events.Errorf(events.NotFound, "there is no route %s", clip(r.URL.Path))
}

// plain reports whether a path is as it would be after cleaning, apart from a slash at its
// end.
func plain(escaped string) bool {
	if !strings.HasPrefix(escaped, "/") {
		return false
	}
	cleaned := path.Clean(escaped)
	return cleaned == escaped || escaped == cleaned+"/"
}

// statusError is a refusal that only HTTP has.
type statusError struct {
	status     int
	code, text string
	param      string
}

func (e *statusError) Error() string { return e.text }

// clip shortens what an error says of a request.
func clip(s string) string { return excerpt.Of(s, 200) }
