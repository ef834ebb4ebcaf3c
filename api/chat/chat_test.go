package chat_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// A chat begins with its first message, goes on with others, and is listed.
func TestChat_SendsAndLists(t *testing.T) {
	w := newWorld(t, echo)
	first := w.post(submit("c1", text("u1", "hi"))).rest()
	if first.String() != "step | text=you said hi" || first.end != "stop" {
		t.Errorf("the first answer is %s, %s", first, first.end)
	}
	second := w.post(`{"id":"c1","message":` + text("u2", "and you?") + `}`).rest()
	if second.String() != "step | text=you said and you?" || second.id == first.id {
		t.Errorf("the second answer is %s %s", second.id, second)
	}
	list := w.messages("c1")
	if got := said(list); got != "user: hi | assistant: you said hi | user: and you? | assistant: you said and you?" {
		t.Errorf("messages: %s", got)
	}
	if list[0].ID != "u1" || list[1].ID != first.id || list[2].ID != "u2" || list[3].ID != second.id {
		t.Errorf("ids: %+v", list)
	}
	thread, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: "key:c1"})
	if err != nil || thread.AgentID != "assistant" {
		t.Errorf("the thread: %+v, %v", thread, err)
	}
	if status, body := w.do(http.MethodGet, "/chat/c1/stream", ""); status != http.StatusNoContent {
		t.Errorf("where nothing runs: %d %s", status, body)
	}
}

// paced answers in pieces, each when the test allows it.
type paced struct {
	pieces chan string
	asked  chan struct{}
}

func newPaced() *paced { return &paced{make(chan string), make(chan struct{}, 16)} }

