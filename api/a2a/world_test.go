package a2a_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/skeintest"
)

type object = map[string]any

// world is a server with an agent whose reactor does what it is told.
type world struct {
	*testing.T
	url   string
	c     *client.Client
	s     *skeintest.Server
	n     int           // of messages and requests
	goOn  chan struct{} // lets a run that was told to wait go on
	waits chan struct{} // a run waits
	out   chan string   // arguments of refunds
}

func start(t *testing.T) *world {
	t.Helper()
	s := skeintest.Start(t, func(o *skein.Options) {
		o.HTTPListen, o.Tenant, o.A2AAgent, o.EgressAllow = "127.0.0.1:0", "acme", "triage", egress.Loopback()
	})
	w := &world{T: t, url: s.Addresses().HTTP, c: s.Client("acme"), s: s, goOn: make(chan struct{}), waits: make(chan struct{}, 10), out: make(chan string, 10)}
	s.Must(s.Reactor("test", w.react))
	s.Must(s.Tool(skein.NewTool("refund", func(_ context.Context, in struct {
		EUR int `json:"eur"`
	}) (map[string]any, error) {
		w.out <- fmt.Sprint(in.EUR)
		return map[string]any{"refunded": in.EUR}, nil
	}, skein.Description("Refunds."))))
	d := events.ApplyDefinitions{}
	for kind, list := range map[events.DefinitionKind][]string{
		events.ToolKind:  {`{"name":"refund","description":"Refunds.","type":"go","auto":false}`, `{"name":"how_much","description":"Asks.","type":"person"}`},
		events.AgentKind: {`{"name":"triage","description":"Answers.","type":"ai_human","reactor":"test","tools":["refund","how_much"]}`, `{"name":"other","type":"ai_human","reactor":"test"}`},
	} {
		for _, text := range list {
			d.Definitions = append(d.Definitions, events.NewDefinition{Kind: kind, Definition: events.JSON(text)})
		}
	}
	_, err := w.c.Send(t.Context(), "", d)
	s.Must(err)
	return w
}

