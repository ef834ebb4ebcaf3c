package agui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

type object = map[string]any

// world is a server with an agent whose reactor does what it is told.
type world struct {
	*testing.T
	url string
	c   *client.Client
	s   *skeintest.Server

	mu    sync.Mutex
	seen  []*skein.StepInput
	goOn  chan struct{}    // lets a run that was told to wait go on
	waits chan struct{}    // a run waits
	out   chan events.JSON // arguments of refunds
}

func start(t *testing.T) *world {
	t.Helper()
	s := skeintest.Start(t, func(o *skein.Options) { o.HTTPListen, o.NATSListen, o.Tenant = "127.0.0.1:0", "127.0.0.1:0", "acme" })
	w := &world{T: t, url: s.Addresses().HTTP, c: s.Client("acme"), s: s, goOn: make(chan struct{}), waits: make(chan struct{}, 10), out: make(chan events.JSON, 10)}
	s.Must(s.Reactor("test", w.react))
	s.Must(s.Tool(skein.NewTool("refund", func(_ context.Context, in struct {
		EUR int `json:"eur"`
	}) (map[string]any, error) {
		raw, _ := json.Marshal(in)
		w.out <- raw
		return map[string]any{"refunded": in.EUR}, nil
	}, skein.Description("Refunds."))))
	s.Must(s.Tool(skein.NewTool("lookup", func(_ context.Context, _ struct {
		Of string `json:"of"`
	}) (string, error) {
		return "found", nil
	}, skein.Description("Looks up."))))
	d := events.ApplyDefinitions{}
	for kind, list := range map[events.DefinitionKind][]string{
		events.ToolKind: {
			`{"name":"refund","description":"Refunds.","type":"go","auto":false}`, `{"name":"lookup","description":"Looks up.","type":"go"}`,
			`{"name":"how_much","description":"Asks.","type":"person"}`,
		},
		events.AgentKind: {`{"name":"triage","description":"Answers.","type":"ai_human","reactor":"test","tools":["refund","lookup","how_much"]}`},
	} {
		for _, text := range list {
			d.Definitions = append(d.Definitions, events.NewDefinition{Kind: kind, Definition: events.JSON(text)})
		}
	}
	_, err := w.c.Send(t.Context(), "", d)
	s.Must(err)
	return w
}

// now returns a client whose queries show everything that was written before.
func (w *world) now() *client.Client {
	w.Helper()
	c, err := w.c.UpToDate(w.Context())
	w.s.Must(err)
	return c
}

// calls returns a reaction that says something and makes calls, "NAME ARGUMENTS" each.
func calls(in *skein.StepInput, list ...string) *skein.Reaction {
	r := skein.Answer("let me see")
	for i, one := range list {
		name, arguments, _ := strings.Cut(one, " ")
		id := fmt.Sprintf("%s-%s-%d", in.ExecutionID[len(in.ExecutionID)-8:], name, i)
		r.ToolCalls = append(r.ToolCalls, skein.ToolCall{CallID: id, Name: name, Arguments: []byte(arguments)})
		r.AssistantEvent.Content = append(r.AssistantEvent.Content, events.JSON(`{"type":"tool-`+name+`","toolCallId":"`+id+`","input":`+arguments+`}`))
	}
	return r
}