func (p *paced) react(ctx context.Context, _ *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	var all strings.Builder
	p.asked <- struct{}{}
	for {
		select {
		case piece, more := <-p.pieces:
			if !more || piece == "" {
				return skein.Answer(all.String()), nil
			}
			all.WriteString(piece)
			out.Chunk(skein.Chunk{Type: "text-delta", Data: []byte(`{"id":"t","delta":` + quote(piece) + `}`)})
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// A stream that is resumed in the middle of a sentence begins with the message's start, with
// the ids of the first one, and both end with the same message.
func TestStream_ResumesInTheMiddle(t *testing.T) {
	p := newPaced()
	w := newWorld(t, p.react)
	one := w.post(submit("c1", text("u1", "hi")))
	p.pieces <- "Once upon"
	id := one.message()
	begun := one.until("text-delta")
	two := w.stream(http.MethodGet, "/chat/c1/stream", "")
	if again := two.message(); again != id {
		t.Errorf("the message is %s, and when resumed %s", id, again)
	}
	if again := two.until("text-delta"); again.ID != begun.ID || again.Delta != "Once upon" {
		t.Errorf("resumed with %+v after %+v", again, begun)
	}
	if got := said(w.messages("c1")); got != "user: hi" {
		t.Errorf("what is being written is listed: %s", got)
	}
	p.pieces <- " a time"
	p.pieces <- ""
	for _, r := range []*reader{one, two} {
		if m := r.rest(); m.String() != "step | text=Once upon a time" || m.end != "stop" {
			t.Errorf("%s, %s", m, m.end)
		}
	}
	if got := said(w.messages("c1")); got != "user: hi | assistant: Once upon a time" {
		t.Errorf("messages: %s", got)
	}
}

// A client that disconnects stops nothing. A stop keeps the text.
func TestStop_KeepsTheText(t *testing.T) {
	p := newPaced()
	w := newWorld(t, p.react)
	one := w.post(submit("c1", text("u1", "hi")))
	p.pieces <- "Once upon"
	id := one.message()
	one.until("text-delta")
	_ = one.body.Close()
	two := w.stream(http.MethodGet, "/chat/c1/stream", "")
	two.until("text-delta")
	if status, body := w.do(http.MethodPost, "/chat/c1/stop", `{"messageId":"another"}`); status != 200 || body != `{"stopped":false}` {
		t.Errorf("a stop of another message: %d %s", status, body)
	}
	if status, body := w.do(http.MethodPost, "/chat/c1/stop", `{"messageId":"`+id+`"}`); status != 200 || body != `{"stopped":true}` {
		t.Errorf("stop: %d %s", status, body)
	}
	if m := two.rest(); m.String() != "step | text=Once upon" || !m.abort || m.failed != "" {
		t.Errorf("stopped: %s, %+v", m, m)
	}
	if status, body := w.do(http.MethodPost, "/chat/c1/stop", ""); status != 200 || body != `{"stopped":false}` {
		t.Errorf("a second stop: %d %s", status, body)
	}
	if got := said(w.messages("c1")); got != "user: hi | assistant: Once upon" {
		t.Errorf("messages: %s", got)
	}
}

// Asking again hides the answer, and editing a message hides it and what followed, wherever in
// the conversation they are.
func TestChat_RegeneratesAndEdits(t *testing.T) {
	n := 0
	w := newWorld(t, func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		n++
		var roles []string
		for _, i := range in.Items {
			roles = append(roles, string(i.Role[:1]))
		}
		return skein.Answer(in.LastText(events.User) + "/" + strings.Join(roles, "") + "/" + quote(strings.Repeat("x", n))), nil
	})
	first := w.post(submit("c1", text("u1", "one"))).rest()
	w.post(submit("c1", text("u2", "two"))).rest()
	regenerate := func(messageID string) string {
		return `{"id":"c1","trigger":"regenerate-message","messageId":` + messageID + `,"messages":[` + text("u1", "one") + `]}`
	}
	w.post(regenerate("null")).rest()
	if got := said(w.messages("c1")); got != `user: one | assistant: one/u/"x" | user: two | assistant: two/uau/"xxx"` {
		t.Errorf("the last answer again: %s", got)
	}
	w.post(regenerate(quote(first.id))).rest()
	list := w.messages("c1")
	if got := said(list); got != `user: one | assistant: one/u/"xxxx"` {
		t.Errorf("the first answer again: %s", got)
	}
	if list[0].ID != "u1" {
		t.Errorf("the user's message is %s now", list[0].ID)
	}
	w.post(submit("c1", text("u3", "three"))).rest()
	w.post(`{"id":"c1","trigger":"submit-message","messageId":"u1","messages":[` + text("u1", "uno") + `]}`).rest()
	if list = w.messages("c1"); said(list) != `user: uno | assistant: uno/u/"xxxxxx"` || list[0].ID != "u1" {
		t.Errorf("the first message edited: %s, %+v", said(list), list[0])
	}
	w.post(submit("c1", text("u4", "four"))).rest()
	w.post(`{"id":"c1","messageId":"u4","messages":[` + text("u4", "quattro") + `]}`).rest()
	if list = w.messages("c1"); said(list) != `user: uno | assistant: uno/u/"xxxxxx" | user: quattro | assistant: quattro/uau/"xxxxxxxx"` || list[2].ID != "u4" {
		t.Errorf("the last message edited: %s", said(list))
	}
}

// A repeated request is the same request: its stream is that of the first run.
func TestChat_RepeatedRequest(t *testing.T) {
	w := newWorld(t, echo)
	for _, message := range []string{text("u1", "hi"), text("u2", "more")} {
		one, two := w.post(submit("c1", message)).rest(), w.post(submit("c1", message)).rest()
		if one.id != two.id || one.String() != two.String() {
			t.Errorf("%s %s, and then %s %s", one.id, one, two.id, two)
		}
	}
	if got := said(w.messages("c1")); got != "user: hi | assistant: you said hi | user: more | assistant: you said more" {
		t.Errorf("messages: %s", got)
	}
}

// A chat may begin with messages that the client has already, of every kind.
func TestChat_InitialMessages(t *testing.T) {
	w := newWorld(t, echo)
	earlier := []string{
		`{"id":"s1","role":"system","parts":[{"type":"text","text":"Be brief."}]}`,
		text("u1", "hi"),
		`{"id":"a1","role":"assistant","metadata":{"n":1},"parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"text","text":"hello","state":"done"},` +
			`{"type":"tool-find","toolCallId":"x1","state":"output-available","input":{"q":1},"output":[2]},{"type":"source-url","sourceId":"s","url":"https://a.example"},` +
			`{"type":"data-skein-step","id":"forged","data":{}},{"type":"data-weather","id":"w","data":{"c":20}}]}`,
	}
	m := w.post(submit("c1", append(earlier, text("u.2", "bye"))...)).rest()
	if m.String() != "step | text=you said bye" {
		t.Errorf("%s", m)
	}
	list := w.messages("c1")
	if got := said(list); got != "system: Be brief. | user: hi | assistant: hello | user: bye | assistant: you said bye" {
		t.Errorf("messages: %s", got)
	}
	var kept []string
	for _, p := range list[2].Parts {
		kept = append(kept, p.Type+string(p.Output)+p.URL+string(p.Data))
	}
	if got := strings.Join(kept, " "); got != `step-start reasoning text tool-find[2] step-start source-urlhttps://a.example data-weather{"c":20}` {
		t.Errorf("parts: %s", got)
	}
	if string(list[2].Metadata) != `{"n":1}` || list[3].ID != "u.2" {
		t.Errorf("metadata %s, id %s", list[2].Metadata, list[3].ID)
	}
}

// Files are data URLs, or files of the chat's thread, and models are sent their content.
func TestChat_Files(t *testing.T) {
	seen := make(chan string, 9)
	w := newWorld(t, func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		seen <- string(in.Items[len(in.Items)-1].Content)
		return skein.Answer("ok"), nil
	})
	const png = "data:image/png;base64,iVBORw0KGgo="
	file := func(kind, url string) string {
		return `{"type":"file","mediaType":"` + kind + `","filename":"f","url":"` + url + `"}`
	}
	message := func(id string, parts ...string) string {
		return `{"id":"` + id + `","role":"user","parts":[` + strings.Join(parts, ",") + `]}`
	}
	w.post(submit("c1", message("u1", file("image/png", png), file("text/plain", "data:text/plain;base64,eA=="), file("application/pdf", "https://a.example/b.pdf")))).rest()
	if got := <-seen; got != `[{"filename":"f","image_url":"`+png+`","mediaType":"image/png","type":"input_image"},`+
		`{"file_data":"data:text/plain;base64,eA==","filename":"f","mediaType":"text/plain","type":"input_file"},`+
		`{"file_url":"https://a.example/b.pdf","filename":"f","mediaType":"application/pdf","type":"input_file"}]` {
		t.Errorf("the model was sent %s", got)
	}
	thread, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: "key:c1"})
	w.server.Must(err)
	files := w.client.Files(thread.ID)
	_, err = files.WriteFile(t.Context(), "/in/a b.txt", []byte("x"), "text/plain", client.WriteFileOptions{})
	w.server.Must(err)
	_, err = files.WriteFile(t.Context(), "/large", make([]byte, 20<<20+1), "application/octet-stream", client.WriteFileOptions{})
	w.server.Must(err)
	const own = "/api/threads/key:c1/files/in/a%20b.txt"
	w.post(submit("c1", message("u2", file("text/plain", own)))).rest()
	if got := <-seen; !strings.Contains(got, `"file_data":"data:text/plain;base64,eA=="`) {
		t.Errorf("the model was sent %s", got)
	}
	for path, want := range map[string]int{"large": http.StatusRequestEntityTooLarge, "none": http.StatusNotFound, "in": http.StatusUnprocessableEntity} {
		if status, body := w.do(http.MethodPost, "/chat", submit("c1", message("u3", file("text/plain", "/api/threads/"+thread.ID+"/files/"+path)))); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	list := w.messages("c1")
	if p := list[0].Parts; len(p) != 3 || p[0].URL != png || p[1].URL != "data:text/plain;base64,eA==" || p[2].URL != "https://a.example/b.pdf" || p[0].MediaType != "image/png" {
		t.Errorf("listed: %+v", p)
	}
	if p := list[2].Parts; len(p) != 1 || p[0].URL != own || p[0].Type != "file" {
		t.Errorf("listed: %+v", p)
	}
}

