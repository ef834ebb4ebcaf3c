package responses_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/responses"
)

const key = "sk-test-abcdefghijklmnop"

// endpoint is an HTTP server that speaks the Responses protocol.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex // guards asked
	asked  []asked
	answer func(w *stream, r *http.Request)
}

type asked struct {
	path, method, key string
	body              events.JSON
}

func serve(t testing.TB, answer func(w *stream, r *http.Request)) *endpoint {
	t.Helper()
	e := &endpoint{answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the request cannot be read: %v", err)
		}
		e.mu.Lock()
		e.asked = append(e.asked, asked{r.URL.Path, r.Method, r.Header.Get("Authorization"), body})
		e.mu.Unlock()
		e.answer(&stream{w: w}, r)
	}))
	t.Cleanup(e.Close)
	return e
}

// body returns the nth request.
func (e *endpoint) body(t *testing.T, n int) events.JSON {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asked) <= n {
		t.Fatalf("%d requests came, not %d", len(e.asked), n+1)
	}
	return e.asked[n].body
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

func (e *endpoint) reactor(t testing.TB, change ...func(*model.Config)) *model.Reactor {
	t.Helper()
	c := model.Config{BaseURL: e.URL + "/v1", APIKey: key, Timeout: time.Minute, Idle: time.Minute}
	for _, f := range change {
		f(&c)
	}
	r, err := responses.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stream writes server-sent events.
type stream struct {
	w    http.ResponseWriter
	open bool
	seq  int
}

// event writes an event with the fields after its type.
func (s *stream) event(kind, format string, args ...any) {
	data := fmt.Sprintf(`{"type":%q,"sequence_number":%d`, kind, s.seq)
	if format != "" {
		data += "," + fmt.Sprintf(format, args...)
	}
	s.seq++
	s.raw("event: " + kind + "\ndata: " + data + "}\n\n")
}

func (s *stream) raw(text string) {
	if !s.open {
		s.open = true
		s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	_, _ = io.WriteString(s.w, text) // a client that is gone reads nothing
	s.w.(http.Flusher).Flush()
}

// completed ends a stream with these items.
func (s *stream) completed(items ...string) {
	s.event("response.completed", `"response":{"id":"resp_1","status":"completed","model":"test-model-1","output":[%s],"usage":`+
		`{"input_tokens":120,"input_tokens_details":{"cached_tokens":100},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":150}}`,
		strings.Join(items, ","))
}

func says(text string) string {
	return `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"` + text + `"}]}`
}

// watch records chunks.
type watch struct {
	mu     sync.Mutex // guards chunks
	chunks []string
	came   chan struct{} // if not nil, receives a value for each
}

func (w *watch) Chunk(c runtime.Chunk) {
	w.mu.Lock()
	w.chunks = append(w.chunks, c.Type+" "+string(c.Data))
	w.mu.Unlock()
	if w.came != nil {
		w.came <- struct{}{}
	}
}

// input is a step with one message of a user.
func input(items ...events.Item) *runtime.StepInput {
	if len(items) == 0 {
		items = []events.Item{message("itm_1", events.User, `{"type":"input_text","text":"hello"}`)}
	}
	return &runtime.StepInput{
		Tenant: "acme", StepID: "stp_1", Iteration: 1, Attempt: 1,
		Model: runtime.Model{Name: "test", Model: "test-model"}, Items: items,
	}
}

func message(id string, role events.Role, parts ...string) events.Item {
	return events.Item{ID: id, Type: events.Message, Role: role, Content: events.JSON("[" + strings.Join(parts, ",") + "]")}
}

func item(id string, kind events.ItemType, content string) events.Item {
	return events.Item{ID: id, Type: kind, Content: events.JSON(content)}
}

// field returns a field of a JSON object.
func field(t *testing.T, raw events.JSON, name string) events.JSON {
	t.Helper()
	var all map[string]events.JSON
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return all[name]
}

// unmarked returns parts without the name of the endpoint that made them, which is its address's.
func unmarked(parts string) string {
	return regexp.MustCompile(`"skein:provider":"openai-[0-9a-f]{8}",|,"skein:provider":"openai-[0-9a-f]{8}"`).ReplaceAllString(parts, "")
}

func written(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// canonical returns JSON in one form.
func canonical(t *testing.T, raw string) string {
	t.Helper()
	v := jsontext.Value(raw)
	if err := v.Canonicalize(); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return string(v)
}
