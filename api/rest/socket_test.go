package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/skein-threads/skein"
)

// wire is a WebSocket of a test.
type wire struct {
	*websocket.Conn
	t testing.TB
}

// dial opens a socket on a thread.
func (s *site) dial(thread string) *wire {
	s.t.Helper()
	conn, r, err := websocket.Dial(s.t.Context(), s.url+thread+"/socket", &websocket.DialOptions{HTTPHeader: http.Header{"Skein-Tenant": {s.tenant}}})
	if err != nil {
		s.t.Fatalf("dial: %v (%v)", err, r)
	}
	conn.SetReadLimit(16 << 20)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return &wire{conn, s.t}
}

func (w *wire) send(text string) {
	w.t.Helper()
	if err := w.Write(w.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

// got is a frame from the server.
type got struct {
	Type, Code, Param, Name, Message string
	ID                               any
	Event                            struct {
		Type          string
		Threadversion int64
	}
	Chunk  chunk
	Data   json.RawMessage
	Thread struct {
		ID, Title string
		Messages  []json.RawMessage
	}
	Reply *struct {
		Version int64
		Result  struct{ ItemID string }
	}
	Error *struct{ Code, Param string }
}

// next returns the next frame.
func (w *wire) next() got {
	w.t.Helper()
	kind, raw, err := w.Read(w.t.Context())
	if err != nil {
		w.t.Fatalf("read: %v", err)
	}
	var g got
	if err := json.Unmarshal(raw, &g); err != nil || kind != websocket.MessageText {
		w.t.Fatalf("the frame %.300s: %v", raw, err)
	}
	return g
}

func TestSocket_Events(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	s.say(thread)
	w := s.dial(thread)
	w.send(`{"type":"watch","what":["events"],"from":1}`)
	for _, want := range []int64{2, 3} {
		if g := w.next(); g.Type != "event" || g.Event.Threadversion != want {
			t.Fatalf("got %+v, want version %d", g, want)
		}
	}
	s.say(thread)
	if g := w.next(); g.Event.Threadversion != 4 || g.Event.Type != "item.created" {
		t.Errorf("live: %+v", g)
	}
	whole := s.dial(thread)
	whole.send(`{"type":"watch","what":["events"],"from":0}`)
	if g := whole.next(); g.Event.Threadversion != 1 {
		t.Errorf("from the beginning: %+v", g)
	}
}

// Commands are executed in the order in which they were sent, and refused one by one.
func TestSocket_Commands(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	w := s.dial(thread)
	for i := range 20 {
		w.send(fmt.Sprintf(`{"type":"command","id":%d,"command":"item.create","data":%s}`, i, hello))
	}
	for i := range 20 {
		if g := w.next(); g.Type != "reply" || g.ID != float64(i) || g.Reply == nil || g.Reply.Version != int64(3+i) || g.Error != nil {
			t.Fatalf("reply %d: %+v", i, g)
		}
	}
	w.send(`{"type":"command","id":"a","command":"item.create","data":{"item":{"type":"sonnet"}}}`)
	if g := w.next(); g.Type != "reply" || g.ID != "a" || g.Error == nil || g.Error.Code != "invalid_request" || g.Reply != nil {
		t.Errorf("a refusal: %+v", g)
	}
	w.send(`{"type":"command","id":"c","command":"item.frobnicate","data":{}}`)
	if g := w.next(); g.Type != "reply" || g.ID != "c" || g.Error == nil || g.Error.Code != "not_found" || g.Reply != nil {
		t.Errorf("an unknown command: %+v", g)
	}
	w.send(`{"type":"command","id":"b","command":"thread.create","data":{}}`)
	if g := w.next(); g.Reply == nil || g.Reply.Version != 2 {
		t.Errorf("another thread: %+v", g)
	}
}

func TestSocket_ChunksAndThread(t *testing.T) {
	t.Parallel()
	s := start(t)
	words := s.speaker("echo")
	thread := s.thread()
	w, o := s.dial(thread), s.dial(thread)
	w.send(`{"type":"watch","what":["chunks"]}`)
	w.send(`{"type":"command","id":0,"command":"thread.update","data":{"title":"Watched"}}`)
	w.next() // the reply: the watch has begun
	o.send(`{"type":"watch","what":["thread"]}`)
	if g := o.next(); g.Type != "thread" || g.Thread.ID != id(thread) || g.Thread.Title == "" {
		t.Errorf("the first state: %+v", g)
	}
	s.ask("POST", thread+"/react", `{"agentId":"echo","text":"hello"}`).want(http.StatusAccepted)
	words <- "one"
	var list []chunk
	for {
		g := w.next()
		if g.Type != "chunk" || g.Chunk.Index != int64(len(list)) {
			t.Fatalf("chunk %d: %+v", len(list), g)
		}
		list = append(list, g.Chunk)
		if g.Chunk.Type == "text-delta" {
			break
		}
	}
	late := s.dial(thread)
	late.send(`{"type":"watch","what":["chunks"]}`)
	for n := range list { // a run that is active is told from its beginning
		if g := late.next(); g.Chunk.Index != int64(n) {
			t.Fatalf("late: %+v", g)
		}
	}
	close(words)
	for w.next().Chunk.Type != "finish" {
	}
	s.ask("POST", thread+"/react", `{"agentId":"echo","text":"again"}`).want(http.StatusAccepted)
	if g := w.next(); g.Chunk.Index != 0 || g.Chunk.ExecutionID == list[0].ExecutionID {
		t.Errorf("the next run: %+v", g)
	}
	s.WaitIdle()
	s.ask("PATCH", thread, `{"title":"The last state"}`).want(http.StatusOK)
	for g := o.next(); g.Thread.Title != "The last state"; g = o.next() {
		if g.Type != "thread" {
			t.Fatalf("a state: %+v", g)
		}
	}
}

// What one client emits, the others see; it is stored nowhere.
func TestSocket_Emit(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	one, two := s.dial(thread), s.dial(thread)
	two.send(`{"type":"watch","what":["live"]}`)
	two.send(`{"type":"command","id":1,"command":"item.create","data":` + hello + `}`)
	two.next() // the watch has begun
	one.send(`{"type":"emit","name":"typing","data":{"by":"ada"}}`)
	one.send(`{"type":"emit","name":"stopped"}`)
	if g := two.next(); g.Type != "live" || g.Name != "typing" || string(g.Data) != `{"by":"ada"}` {
		t.Errorf("emitted: %+v", g)
	}
	if g := two.next(); g.Name != "stopped" || string(g.Data) != `null` {
		t.Errorf("emitted: %+v", g)
	}
}

// Malformed frames are answered; ten in a row close the socket, and a good one forgives them.
func TestSocket_MalformedFrames(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	w := s.dial(thread)
	bad := []struct{ frame, param string }{
		{`{`, ""}, {`[]`, ""}, {`{"type":"dance"}`, "type"}, {`{}`, "type"}, {`{"type":7}`, "type"}, {`{"type":"watch"}`, "what"},
		{`{"type":"watch","what":["stars"]}`, "what"}, {`{"type":"watch","what":"events"}`, "what"}, {`{"type":"watch","what":["events"],"from":-1}`, "from"},
	}
	for range 3 {
		for _, b := range bad {
			w.send(b.frame)
			if g := w.next(); g.Type != "error" || g.Code != "invalid_request" || g.Param != b.param {
				t.Errorf("%s: %+v, want %q", b.frame, g, b.param)
			}
		}
		w.send(`{"type":"command","id":1,"command":"item.create","data":` + hello + `}`)
		if g := w.next(); g.Type != "reply" {
			t.Errorf("a good one: %+v", g)
		}
	}
	for _, b := range []struct{ frame, param string }{
		{`{"type":"command","command":"item.create"}`, "id"}, {`{"type":"command","id":{},"command":"item.create"}`, "id"},
		{`{"type":"command","id":1}`, "command"}, {`{"type":"command","id":1,"command":"item.create","actor":"eve"}`, "actor"},
		{`{"type":"emit","name":""}`, "name"}, {`{"type":"emit","name":"a","data":{"a":1,"a":2}}`, "data/a"},
		{"{\"type\":\"emit\",\"name\":\"\xff\"}", "name"}, {`{"type":"emit","name":"a","data":` + strings.Repeat("[", 20000) + `}`, ""},
	} {
		w.send(b.frame)
		if g := w.next(); g.Type != "error" || g.Param != b.param && len(b.frame) < 1000 {
			t.Errorf("%.100s: %+v, want %q", b.frame, g, b.param)
		}
	}
	for range 2 { // the ninth and the tenth in a row
		if err := w.Write(t.Context(), websocket.MessageBinary, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if g := w.next(); g.Type != "error" {
			t.Errorf("binary: %+v", g)
		}
	}
	if _, _, err := w.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("after ten: %v", err)
	}
}

// upgrade returns the headers of a handshake.
func upgrade() []string {
	return []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
}

func TestSocket_Handshake(t *testing.T) {
	t.Parallel()
	const shop = "https://shop.example"
	s := start(t, func(o *skein.Options) { o.CORSOrigins = []string{shop} })
	thread := s.thread()
	if a := s.refusal("GET", thread+"/socket", "", append(upgrade(), "Origin", shop)...); a.status != http.StatusSwitchingProtocols {
		t.Errorf("a page that may: %d", a.status)
	}
	s.ask("GET", thread+"/socket", "").problem(http.StatusUpgradeRequired, "upgrade_required", "")
	upgrade := upgrade()
	s.ask("GET", thread+"/socket", "", append(upgrade, "Origin", "https://evil.example")...).problem(http.StatusForbidden, "forbidden", "")
	s.as("evil").ask("GET", thread+"/socket", "", upgrade...).problem(http.StatusNotFound, "not_found", "")
	s.ask("GET", thread+"/socket?from=1", "", upgrade...).problem(http.StatusBadRequest, "invalid_request", "from")
}

// A socket is closed with a handshake when the server stops.
func TestSocket_EndsOnShutdown(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	w := s.dial(thread)
	w.send(`{"type":"watch","what":["events","chunks","live","thread"]}`)
	for range 3 {
		w.next()
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	for {
		_, _, err := w.Read(t.Context())
		if err == nil {
			continue
		}
		if websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("the end: %v", err)
		}
		break
	}
	s.Must(<-stopped)
}

// A frame that is too large ends the socket, not the server.
func TestSocket_LargeFrame(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	w := s.dial(thread)
	_ = w.Write(t.Context(), websocket.MessageText, []byte(`{"type":"emit","name":"a","data":"`+strings.Repeat("x", 5<<20)+`"}`)) // it may break in the middle
	for {
		if _, _, err := w.Read(t.Context()); err != nil {
			break
		}
	}
	s.say(thread)
	if s.ask("GET", thread+"/items?minVersion=3", "").want(http.StatusOK).text("total") != "1" {
		t.Error("the thread has no item")
	}
}