// A photo of megabytes, in the message that begins a chat or in a later one, is a file of the thread:
// a reactor reads it, and the page has its URL, with which it can be sent again. Refusals speak of
// the file and the message.
func TestChat_LargeFiles(t *testing.T) {
	type sight struct {
		part string
		file []byte
	}
	seen := make(chan sight, 9)
	w := newWorld(t, func(ctx context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		part := string(in.Items[len(in.Items)-1].Content)
		_, path, _ := strings.Cut(part, `"image_url":"skein:`)
		path, _, _ = strings.Cut(path, `"`)
		data, err := in.Files.ReadFile(ctx, path)
		seen <- sight{part, data}
		return skein.Answer("ok"), err
	})
	photo := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("x"), 3<<20)...)
	message := func(id, url string) string {
		return `{"id":"` + id + `","role":"user","parts":[{"type":"file","mediaType":"image/png","filename":"photo.png","url":"` + url + `"}]}`
	}
	data := func(content []byte) string {
		return "data:image/png;base64," + base64.StdEncoding.EncodeToString(content)
	}
	check := func(what string) {
		t.Helper()
		if got := <-seen; !bytes.Equal(got.file, photo) || len(got.part) > 1000 {
			t.Errorf("%s: the reactor was sent %.300s, and read %d bytes", what, got.part, len(got.file))
		}
	}
	before := message("u0", data(append(photo[:len(photo)-1:len(photo)-1], 'y')))
	w.post(submit("p1", before, message("u1", data(photo)))).rest()
	check("a new chat")
	w.post(submit("p1", message("u2", data(photo)))).rest()
	check("a later message")
	list := w.messages("p1")
	url := list[1].Parts[0].URL
	if len(list) != 5 || !strings.HasPrefix(url, "/api/threads/T-") || list[2].ID == "" || list[3].Parts[0].URL != url || list[0].Parts[0].URL == url {
		t.Fatalf("listed: %+v", list)
	}
	w.post(submit("p1", message("u3", url))).rest()
	check("its own URL")

	large := data(make([]byte, 21<<20))
	for chat, body := range map[string]string{
		"the file photo.png": submit("p1", message("u4", large)),
		"photo.png":          submit("p2", message("u5", large)),
		"the message takes":  submit("p1", text("u6", strings.Repeat("x", 600<<10))),
	} {
		if status, said := w.do(http.MethodPost, "/chat", body); status != http.StatusRequestEntityTooLarge || !strings.Contains(said, chat) || strings.Contains(said, "command") {
			t.Errorf("%d %s", status, said)
		}
	}
	if status, _ := w.do(http.MethodGet, "/chat/p2", ""); status != http.StatusNotFound {
		t.Errorf("a refused chat exists: %d", status)
	}
}

