package chat_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/chat"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// world is an edge at a desk with /chat, in front of a real server.
type world struct {
	*testing.T
	server *skeintest.Server
	url    string
	client *client.Client // of acme
}

// newWorld starts a server with a reactor, and the agents assistant, which uses it, and careful,
// which has tools as well.
func newWorld(t *testing.T, react skein.ReactorFunc) *world {
	t.Helper()
	server := skeintest.Start(t, func(o *skein.Options) { o.NATSListen = "127.0.0.1:0" })
	server.Must(server.Reactor("assistant", react))
	server.Must(server.Tool(skein.NewTool("refund", func(_ context.Context, in struct {
		EUR int `json:"eur"`
	}) (map[string]int, error) {
		return map[string]int{"refunded": in.EUR}, nil
	}, skein.Description("Refunds."))))
	w := &world{T: t, server: server, client: server.Client("acme")}
	var apply events.ApplyDefinitions
	for _, d := range []struct {
		kind events.DefinitionKind
		text string
	}{
		{events.ToolKind, `{"name":"refund","description":"Refunds.","type":"go","auto":false}`},
		{events.ToolKind, `{"name":"how_much","description":"Asks.","type":"person"}`},
		{events.AgentKind, `{"name":"careful","type":"ai_human","reactor":"assistant","tools":["refund","how_much"]}`},
	} {
		apply.Definitions = append(apply.Definitions, events.NewDefinition{Kind: d.kind, Definition: []byte(d.text)})
	}
	_, err := w.client.Send(t.Context(), "", apply)
	server.Must(err)
	nc := natstest.Dial(t, server.Addresses().NATS)
	e, err := edge.New(edge.Options{Conn: nc, Names: events.DefaultNames(), Auth: edge.Desk{}})
	server.Must(err)
	chat.Routes(e)
	front := httptest.NewServer(e)
	t.Cleanup(front.Close)
	t.Cleanup(e.Close)
	w.url = front.URL
	return w
}

// request sends a request of acme. Close the answer's body.
func (w *world) request(ctx context.Context, method, path, tenant, body string, version ...string) *http.Response {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set(edge.HeaderTenant, tenant)
	for _, v := range version {
		r.Header.Set("X-Ai-Sdk", v)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	return answer
}

// do sends a request of acme, and returns the status and the body.
func (w *world) do(method, path, body string) (int, string) {
	w.Helper()
	answer := w.request(w.Context(), method, path, "acme", body)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

// reader reads a stream of chunks.
type reader struct {
	w    *world
	body io.ReadCloser
	scan *bufio.Scanner
	all  []chat.Chunk
}

// post sends the body of POST /chat, and returns the stream that answers.
func (w *world) post(body string) *reader {
	w.Helper()
	return w.stream(http.MethodPost, "/chat", body)
}

// stream sends a request, and returns the stream that answers.
func (w *world) stream(method, path, body string) *reader {
	w.Helper()
	return w.streamOf("", method, path, body)
}

// streamOf is stream for a client of a version of the AI SDK; empty: it says none.
func (w *world) streamOf(version, method, path, body string) *reader {
	w.Helper()
	answer := w.request(w.Context(), method, path, "acme", body, version)
	if answer.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(answer.Body)
		w.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, raw)
	}
	if v := answer.Header.Get("X-Vercel-Ai-Ui-Message-Stream"); v != "v1" {
		w.Errorf("the stream's version is %q", v)
	}
	w.Cleanup(func() { _ = answer.Body.Close() })
	scan := bufio.NewScanner(answer.Body)
	scan.Buffer(nil, 8<<20)
	return &reader{w: w, body: answer.Body, scan: scan}
}

// next returns the next chunk; false at the stream's end.
func (r *reader) next() (chat.Chunk, bool) {
	r.w.Helper()
	for r.scan.Scan() {
		data, is := bytes.CutPrefix(r.scan.Bytes(), []byte("data: "))
		if !is {
			continue
		}
		if string(data) == "[DONE]" {
			return chat.Chunk{}, false
		}
		if bytes.Contains(data, []byte(":null,")) || bytes.Contains(data, []byte(`"providerMetadata"`)) {
			r.w.Errorf("a field is null, or one that Skein does not send: %s", data)
		}
		var c chat.Chunk
		if err := json.Unmarshal(data, &c); err != nil {
			r.w.Fatalf("%s: %v", data, err)
		}
		r.all = append(r.all, c)
		return c, true
	}
	r.w.Fatalf("the stream was cut off after %s: %v", kinds(r.all), r.scan.Err())
	return chat.Chunk{}, false
}

// until reads until a chunk of that type.
func (r *reader) until(kind string) chat.Chunk {
	r.w.Helper()
	for {
		c, ok := r.next()
		if !ok {
			r.w.Fatalf("no %s, but %s", kind, kinds(r.all))
		}
		if c.Type == kind {
			return c
		}
	}
}

// rest reads the rest, and returns the whole message.
func (r *reader) rest() *shown {
	r.w.Helper()
	for {
		if _, ok := r.next(); !ok {
			return fold(r.w, nil, r.all)
		}
	}
}

// message returns the id of the message, with which every stream begins.
func (r *reader) message() string {
	r.w.Helper()
	return r.until("start").MessageID
}

// kinds returns the types of chunks, data parts left out.
func kinds(list []chat.Chunk) string {
	var out []string
	for _, c := range list {
		if !strings.HasPrefix(c.Type, "data-") {
			out = append(out, c.Type)
		}
	}
	return strings.Join(out, " ")
}

// text returns a message of a user, as a client sends it.
func text(id, said string) string {
	return `{"id":` + quote(id) + `,"role":"user","parts":[{"type":"text","text":` + quote(said) + `}]}`
}

func quote(s string) string {
	raw, _ := json.Marshal(s) // a string cannot fail
	return string(raw)
}

// submit returns the body that sends one message.
func submit(id string, messages ...string) string {
	return `{"id":` + quote(id) + `,"agent":"assistant","trigger":"submit-message","messages":[` + strings.Join(messages, ",") + `]}`
}

// echo answers with what was said, in two deltas.
func echo(_ context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	said := "you said " + in.LastText(events.User)
	out.Chunk(skein.Chunk{Type: "text-delta", Data: []byte(`{"id":"a","delta":` + quote(said[:4]) + `}`)})
	out.Chunk(skein.Chunk{Type: "text-delta", Data: []byte(`{"id":"a","delta":` + quote(said[4:]) + `}`)})
	return skein.Answer(said), nil
}

// messages returns the messages of a chat.
func (w *world) messages(id string) []chat.Message {
	w.Helper()
	status, body := w.do(http.MethodGet, "/chat/"+id, "")
	var list []chat.Message
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
		w.Fatalf("%d %s: %v", status, body, err)
	}
	return list
}

// said returns role and text of messages, one word each.
func said(list []chat.Message) string {
	var out []string
	for _, m := range list {
		text := ""
		for _, p := range m.Parts {
			if p.Text != nil && p.Type == "text" {
				text += *p.Text
			}
		}
		out = append(out, m.Role+": "+text)
	}
	return strings.Join(out, " | ")
}

// upToDate returns a world whose client shows everything that was committed by now.
func (w *world) upToDate() *world {
	w.Helper()
	now, err := w.client.UpToDate(w.Context())
	w.server.Must(err)
	return &world{w.T, w.server, w.url, now}
}

// version returns the version of a chat's thread.
func (w *world) version(chat string) int64 {
	w.Helper()
	thread, err := client.Read(w.Context(), w.client, events.GetThread{ThreadID: "key:" + chat})
	w.server.Must(err)
	return thread.Version
}
