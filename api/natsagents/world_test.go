package natsagents_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// world is a server with the agent triage, whose reactor does what the last message says, and a
// connection of someone who knows nothing of Skein.
type world struct {
	*testing.T
	s    *skeintest.Server
	c    *client.Client
	nc   *nats.Conn
	goOn chan struct{} // lets a run that waits go on

	mu   sync.Mutex
	seen []*skein.StepInput
}

func start(t *testing.T) *world {
	t.Helper()
	s := skeintest.Start(t, func(o *skein.Options) { o.NATSListen, o.AgentsProtocol = "127.0.0.1:0", true })
	w := &world{T: t, s: s, c: s.Client("acme"), nc: natstest.Dial(t, s.Addresses().NATS), goOn: make(chan struct{})}
	s.Must(s.Reactor("test", w.react))
	s.Must(s.Tool(skein.NewTool("refund", func(_ context.Context, in struct {
		EUR int `json:"eur"`
	}) (map[string]int, error) {
		return map[string]int{"refunded": in.EUR}, nil
	}, skein.Description("Refunds."))))
	w.define("acme", events.ToolKind, `{"name":"refund","description":"Refunds.","type":"go","auto":false}`)
	w.define("acme", events.ToolKind, `{"name":"how_much","description":"Asks.","type":"person","answer":{"type":"object","properties":{"eur":{"type":"integer"}},"required":["eur"]}}`)
	w.define("acme", events.AgentKind, `{"name":"triage","description":"Answers.","type":"ai_human","reactor":"test","tools":["refund","how_much"]}`)
	return w
}

func (w *world) define(tenant string, kind events.DefinitionKind, text string) {
	w.Helper()
	_, err := w.s.Client(tenant).Send(w.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{{Kind: kind, Definition: events.JSON(text)}}})
	w.s.Must(err)
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
	call := map[string]string{"refund": `{"eur":5}`, "how_much": `{"question":"How much?"}`}[said]
	switch {
	case in.Iteration > 0:
		say("done")
		return skein.Answer("done"), nil
	case call != "":
		r := skein.Answer("let me see")
		r.ToolCalls = []skein.ToolCall{{CallID: in.ExecutionID[len(in.ExecutionID)-12:], Name: said, Arguments: []byte(call)}}
		return r, nil
	case said == "wait":
		select {
		case <-w.goOn:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	case said == "fail":
		return nil, errors.New("the model\nis gone")
	}
	for piece := range strings.SplitAfterSeq("answer to "+said, " ") {
		say(piece)
	}
	return skein.Answer("answer to " + said), nil
}

// stream is what comes back for a request.
type stream struct {
	*world
	messages chan *nats.Msg
}

// ask publishes a request, whose replies the stream has.
func (w *world) ask(subject, body string) *stream {
	w.Helper()
	s := &stream{w, make(chan *nats.Msg, 256)}
	inbox := w.nc.NewRespInbox()
	sub, err := w.nc.ChanSubscribe(inbox, s.messages)
	w.s.Must(err)
	w.Cleanup(func() { _ = sub.Unsubscribe() })
	w.s.Must(w.nc.PublishRequest(subject, inbox, []byte(body)))
	return s
}

func (s *stream) next() *nats.Msg {
	s.Helper()
	return natstest.Within(s, "a message", s.messages)
}

type chunk struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// text returns a message as a text: "TYPE DATA", "error CODE TEXT", or "" for the end.
func (s *stream) text() string {
	s.Helper()
	m := s.next()
	if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
		return "error " + code + " " + m.Header.Get("Nats-Service-Error")
	}
	if len(m.Data) == 0 && len(m.Header) == 0 {
		return ""
	}
	var c chunk
	if err := json.Unmarshal(m.Data, &c); err != nil {
		s.Fatalf("%q is no chunk: %v", m.Data, err)
	}
	return c.Type + " " + string(c.Data)
}

// all returns the texts to the end, or to the first query. Responses are joined, and acks but the first
// left out.
func (s *stream) all() (list []string) {
	s.Helper()
	for {
		text := s.text()
		switch last := len(list) - 1; {
		case text == "":
			return list
		case strings.HasPrefix(text, "query "):
			return append(list, text)
		case text == `status "ack"` && last >= 0:
		case last >= 0 && strings.HasPrefix(text, `response "`) && strings.HasPrefix(list[last], `response "`):
			list[last] = strings.TrimSuffix(list[last], `"`) + strings.TrimPrefix(text, `response "`)
		default:
			list = append(list, text)
		}
	}
}

// is expects these texts.
func (s *stream) is(want ...string) {
	s.Helper()
	if got := s.all(); strings.Join(got, "|") != strings.Join(want, "|") {
		s.Errorf("got  %q\nwant %q", got, want)
	}
}

type query struct {
	ID     string `json:"id"`
	Reply  string `json:"reply_subject"`
	Prompt string `json:"prompt"`
}

// query reads to the next query.
func (s *stream) query() query {
	s.Helper()
	list := s.all()
	data, is := strings.CutPrefix(list[len(list)-1], "query ")
	var q query
	if err := json.Unmarshal([]byte(data), &q); !is || err != nil || q.ID == "" || q.Reply == "" {
		s.Fatalf("no query, but %q", list)
	}
	return q
}
