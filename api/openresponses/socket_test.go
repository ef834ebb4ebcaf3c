package openresponses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// line is a WebSocket on /v1/responses.
type line struct {
	w    *world
	conn *websocket.Conn
	ctx  context.Context
}

func (w *world) connect() *line {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, strings.Replace(w.url, "http", "ws", 1)+"/v1/responses", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	conn.SetReadLimit(16 << 20)
	w.t.Cleanup(func() { _ = conn.CloseNow() })
	return &line{w, conn, ctx}
}

// ask sends a frame, and returns the events up to the last of the response, or the error.
func (l *line) ask(frame string) []object {
	l.w.t.Helper()
	l.write(frame)
	var list []object
	for {
		e := l.read()
		list = append(list, e)
		switch e["type"] {
		case "response.completed", "response.failed", "response.incomplete":
			return list
		case "error":
			if e["status"] != nil {
				return list
			}
		}
	}
}

// read returns the next frame.
func (l *line) read() object {
	l.w.t.Helper()
	_, frame, err := l.conn.Read(l.ctx)
	if err != nil {
		l.w.t.Fatal(err)
	}
	return decoded(l.w.t, frame)
}

// write sends a frame.
func (l *line) write(frame string) {
	l.w.t.Helper()
	if err := l.conn.Write(l.ctx, websocket.MessageText, []byte(frame)); err != nil {
		l.w.t.Fatal(err)
	}
}

func last(list []object) object {
	r, _ := list[len(list)-1]["response"].(object)
	return r
}

func codeOf(list []object) string {
	e, _ := list[len(list)-1]["error"].(object)
	return fmt.Sprint(e["code"])
}

// Responses follow one another on a socket, each with the events that SSE has.
func TestSocket_Sequential(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.connect()
	first := l.ask(`{"type":"response.create","model":"triage","input":"one","stream_id":"lane-1"}`)
	if texts(last(first)["output"]) != "Hello, you." || first[0]["stream_id"] != "lane-1" || !strings.HasPrefix(kinds(first), "created in_progress output_item.added content_part.added") {
		t.Errorf("%s", kinds(first))
	}
	second := l.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","input":"two","previous_response_id":%q}`, last(first)["id"]))
	if got := w.model.shown(); got != "user:one | assistant:Hello, you. | user:two" || last(second)["status"] != "completed" {
		t.Errorf("%s", got)
	}
}

// A temporary response is continued on its own socket alone. A request that fails evicts the
// response that it continues.
func TestSocket_TemporaryResponses(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.connect()
	first := last(l.ask(`{"type":"response.create","model":"triage","input":"one","store":false}`))
	second := last(l.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","input":"two","store":false,"previous_response_id":%q}`, first["id"])))
	if got := w.model.shown(); got != "user:one | assistant:Hello, you. | user:two" || second["status"] != "completed" {
		t.Errorf("%s", got)
	}
	other := w.connect()
	if got := other.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","input":"x","store":false,"previous_response_id":%q}`, second["id"])); codeOf(got) != "previous_response_not_found" || got[0]["status"] != 404.0 {
		t.Errorf("%v", got)
	}
	if got := last(other.ask(`{"type":"response.create","model":"triage","input":"clean","store":false}`)); got["status"] != "completed" {
		t.Errorf("the socket is of no more use: %v", got)
	}
	failed := l.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","store":false,"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":"call_9","output":"x"}]}`, second["id"]))
	if codeOf(failed) != "invalid_request" || failed[0]["status"] != 400.0 {
		t.Errorf("%v", failed)
	}
	if got := l.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","input":"x","store":false,"previous_response_id":%q}`, second["id"])); codeOf(got) != "previous_response_not_found" {
		t.Errorf("it was not evicted: %v", got)
	}
}

// A malformed frame is answered with an error; the socket stays open, unless ten come in a row.
func TestSocket_MalformedFrames(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.connect()
	for range 9 {
		if got := l.ask(`{"type":`); codeOf(got) != "invalid_request" {
			t.Errorf("%v", got)
		}
	}
	if got := last(l.ask(`{"type":"response.create","model":"triage","input":"one"}`)); got["status"] != "completed" {
		t.Errorf("%v", got)
	}
	if got := l.ask(`{"type":"response.create","model":"triage","input":"x","temperature":"hot"}`); codeOf(got) != "invalid_request" || !strings.Contains(fmt.Sprint(got), "param:temperature") {
		t.Errorf("%v", got)
	}
	for range 9 {
		l.ask(`{"type":"response.cancel"}`)
	}
	if _, _, err := l.conn.Read(l.ctx); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("%v", err)
	}
}

// A socket of another site is refused.
func TestSocket_Origin(t *testing.T) {
	t.Parallel()
	w := start(t)
	_, res, err := websocket.Dial(t.Context(), strings.Replace(w.url, "http", "ws", 1)+"/v1/responses", &websocket.DialOptions{HTTPHeader: map[string][]string{"Origin": {"https://evil.example"}}})
	if err == nil || res == nil || res.StatusCode != 403 {
		t.Errorf("%v %v", res, err)
	}
}
