package openresponses_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	models "github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/responses"
	"github.com/skein-threads/skein/skeintest"
)

// patience is how long a test waits for what must happen.
const patience = 5 * time.Minute

// world is a server whose agents ask a model endpoint of the test's own, and its edge.
type world struct {
	t     *testing.T
	url   string
	model *model
	c     *client.Client
	s     *skeintest.Server
}

// model is an endpoint that speaks the protocol. It answers with what answer writes.
type model struct {
	mu     sync.Mutex
	asked  []map[string]any
	answer func(w *answer, asked map[string]any)
}

// answer writes the events of a model's answer.
type answer struct {
	w     http.ResponseWriter
	r     *http.Request
	n     int
	items []string
}

func (a *answer) event(kind, format string, args ...any) {
	data := fmt.Sprintf(`{"type":%q,"sequence_number":%d,`, kind, a.n) + fmt.Sprintf(format, args...) + "}"
	a.n++
	_, _ = io.WriteString(a.w, "event: "+kind+"\ndata: "+data+"\n\n") // a client that is gone reads nothing
	a.w.(http.Flusher).Flush()
}

// says writes a message in pieces.
func (a *answer) says(pieces ...string) {
	at := len(a.items)
	id := fmt.Sprintf("msg_m%d", at)
	for _, p := range pieces {
		a.event("response.output_text.delta", `"item_id":%q,"output_index":%d,"content_index":0,"delta":%q`, id, at, p)
	}
	a.items = append(a.items, fmt.Sprintf(`{"type":"message","id":%q,"status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":%q}]}`, id, strings.Join(pieces, "")))
}

// calls writes a call of a tool.
func (a *answer) calls(id, name, arguments string) {
	at := len(a.items)
	item := fmt.Sprintf(`{"type":"function_call","id":"fc_m%d","call_id":%q,"name":%q,"arguments":%q,"status":"completed"}`, at, id, name, arguments)
	a.event("response.output_item.added", `"output_index":%d,"item":{"type":"function_call","id":"fc_m%d","call_id":%q,"name":%q,"arguments":""}`, at, at, id, name)
	a.event("response.function_call_arguments.delta", `"item_id":"fc_m%d","output_index":%d,"delta":%q`, at, at, arguments)
	a.event("response.output_item.done", `"output_index":%d,"item":%s`, at, item)
	a.items = append(a.items, item)
}

// thinks writes a reasoning, with a summary unless that is empty.
func (a *answer) thinks(text string) {
	at := len(a.items)
	summary := ""
	if text != "" {
		a.event("response.reasoning_summary_text.delta", `"item_id":"rs_m%d","output_index":%d,"summary_index":0,"delta":%q`, at, at, text)
		summary = fmt.Sprintf(`{"type":"summary_text","text":%q}`, text)
	}
	item := fmt.Sprintf(`{"type":"reasoning","id":"rs_m%d","summary":[%s],"encrypted_content":"sealed"}`, at, summary)
	a.event("response.output_item.done", `"output_index":%d,"item":%s`, at, item)
	a.items = append(a.items, item)
}

func (a *answer) ends(kind, more string) {
	a.event(kind, `"response":{"id":"resp_m","status":"completed","model":"test-1","output":[%s]%s,"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":4},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":19}}`, strings.Join(a.items, ","), more)
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.asked = append(m.asked, asked)
	do := m.answer
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	a := &answer{w: w, r: r}
	do(a, asked)
}

// answers sets how the model answers from now on.
func (m *model) answers(do func(a *answer, asked map[string]any)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = do
}

// waits has the model tell that it is asked, and answer when it is released.
func (m *model) waits() (begun <-chan struct{}, release chan struct{}) {
	told, release := make(chan struct{}, 9), make(chan struct{}, 9)
	m.answers(func(a *answer, _ map[string]any) {
		told <- struct{}{}
		select {
		case <-release:
		case <-a.r.Context().Done():
		}
		a.says("Done.")
		a.ends("response.completed", "")
	})
	return told, release
}

// last returns the last request of the model.
func (m *model) last() map[string]any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[len(m.asked)-1]
}

// hello answers every request with a text in three pieces.
func hello(a *answer, _ map[string]any) {
	a.says("Hel", "lo, ", "you.")
	a.ends("response.completed", "")
}

