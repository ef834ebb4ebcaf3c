package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/acp"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

type object = map[string]any

// world is a server with the agent triage, whose reactor does what the last message says.
type world struct {
	*testing.T
	s    *skeintest.Server
	c    *client.Client
	goOn chan struct{} // lets a run that waits go on

	mu   sync.Mutex
	seen []*skein.StepInput
}

func start(t *testing.T) *world {
	t.Helper()
	s := skeintest.Start(t, func(o *skein.Options) { o.NATSListen = "127.0.0.1:0" })
	w := &world{T: t, s: s, c: s.Client("acme"), goOn: make(chan struct{})}
	s.Must(s.Reactor("test", w.react))
	s.Must(s.Tool(skein.NewTool("refund", func(_ context.Context, in struct {
		EUR int `json:"eur"`
	}) (map[string]int, error) {
		return map[string]int{"refunded": in.EUR}, nil
	}, skein.Description("Refunds."))))
	s.Must(s.Tool(skein.NewTool("lookup", func(context.Context, struct{}) (string, error) { return "found", nil }, skein.Description("Looks up."))))
	var d events.ApplyDefinitions
	for _, one := range []struct {
		kind events.DefinitionKind
		text string
	}{
		{events.ToolKind, `{"name":"refund","description":"Refunds.","type":"go","auto":false}`},
		{events.ToolKind, `{"name":"lookup","description":"Looks up.","type":"go"}`},
		{events.ToolKind, `{"name":"how_much","description":"Asks.","type":"person"}`},
		{events.AgentKind, `{"name":"triage","type":"ai_human","reactor":"test","tools":["refund","lookup","how_much"]}`},
	} {
		d.Definitions = append(d.Definitions, events.NewDefinition{Kind: one.kind, Definition: events.JSON(one.text)})
	}
	for _, tenant := range []string{"acme", "other"} {
		_, err := s.Client(tenant).Send(t.Context(), "", d)
		s.Must(err)
	}
	return w
}