func (w *world) react(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	w.mu.Lock()
	w.seen = append(w.seen, in)
	w.mu.Unlock()
	say := func(piece string) {
		data, _ := json.Marshal(map[string]string{"id": "t", "delta": piece})
		out.Chunk(skein.Chunk{Type: events.ChunkTextDelta, Data: data})
	}
	said := in.LastText(events.User)
	again := in.Iteration > 0
	for _, i := range in.Items { // the result of a call of its caller, and nothing after it
		if i.ID != in.ItemID {
			again = again && i.Role != events.User || in.Iteration > 0 || i.Type == events.ActionResult
		}
	}
	switch {
	case again && said == "refund, then wait", said == "wait":
		say("half an ")
		w.waits <- struct{}{}
		select {
		case <-w.goOn:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		say("answer")
		return skein.Answer("half an answer"), nil
	case again:
	case said == "refund", said == "refund, then wait":
		return calls(in, `refund {"eur":5}`), nil
	case said == "refund and weather":
		return calls(in, `refund {"eur":5}`, `weather {"city":"Paris"}`), nil
	case said == "ask":
		return calls(in, `how_much {"question":"How much?"}`), nil
	case said == "both":
		return calls(in, `refund {"eur":5}`, `how_much {"question":"How much?"}`), nil
	case said == "lookup":
		return calls(in, `lookup {"of":"7"}`), nil
	case said == "weather":
		return calls(in, `weather {"city":"Paris"}`), nil
	case said == "break":
		say("half an ")
		select { // until the client has it
		case <-w.goOn:
		case <-ctx.Done():
		}
		return nil, errors.New("the model is gone")
	case said == "begin again":
		if in.Attempt == 1 {
			say("first try ")
			return nil, &skein.RetryError{Err: errors.New("it broke off")}
		}
		say("second try")
		return skein.Answer("second try"), nil
	case said == "think":
		r := skein.Answer("thought")
		r.AssistantEvent.Content = append([]events.JSON{
			events.JSON(`{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}`), events.JSON(`{"type":"data-chart","data":{"x":1}}`),
		}, r.AssistantEvent.Content...)
		return r, nil
	}
	text := "answer to " + said
	if again {
		text = "done with " + said
	}
	for _, piece := range strings.SplitAfter(text, " ") {
		say(piece)
	}
	r := skein.Answer(text)
	r.Usage = &events.Usage{Model: "m", InputTokens: 3, OutputTokens: 4, TotalTokens: 7}
	return r, nil
}

// last returns what the reactor was asked last.
func (w *world) last() *skein.StepInput {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[len(w.seen)-1]
}

// texts returns the texts that the reactor was shown last.
func (w *world) texts() (list []string) {
	for _, i := range w.last().Items {
		var parts []struct{ Text string }
		_ = json.Unmarshal(i.Content, &parts)
		for _, p := range parts {
			if p.Text != "" {
				list = append(list, string(i.Role)+": "+p.Text)
			}
		}
	}
	return list
}

// agent is a client of a thread, as the released one: it keeps the messages.
type agent struct {
	*world
	thread   string
	name     string // ends its runIds
	runs     int
	messages []object
	tools    []object
	more     object // of the next input
	headers  []string
}

func (w *world) agent(thread string) *agent { return &agent{world: w, thread: thread} }

// user is a message of a user.
func user(id, text string) object { return object{"id": id, "role": "user", "content": text} }

// input returns the body of a request.
func (a *agent) input(run string) string {
	body := object{
		"threadId": a.thread, "runId": run, "messages": append([]object{}, a.messages...), "tools": append([]object{}, a.tools...), "context": []object{},
		"state": object{}, "forwardedProps": object{}, "protocolVersion": "1.0",
	}
	for name, v := range a.more {
		body[name] = v
	}
	raw, _ := json.Marshal(body)
	return string(raw)
}

// request sends a body. Headers are pairs.
func (w *world) request(ctx context.Context, path, body string, headers ...string) *http.Response {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader(body))
	w.s.Must(err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	w.s.Must(err)
	w.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// post sends a body, and returns the status and the answer.
func (w *world) post(path, body string, headers ...string) (int, string) {
	w.Helper()
	answer := w.request(w.Context(), path, body, headers...)
	raw, err := io.ReadAll(answer.Body)
	w.s.Must(err)
	return answer.StatusCode, string(raw)
}

// say sends a message of the user.
func (a *agent) say(text string) []object {
	a.Helper()
	a.messages = append(a.messages, user(fmt.Sprintf("u%d", len(a.messages)), text))
	return a.run()
}

// run runs the agent, and applies the events as the released client does.
func (a *agent) run() []object {
	a.Helper()
	a.runs++
	return a.runAs(fmt.Sprintf("%s-r%d%s", a.thread, a.runs, a.name))
}

func (a *agent) runAs(run string) []object {
	a.Helper()
	list := a.read(a.request(a.Context(), "/agui/triage", a.input(run), a.headers...))
	a.more = nil
	return list
}

// connect reads what a client is sent that comes back.
func (a *agent) connect() []object {
	a.Helper()
	a.messages = nil
	return a.read(a.request(a.Context(), "/agui/agent/triage/connect", a.input("connect"), a.headers...))
}

// read reads a stream to its end.
func (a *agent) read(answer *http.Response) (list []object) {
	a.Helper()
	if answer.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(answer.Body)
		a.Fatalf("status %d: %s", answer.StatusCode, raw)
	}
	next := a.events(answer)
	for e := next(); e != nil; e = next() {
		list = append(list, e)
	}
	if err := verify(list); err != nil {
		a.Fatalf("%v in %s", err, dump(list))
	}
	return list
}

// events returns the events of a stream, nil at its end.
func (a *agent) events(answer *http.Response) func() object {
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 8<<20)
	return func() object {
		for lines.Scan() {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			var e object
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				a.Fatalf("%v: %s", err, data)
			}
			a.apply(e)
			return e
		}
		return nil
	}
}

