package edge

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/skein-threads/skein/events"
)

// known returns a refusal unless a route serves the request, so that http.ServeMux neither
// redirects nor answers in words of its own.
func (e *Edge) known(w http.ResponseWriter, r *http.Request) error {
	none := events.Errorf(events.NotFound, "there is no route %s", clip(r.URL.Path))
	if !plain(r.URL.EscapedPath()) || strings.ContainsRune(r.URL.Path, 0) {
		return none
	}
	h, _ := e.mux.Handler(r)
	switch h.(type) {
	case route, public:
		return nil
	}
	probe := probe{header: http.Header{}}
	h.ServeHTTP(&probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		return none
	}
	allowed := probe.header.Get("Allow")
	w.Header().Set("Allow", allowed)
	return &statusError{http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("%s does not take %s; use %s", clip(r.URL.Path), clip(r.Method), allowed)}
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
}

func (e *statusError) Error() string { return e.text }

// probe takes the answer of a handler of http.ServeMux.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

// clip shortens what an error says of a request.
func clip(s string) string {
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
