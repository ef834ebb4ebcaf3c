package modeltest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/model"
)

// Key is the key that reactors send.
const Key = "sk-test-abcdefghijklmnop"

// Endpoint is an HTTP server that speaks a protocol.
type Endpoint struct {
	*httptest.Server
	mu     sync.Mutex // guards asked
	asked  []Asked
	Answer func(w *Stream, r *http.Request)
}

// Asked is a request that came.
type Asked struct {
	Path, Method string
	Header       http.Header
	Body         events.JSON
}

// Serve serves an endpoint until the test ends.
func Serve(t testing.TB, answer func(w *Stream, r *http.Request)) *Endpoint {
	t.Helper()
	e := &Endpoint{Answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the request cannot be read: %v", err)
		}
		e.mu.Lock()
		e.asked = append(e.asked, Asked{r.URL.Path, r.Method, r.Header.Clone(), body})
		e.mu.Unlock()
		e.Answer(&Stream{W: w}, r)
	}))
	t.Cleanup(e.Close)
	return e
}

// Request returns the nth request.
func (e *Endpoint) Request(t testing.TB, n int) Asked {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asked) <= n {
		t.Fatalf("%d requests came, not %d", len(e.asked), n+1)
	}
	return e.asked[n]
}

// Body returns the body of the nth request.
func (e *Endpoint) Body(t testing.TB, n int) events.JSON {
	t.Helper()
	return e.Request(t, n).Body
}

// Count returns how many requests came.
func (e *Endpoint) Count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// Reactor returns a reactor that calls the endpoint.
func (e *Endpoint) Reactor(t testing.TB, codec model.Codec, change ...func(*model.Config)) *model.Reactor {
	t.Helper()
	c := model.Config{BaseURL: e.URL + "/v1", APIKey: Key, Timeout: time.Minute, Idle: time.Minute}
	for _, f := range change {
		f(&c)
	}
	r, err := model.New(c, codec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Stream writes server-sent events.
type Stream struct {
	W    http.ResponseWriter
	open bool
	seq  int
}

// Event writes an event of the Responses protocol with the fields after its type.
func (s *Stream) Event(kind, format string, args ...any) {
	data := fmt.Sprintf(`{"type":%q,"sequence_number":%d`, kind, s.seq)
	if format != "" {
		data += "," + fmt.Sprintf(format, args...)
	}
	s.seq++
	s.Raw("event: " + kind + "\ndata: " + data + "}\n\n")
}

// Data writes events of which only the data matters.
func (s *Stream) Data(list ...string) {
	for _, data := range list {
		s.Raw("data: " + data + "\n\n")
	}
}

// Raw writes to the stream at once.
func (s *Stream) Raw(text string) {
	if !s.open {
		s.open = true
		s.W.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	_, _ = io.WriteString(s.W, text) // a client that is gone reads nothing
	s.W.(http.Flusher).Flush()
}

// Begun reports whether something was written.
func (s *Stream) Begun() bool { return s.open }

// Refuse answers with a status, a body, and pairs of headers.
func (s *Stream) Refuse(status int, body string, header ...string) {
	for i := 0; i+1 < len(header); i += 2 {
		s.W.Header().Set(header[i], header[i+1])
	}
	s.W.WriteHeader(status)
	_, _ = io.WriteString(s.W, body)
}