// message returns the message with an id, which it adds if it is missing.
func (a *agent) message(id, role string) object {
	for _, m := range a.messages {
		if m["id"] == id {
			return m
		}
	}
	m := object{"id": id, "role": role}
	a.messages = append(a.messages, m)
	return m
}

// call returns a call of the messages.
func (a *agent) call(id any) object {
	for _, m := range a.messages {
		list, _ := m["toolCalls"].([]any)
		for _, c := range list {
			if c.(object)["id"] == id {
				return c.(object)["function"].(object)
			}
		}
	}
	return object{}
}

// apply applies an event to the messages.
func (a *agent) apply(e object) {
	str := func(name string) string { s, _ := e[name].(string); return s }
	switch str("type") {
	case "MESSAGES_SNAPSHOT":
		a.messages = nil
		for _, m := range e["messages"].([]any) {
			a.messages = append(a.messages, m.(object))
		}
	case "TEXT_MESSAGE_START":
		a.message(str("messageId"), "assistant")["content"] = ""
	case "REASONING_MESSAGE_START":
		a.message(str("messageId"), "reasoning")["content"] = ""
	case "TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT":
		m := a.message(str("messageId"), "")
		m["content"] = m["content"].(string) + str("delta")
	case "TOOL_CALL_START":
		m := a.message(str("parentMessageId"), "assistant")
		list, _ := m["toolCalls"].([]any)
		m["toolCalls"] = append(list, object{"id": str("toolCallId"), "type": "function", "function": object{"name": str("toolCallName"), "arguments": ""}})
	case "TOOL_CALL_ARGS":
		f := a.call(str("toolCallId"))
		f["arguments"] = f["arguments"].(string) + str("delta")
	case "TOOL_CALL_RESULT":
		m := a.message(str("messageId"), "tool")
		m["toolCallId"], m["content"] = str("toolCallId"), e["content"]
	case "ACTIVITY_SNAPSHOT":
		m := a.message(str("messageId"), "activity")
		m["activityType"], m["content"] = e["activityType"], e["content"]
	}
}