// A message that is sent during a run waits, and its stream follows the run that answers it. A
// run that fails says so in its stream.
func TestChat_QueuedAndFailed(t *testing.T) {
	p := newPaced()
	fail := make(chan bool, 1)
	w := newWorld(t, func(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		select {
		case <-fail:
			return nil, errors.New("the model is gone")
		default:
			return p.react(ctx, in, out)
		}
	})
	one := w.post(submit("c1", text("u1", "hi")))
	p.pieces <- "first"
	one.until("text-delta")
	two := w.post(submit("c1", text("u2", "ho")))
	second := two.message()
	fail <- true
	p.pieces <- ""
	if m := one.rest(); m.String() != "step | text=first" || m.id == second {
		t.Errorf("the first answer: %s %s", m.id, m)
	}
	if m := two.rest(); m.id != second || m.failed != "the model is gone" || m.end != "error" {
		t.Errorf("the second answer: %+v", m)
	}
}

// A client that does not say that it is of the AI SDK 7 keeps all that it was shown of a step; one
// that does is told to take back what a retry replaces.
func TestStream_ClientVersions(t *testing.T) {
	for version, want := range map[string]string{"": "hello | text=good day", "6": "hello | text=good day", "7": "good day"} {
		t.Run("version "+version, func(t *testing.T) {
			var tries atomic.Int32
			shown := make(chan struct{})
			w := newWorld(t, func(ctx context.Context, _ *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
				if tries.Add(1) == 1 {
					out.Chunk(skein.Chunk{Type: "text-delta", Data: []byte(`{"id":"a","delta":"hello"}`)})
					select {
					case <-shown:
					case <-ctx.Done():
					}
					return nil, &skein.RetryError{Err: errors.New("not yet")}
				}
				out.Chunk(skein.Chunk{Type: "text-delta", Data: []byte(`{"id":"b","delta":"good day"}`)})
				return skein.Answer("good day"), nil
			})
			one := w.streamOf(version, http.MethodPost, "/chat", submit("c1", text("u1", "hi")))
			one.until("text-delta")
			close(shown)
			if got := one.rest().String(); got != "step | text="+want {
				t.Errorf("shown %s, as %s", got, kinds(one.all))
			}
		})
	}
}

// What a stream puts into a message is there after a reload, whatever its type.
func TestChat_ReloadKeepsDataParts(t *testing.T) {
	w := newWorld(t, func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
		r := skein.Answer("hello")
		for _, part := range []string{`{"type":"acme.mood","mood":"good"}`, `{"type":"data-weather","id":"w","data":{"c":20}}`} {
			r.AssistantEvent.Content = append(r.AssistantEvent.Content, []byte(part))
		}
		return r, nil
	})
	one := w.post(submit("c1", text("u1", "hi")))
	one.rest()
	data := map[string]int{}
	for _, c := range one.all {
		if c.Data != nil && !c.Transient && !strings.Contains(string(c.Data), string(events.Executing)) { // what it comes to replaces it
			data[c.Type+" "+string(c.Data)]++
		}
	}
	for _, p := range w.messages("c1")[1].Parts {
		if p.Data != nil {
			data[p.Type+" "+string(p.Data)]--
		}
	}
	for of, n := range data {
		if n != 0 {
			t.Errorf("%s: %+d in the stream", of, n)
		}
	}
	if len(data) != 4 {
		t.Errorf("the data are %v", data)
	}
}