func (w *world) react(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	say := func(piece string) {
		data, _ := json.Marshal(map[string]string{"id": "t", "delta": piece})
		out.Chunk(skein.Chunk{Type: events.ChunkTextDelta, Data: data})
	}
	call := func(name, arguments string) *skein.Reaction {
		r := skein.Answer("let me see")
		id := in.ExecutionID[len(in.ExecutionID)-8:] + "-" + name
		r.ToolCalls = []skein.ToolCall{{CallID: id, Name: name, Arguments: []byte(arguments)}}
		return r
	}
	switch said := in.LastText(events.User); {
	case in.Iteration > 0:
		say("done")
		return skein.Answer("done"), nil
	case said == "refund":
		return call("refund", `{"eur":5}`), nil
	case said == "ask":
		return call("how_much", `{"question":"How much?"}`), nil
	case said == "wait":
		say("half an ")
		w.waits <- struct{}{}
		select {
		case <-w.goOn:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		say("answer")
		return skein.Answer("half an answer"), nil
	case said == "fail":
		return nil, errors.New("the model is gone")
	case said == "begin again":
		if in.Attempt == 1 {
			say("first try ")
			return nil, &skein.RetryError{Err: errors.New("it broke off")}
		}
		say("second try")
		return skein.Answer("second try"), nil
	case said == "chart":
		r := skein.Answer("see")
		r.AssistantEvent.Content = append(r.AssistantEvent.Content, events.JSON(`{"type":"data-chart","data":{"x":1}}`))
		return r, nil
	default:
		text := "answer to " + said
		for _, piece := range strings.SplitAfter(text, " ") {
			say(piece)
		}
		return skein.Answer(text), nil
	}
}

// request sends a body. Headers are pairs.
func (w *world) request(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	w.s.Must(err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	w.s.Must(err)
	w.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// do sends a body, and returns the status and the answer.
func (w *world) do(method, path, body string, headers ...string) (int, object) {
	w.Helper()
	answer := w.request(w.Context(), method, path, body, headers...)
	raw, err := io.ReadAll(answer.Body)
	w.s.Must(err)
	var out object
	if err := json.Unmarshal(raw, &out); err != nil {
		w.Fatalf("%d %s: %v", answer.StatusCode, raw, err)
	}
	return answer.StatusCode, out
}

// call sends a request of JSON-RPC, and returns its result, or its error.
func (w *world) call(method string, params any, headers ...string) (result, failure object) {
	w.Helper()
	w.n++
	body := dump(object{"jsonrpc": "2.0", "id": w.n, "method": method, "params": params})
	_, out := w.do("POST", "/a2a/triage", body, headers...)
	if out["id"] != float64(w.n) || out["jsonrpc"] != "2.0" {
		w.Fatalf("the answer to %s is %s", body, dump(out))
	}
	result, _ = out["result"].(object)
	failure, _ = out["error"].(object)
	return result, failure
}

// message is a message of 1.0. More are pairs.
func (w *world) message(parts []object, more ...string) object {
	w.n++
	m := object{"messageId": fmt.Sprintf("m%d", w.n), "role": "ROLE_USER", "parts": parts}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return object{"message": m}
}

func text(s string) []object { return []object{{"text": s}} }

// send sends a message, and returns its task.
func (w *world) send(params object) object {
	w.Helper()
	result, failure := w.call("SendMessage", params, "A2A-Version", "1.0")
	if failure != nil {
		w.Fatalf("%s: %s", dump(params), dump(failure))
	}
	return result["task"].(object)
}

func (w *world) get(id string) object {
	w.Helper()
	result, failure := w.call("GetTask", object{"id": id})
	if failure != nil {
		w.Fatalf("%s: %s", id, dump(failure))
	}
	return result
}

// stream sends a request that is streamed, and returns a function that returns the next result, nil at the
// end.
func (w *world) stream(ctx context.Context, method string, params any) func() object {
	w.Helper()
	w.n++
	id := w.n
	answer := w.request(ctx, "POST", "/a2a/triage", dump(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params}), "Accept", "text/event-stream")
	if answer.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(answer.Body)
		w.Fatalf("%d %s", answer.StatusCode, raw)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 8<<20)
	return func() object {
		for lines.Scan() {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			var e struct {
				ID     int
				Result object
				Error  object
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil || e.ID != id {
				w.Fatalf("%v: %s", err, data)
			}
			if e.Error != nil {
				return object{"error": e.Error}
			}
			return e.Result
		}
		return nil
	}
}

// seen is a task as a client has it that reads a stream.
type seen struct {
	first     object
	state     string
	asks      object
	artifacts map[string]string
	updates   []object
}

// read reads a stream to its end, and applies it as clients do.
func (w *world) read(next func() object) *seen {
	w.Helper()
	out := &seen{artifacts: map[string]string{}}
	for e := next(); e != nil; e = next() {
		out.updates = append(out.updates, e)
		out.apply(w, e)
	}
	return out
}

func (s *seen) apply(w *world, e object) {
	w.Helper()
	if (e["task"] == nil) == (s.first == nil) {
		w.Fatalf("a stream begins with the one task: %s", dump(e))
	}
	status := func(of object) {
		s.state = of["state"].(string)
		s.asks, _ = of["message"].(object)
	}
	switch {
	case e["task"] != nil:
		s.first = e["task"].(object)
		status(s.first["status"].(object))
		list, _ := s.first["artifacts"].([]any)
		for _, a := range list {
			s.artifacts[a.(object)["artifactId"].(string)] = said(a.(object))
		}
	case e["statusUpdate"] != nil:
		status(e["statusUpdate"].(object)["status"].(object))
	case e["artifactUpdate"] != nil:
		u := e["artifactUpdate"].(object)
		a := u["artifact"].(object)
		id := a["artifactId"].(string)
		if u["append"] != true {
			s.artifacts[id] = ""
		}
		s.artifacts[id] += said(a)
	default:
		w.Fatalf("what is %s", dump(e))
	}
}

// answer returns what the artifacts say.
func (s *seen) answer() string {
	var list []string
	for _, text := range s.artifacts {
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// said returns the texts and data of parts.
func said(of object) string {
	out := ""
	list, _ := of["parts"].([]any)
	for _, p := range list {
		switch p := p.(object); {
		case p["text"] != nil:
			out += p["text"].(string)
		case p["kind"] == "file" || p["raw"] != nil || p["url"] != nil:
			out += dump(p)
		default:
			out += dump(p["data"])
		}
	}
	return out
}

// shown returns a task as "STATE: what its artifacts say".
func shown(task object) string {
	out := task["status"].(object)["state"].(string) + ":"
	list, _ := task["artifacts"].([]any)
	for _, a := range list {
		out += " " + said(a.(object))
	}
	return out
}

// history returns the messages of a task as "role: what it says".
func history(task object) (out []string) {
	list, _ := task["history"].([]any)
	for _, m := range list {
		out = append(out, m.(object)["role"].(string)+": "+said(m.(object)))
	}
	return out
}

func dump(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

func id(task object) string { return task["id"].(string) }

func (w *world) want(what string, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s: %s, want %s", what, got, want)
	}
}
