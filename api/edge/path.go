package edge

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
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
	if has := insteadOf(r.URL.Path); has != "" {
		return events.Errorf(events.NotFound, "there is no route %s: %s", clip(r.URL.Path), has)
	}
	return events.Errorf(events.NotFound, "there is no route %s", clip(r.URL.Path))
}

// folded returns a request whose path has no repeated slashes where FoldSlashes says so.
func (e *Edge) folded(r *http.Request) *http.Request {
	escaped := r.URL.EscapedPath()
	if !strings.Contains(escaped, "//") {
		return r
	}
	for _, prefix := range e.files {
		head, tail, ok := cutPrefix(escaped, prefix)
		if !ok {
			continue
		}
		names := slices.DeleteFunc(strings.Split(tail, "/"), func(name string) bool { return name == "" })
		u := *r.URL
		u.RawPath = head + strings.Join(names, "/")
		var err error
		if u.Path, err = url.PathUnescape(u.RawPath); err != nil { // net/http has parsed it
			return r
		}
		folded := *r
		folded.URL = &u
		return &folded
	}
	return r
}

// cutPrefix cuts a path after a prefix, whose segments in braces stand for any one that is not
// empty.
func cutPrefix(path, prefix string) (head, tail string, ok bool) {
	tail = path
	for want := range strings.SplitSeq(strings.TrimSuffix(prefix, "/"), "/") {
		segment, rest, more := strings.Cut(tail, "/")
		if !more || segment != want && (segment == "" || !strings.HasPrefix(want, "{")) {
			return "", "", false
		}
		tail = rest
	}
	return path[:len(path)-len(tail)], tail, true
}

// insteadOf returns a hint to Skein's own route for a path that clients know from other servers, ""
// for any other path.
func insteadOf(path string) string {
	under := func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
	switch {
	case under("/v1/messages"), under("/v1/completions"), under("/v1/chat/completions"):
		return "Skein speaks Open Responses and Chat Completions; send POST /v1/responses or POST /v1/chat/completions"
	case under("/v1/assistants"), under("/v1/threads"):
		return "Skein speaks Open Responses; use POST /v1/conversations and POST /v1/responses, or /api/threads"
	case under("/v1/uploads"):
		return "a file is uploaded at once; send POST /v1/files"
	}
	return ""
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

// UpgradeRequired returns the refusal of a request for a WebSocket that is no handshake: 426, with the
// protocol to change to. A connection of HTTP/2 cannot change its protocol.
func UpgradeRequired(w http.ResponseWriter, r *http.Request) error {
	if r.ProtoMajor != 1 {
		return events.Invalid("/Upgrade", "this route is a WebSocket; connect over HTTP/1.1 with a client that speaks it")
	}
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set("Connection", "Upgrade")
	return &statusError{status: http.StatusUpgradeRequired, code: "upgrade_required", text: "this route is a WebSocket; connect with a client that speaks it"}
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