// verify reports what released clients refuse in a stream.
func verify(list []object) error {
	open, active := map[string]bool{}, false
	begin := func(what string) error {
		if open[what] {
			return fmt.Errorf("%s begins twice", what)
		}
		open[what] = true
		return nil
	}
	end := func(what string) error {
		if !open[what] {
			return fmt.Errorf("%s is not open", what)
		}
		delete(open, what)
		return nil
	}
	for i, e := range list {
		kind, err := e["type"].(string), error(nil)
		if !active && kind != "RUN_STARTED" && !(kind == "RUN_ERROR" && i == 0) {
			return fmt.Errorf("%s outside of a run", kind)
		}
		for name, v := range e {
			if v == nil {
				return fmt.Errorf("%s of %s is null", name, kind)
			}
		}
		id, _ := e["messageId"].(string)
		call, _ := e["toolCallId"].(string)
		switch kind {
		case "RUN_STARTED":
			if active {
				return errors.New("a run in a run")
			}
			active = true
		case "RUN_FINISHED", "RUN_ERROR":
			if active = false; len(open) > 0 {
				return fmt.Errorf("%s while %v are open", kind, open)
			}
		case "STEP_STARTED":
			err = begin("step " + e["stepName"].(string))
		case "STEP_FINISHED":
			err = end("step " + e["stepName"].(string))
		case "TEXT_MESSAGE_START", "REASONING_START", "REASONING_MESSAGE_START":
			err = begin(strings.TrimSuffix(kind, "_START") + id)
		case "TEXT_MESSAGE_END", "REASONING_END", "REASONING_MESSAGE_END":
			err = end(strings.TrimSuffix(kind, "_END") + id)
		case "TOOL_CALL_START":
			err = begin("call " + call)
		case "TOOL_CALL_END":
			err = end("call " + call)
		case "TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT":
			if !open[strings.TrimSuffix(kind, "_CONTENT")+id] || e["delta"] == nil {
				err = fmt.Errorf("%v", e)
			}
		case "TOOL_CALL_ARGS":
			if !open["call "+call] {
				err = fmt.Errorf("%v", e)
			}
		}
		if err != nil {
			return err
		}
	}
	if active {
		return errors.New("the stream just ends")
	}
	return nil
}

func dump(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// lastOf returns the last event, whose type must be as said.
func (w *world) lastOf(list []object, kind string) object {
	w.Helper()
	if len(list) == 0 || list[len(list)-1]["type"] != kind {
		w.Fatalf("it does not end with %s: %s", kind, dump(list))
	}
	return list[len(list)-1]
}

// outcome returns the outcome of a run.
func (w *world) outcome(list []object) object {
	w.Helper()
	o, _ := w.lastOf(list, "RUN_FINISHED")["outcome"].(object)
	return o
}

// interrupts returns those with which a run ends.
func (w *world) interrupts(list []object) (out []object) {
	w.Helper()
	o := w.outcome(list)
	if o["type"] != "interrupt" {
		w.Fatalf("no interrupt: %s", dump(list))
	}
	for _, i := range o["interrupts"].([]any) {
		out = append(out, i.(object))
	}
	return out
}

// resolved is the answer to an interrupt.
func resolved(i object, payload any) object {
	return object{"interruptId": i["id"], "status": "resolved", "payload": payload}
}

// resume answers interrupts.
func (a *agent) resume(answers ...object) []object {
	a.Helper()
	a.more = object{"resume": answers}
	return a.run()
}

// shown returns the messages as "role: content", with the calls of each.
func (a *agent) shown() (list []string) {
	for _, m := range a.messages {
		text, is := m["content"].(string)
		if !is {
			text = strings.TrimSuffix(dump(m["content"]), "null")
		}
		calls, _ := m["toolCalls"].([]any)
		for _, c := range calls {
			f := c.(object)["function"].(object)
			text += fmt.Sprintf(" [%s %s]", f["name"], f["arguments"])
		}
		list = append(list, fmt.Sprintf("%s: %s", m["role"], text))
	}
	return list
}

// want compares the messages with what they should be, and what a client is shown that comes back.
func (a *agent) want(list ...string) {
	a.Helper()
	if got := a.shown(); !slices.Equal(got, list) {
		a.Errorf("the messages are %q, want %q", got, list)
	}
	live := dump(sorted(a.messages))
	again := &agent{world: a.world, thread: a.thread, headers: a.headers}
	again.connect()
	if got := dump(sorted(again.messages)); got != live {
		a.Errorf("reloaded, they are\n%s\nwant\n%s", got, live)
	}
}

// sorted returns messages without what only a snapshot has.
func sorted(list []object) (out []object) {
	for _, m := range list {
		one := object{}
		for name, v := range m {
			if name != "error" {
				one[name] = v
			}
		}
		out = append(out, one)
	}
	return out
}