func (w *world) react(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	w.mu.Lock()
	w.seen = append(w.seen, in)
	w.mu.Unlock()
	say := func(kind, piece string) {
		data, _ := json.Marshal(map[string]string{"id": kind, "delta": piece})
		out.Chunk(skein.Chunk{Type: kind, Data: data})
	}
	said := in.LastText(events.User)
	arguments := map[string][]string{
		"refund": {`refund {"eur":5}`}, "lookup": {`lookup {}`}, "ask": {`how_much {"question":"How much?"}`},
		"both": {`refund {"eur":5}`, `how_much {"question":"How much?"}`}, "two": {`how_much {"question":"First?"}`, `how_much {"question":"Second?"}`},
	}[said]
	switch {
	case in.Iteration > 0:
		say(events.ChunkTextDelta, "done")
		return skein.Answer("done"), nil
	case arguments != nil:
		r := skein.Answer("let me see")
		for i, one := range arguments {
			name, args, _ := strings.Cut(one, " ")
			r.ToolCalls = append(r.ToolCalls, skein.ToolCall{CallID: fmt.Sprintf("%s-%d", in.ExecutionID[len(in.ExecutionID)-12:], i), Name: name, Arguments: []byte(args)})
		}
		return r, nil
	case said == "wait", said == "fail":
		say(events.ChunkTextDelta, "half an ")
		select {
		case <-w.goOn:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if said == "fail" {
			return nil, errors.New("the model is gone")
		}
		say(events.ChunkTextDelta, "answer")
		return skein.Answer("half an answer"), nil
	case said == "think":
		say(events.ChunkReasoningDelta, "hm")
		r := skein.Answer("thought")
		r.AssistantEvent.Content = append([]events.JSON{
			events.JSON(`{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}`),
			events.JSON(`{"type":"data-plan","data":{"entries":[{"content":"think","priority":"high","status":"completed"}]}}`),
		}, r.AssistantEvent.Content...)
		return r, nil
	}
	for _, piece := range []string{"answer ", "to ", said} {
		say(events.ChunkTextDelta, piece)
	}
	return skein.Answer("answer to " + said), nil
}

// editor is a client of the protocol: it writes lines, and reads those of the server.
type editor struct {
	*world
	in    io.WriteCloser
	out   *bufio.Reader
	ended chan error
	last  int
}

// edit connects an editor of a tenant to the agent.
func (w *world) edit(c *client.Client) *editor {
	w.Helper()
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	e := &editor{world: w, in: in, out: bufio.NewReader(out), ended: make(chan error, 1)}
	go func() {
		err := acp.New(c, acp.Options{Agent: "triage"}).Serve(w.Context(), toServer, fromServer)
		_ = fromServer.Close()
		e.ended <- err
	}()
	w.Cleanup(func() {
		_ = in.Close()
		go func() { _, _ = io.Copy(io.Discard, out) }()
	})
	return e
}

// ready is an editor that has sent initialize, with capabilities.
func (w *world) ready(can object) *editor {
	e := w.edit(w.c)
	e.ask("initialize", object{"protocolVersion": 1, "clientCapabilities": can})
	return e
}

func (e *editor) write(line string) {
	e.Helper()
	if _, err := io.WriteString(e.in, line+"\n"); err != nil {
		e.Fatal(err)
	}
}

// read returns the next message.
func (e *editor) read() object {
	e.Helper()
	type read struct {
		line []byte
		err  error
	}
	next := make(chan read, 1)
	go func() {
		line, err := e.out.ReadBytes('\n')
		next <- read{line, err}
	}()
	r := natstest.Within(e, "a message", next)
	if r.err != nil {
		e.Fatal(r.err)
	}
	var m object
	if err := json.Unmarshal(r.line, &m); err != nil || m["jsonrpc"] != "2.0" {
		e.Fatalf("%q is no message: %v", r.line, err)
	}
	return m
}

// send sends a request, and returns its id.
func (e *editor) send(method string, params any) int {
	e.Helper()
	e.last++
	raw, err := json.Marshal(object{"jsonrpc": "2.0", "id": e.last, "method": method, "params": params})
	if err != nil {
		e.Fatal(err)
	}
	e.write(string(raw))
	return e.last
}

func (e *editor) tell(method string, params any) {
	e.Helper()
	raw, _ := json.Marshal(object{"jsonrpc": "2.0", "method": method, "params": params})
	e.write(string(raw))
}

// reply answers a request of the server.
func (e *editor) reply(to object, result any) {
	e.Helper()
	raw, _ := json.Marshal(object{"jsonrpc": "2.0", "id": to["id"], "result": result})
	e.write(string(raw))
}

// until reads messages to the first that is wanted, and returns the updates before it, as texts.
func (e *editor) until(wanted func(object) bool) (object, []string) {
	e.Helper()
	var told []string
	for {
		m := e.read()
		if wanted(m) {
			return m, told
		}
		if m["method"] != "session/update" {
			e.Fatalf("after %q came %v", told, m)
		}
		told = append(told, updateText(m["params"].(object)["update"].(object)))
	}
}

// answer reads to the answer of a request.
func (e *editor) answer(id int) (object, []string) {
	e.Helper()
	return e.until(func(m object) bool { return m["method"] == nil && m["id"] == float64(id) })
}

// request reads to a request of the server.
func (e *editor) request(method string) (object, []string) {
	e.Helper()
	return e.until(func(m object) bool { return m["method"] == method })
}

// ask sends a request, and returns its result.
func (e *editor) ask(method string, params any) object {
	e.Helper()
	m, _ := e.answer(e.send(method, params))
	result, ok := m["result"].(object)
	if !ok {
		e.Fatalf("%s: %v", method, m)
	}
	return result
}

// session opens a new session.
func (e *editor) session() string {
	e.Helper()
	return e.ask("session/new", object{"cwd": "/work", "mcpServers": []any{}})["sessionId"].(string)
}

func (e *editor) prompt(session, text string) int {
	e.Helper()
	return e.send("session/prompt", object{"sessionId": session, "prompt": []object{{"type": "text", "text": text}}})
}

// stops expects the answer of a prompt, with what came before it.
func (e *editor) stops(id int, reason string, told ...string) {
	e.Helper()
	m, got := e.answer(id)
	result, _ := m["result"].(object)
	if result["stopReason"] != reason || strings.Join(joined(got), "|") != strings.Join(told, "|") {
		e.Errorf("stopped with %v after %q, want %s after %q", m, joined(got), reason, told)
	}
}

// joined joins the pieces of texts.
func joined(list []string) (out []string) {
	for _, one := range list {
		kind, text, _ := strings.Cut(one, ": ")
		if last := len(out) - 1; last >= 0 && strings.HasPrefix(out[last], kind+": ") && !strings.HasPrefix(kind, "tool") {
			out[last] += text
			continue
		}
		out = append(out, one)
	}
	return out
}

// updateText returns an update as "KIND: WHAT".
func updateText(u object) string {
	kind := strings.TrimSuffix(u["sessionUpdate"].(string), "_chunk")
	switch c := u["content"].(type) {
	case object:
		if c["type"] != "text" {
			return kind + ": " + fmt.Sprint(c["type"])
		}
		return kind + ": " + c["text"].(string)
	case []any:
		return kind + ": " + fmt.Sprint(u["status"]) + " " + fmt.Sprint(c[0].(object)["content"].(object)["text"])
	}
	if kind == "plan" {
		return kind + ": " + fmt.Sprint(u["entries"].([]any)[0].(object)["content"])
	}
	return kind + ": " + fmt.Sprint(u["status"])
}