func start(t *testing.T, options ...func(*skein.Options)) *world {
	t.Helper()
	m := &model{answer: hello}
	endpoint := httptest.NewServer(m)
	t.Cleanup(endpoint.Close)
	own := func(o *skein.Options) { o.HTTPListen, o.NATSListen, o.Tenant = "127.0.0.1:0", "127.0.0.1:0", "acme" }
	s := skeintest.Start(t, append([]func(*skein.Options){own}, options...)...)
	r, err := responses.New(models.Config{BaseURL: endpoint.URL + "/v1", APIKey: "sk-test", Timeout: patience, Idle: patience})
	s.Must(err)
	s.Must(s.Reactor("test", r.React))
	w := &world{t: t, url: s.Addresses().HTTP, model: m, c: s.Client("acme"), s: s}
	w.define("model", `{"name":"m","model":"test-1","reactor":"test"}`, "agent", `{"name":"triage","type":"ai_human","model":"m"}`)
	return w
}

func (w *world) define(pairs ...string) {
	w.t.Helper()
	d := events.ApplyDefinitions{}
	for i := 0; i < len(pairs); i += 2 {
		d.Definitions = append(d.Definitions, events.NewDefinition{Kind: events.DefinitionKind(pairs[i]), Definition: events.JSON(pairs[i+1])})
	}
	if _, err := w.c.Send(w.t.Context(), "", d); err != nil {
		w.t.Fatal(err)
	}
}

// object is a JSON object.
type object = map[string]any

// send makes a request. Call end when its answer was read.
func (w *world) send(method, path, body string) (res *http.Response, end func()) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err == nil {
		res, err = http.DefaultClient.Do(req)
	}
	if err != nil {
		cancel()
		w.t.Fatal(err)
	}
	return res, func() {
		_ = res.Body.Close()
		cancel()
	}
}

// do makes a request, and returns the status and the answer.
func (w *world) do(method, path, body string) (int, object) {
	w.t.Helper()
	res, end := w.send(method, path, body)
	defer end()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var out object
	if err := json.Unmarshal(raw, &out); err != nil {
		w.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, raw)
	}
	return res.StatusCode, out
}

// must makes a request that succeeds.
func (w *world) must(method, path, body string) object {
	w.t.Helper()
	status, out := w.do(method, path, body)
	if status != http.StatusOK {
		w.t.Fatalf("%s %s %s: %d %v", method, path, body, status, out)
	}
	return out
}

// stream makes a request for a stream, and returns its events.
func (w *world) stream(method, path, body string) []object {
	w.t.Helper()
	res, end := w.send(method, path, body)
	defer end()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		raw, _ := io.ReadAll(res.Body)
		w.t.Fatalf("%d %s: %s", res.StatusCode, got, raw)
	}
	var list []object
	name, done := "", false
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := lines.Text()
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if data == "[DONE]" {
				done = true
				continue
			}
			var e object
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				w.t.Fatalf("%v: %s", err, data)
			}
			if e["type"] != name {
				w.t.Errorf("event: %s, and type %v", name, e["type"])
			}
			list = append(list, e)
		}
		if said, ok := strings.CutPrefix(line, "event: "); ok {
			name = said
		}
		if strings.HasPrefix(line, "id:") {
			w.t.Errorf("the stream has ids: %s", line)
		}
	}
	if !done {
		w.t.Errorf("the stream has no [DONE]: %v", kinds(list))
	}
	return list
}

func kinds(list []object) string {
	var out []string
	for _, e := range list {
		out = append(out, strings.TrimPrefix(e["type"].(string), "response."))
	}
	return strings.Join(out, " ")
}

// texts returns the texts of the messages of an output.
func texts(output any) string {
	var out []string
	for _, i := range output.([]any) {
		item := i.(object)
		switch item["type"] {
		case "message":
			for _, p := range item["content"].([]any) {
				out = append(out, fmt.Sprint(p.(object)["text"]))
			}
		default:
			out = append(out, fmt.Sprintf("(%v)", item["type"]))
		}
	}
	return strings.Join(out, " ")
}

// raw encodes what was decoded from JSON.
func raw(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

func decoded(t *testing.T, b []byte) (o object) {
	t.Helper()
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return o
}
