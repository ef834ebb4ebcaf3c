package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/acp"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/internal/protocoltest"
)

// scene is a stage with the agent talker, which does what it is told:
//
//	wait     says "Hel", waits until it is released, and says "lo."
//	flood    says more than any connection buffers
//	refund   calls a tool that needs an approval, and says "done"
//	ask      asks a person, and says what they have answered
//	weather  calls a tool of the caller's, and says in the next run what that has told
type scene struct {
	*stage
	at       protocoltest.Server
	begun    chan struct{} // a run waits to be released
	release  chan struct{}
	refunded atomic.Int64
	answered atomic.Int64 // how often it was told something else

	mu   sync.Mutex
	runs map[string]int // how often each execution was begun
}

// A flood is so many chunks with so much text: as much as an answer may have, in several MB of a stream.
const (
	pieces = 5_000
	piece  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

func newScene(t *testing.T) *scene {
	s := &scene{stage: newStage(t, map[string]edge.Principal{"": {Tenant: "acme", Subject: "key:a"}}), begun: make(chan struct{}, 100), release: make(chan struct{}), runs: map[string]int{}}
	s.at = protocoltest.Server{URL: s.url, NATS: natstest.Dial(t, s.skein.Addresses().NATS), ACP: func(ctx context.Context, agent string, in io.Reader, out io.Writer) error {
		return acp.New(s.skein.Client("acme"), acp.Options{Agent: agent}).Serve(ctx, in, out)
	}}
	s.skein.Must(s.skein.Reactor("talker", s.react))
	s.skein.Must(s.skein.Tool(skein.NewTool("refund", func(_ context.Context, in struct {
		EUR int `json:"eur"`
	}) (map[string]int, error) {
		s.refunded.Add(1)
		return map[string]int{"refunded": in.EUR}, nil
	}, skein.Description("Refunds."))))
	for _, d := range [][2]string{
		{"tool/refund", `{"name":"refund","description":"Refunds.","type":"go","auto":false}`},
		{"tool/ask", `{"name":"ask","description":"Asks.","type":"person","question":"Why?"}`},
		{"agent/talker", `{"name":"talker","type":"ai_human","reactor":"talker","tools":["refund","ask"]}`},
	} {
		if status, text := s.ask("", "PUT", "/api/definitions/"+d[0], d[1]); status >= 300 {
			t.Fatalf("%s: %d %s", d[0], status, text)
		}
	}
	return s
}

func (s *scene) react(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	say := func(piece string) {
		data, _ := json.Marshal(map[string]string{"id": "t", "delta": piece})
		out.Chunk(skein.Chunk{Type: events.ChunkTextDelta, Data: data})
	}
	said := in.LastText(events.User)
	calls := func(tool, args string) (*skein.Reaction, error) {
		r := skein.Answer("let me see")
		r.ToolCalls = []skein.ToolCall{{CallID: "call-" + in.ExecutionID[len(in.ExecutionID)-12:], Name: tool, Arguments: []byte(args)}}
		return r, nil
	}
	switch last := in.Items[len(in.Items)-1]; {
	case in.Iteration == 0 && last.Type == events.ActionResult:
		say("told " + string(last.Content))
		return skein.Answer("told " + string(last.Content)), nil
	case said == "weather":
		return calls("weather", `{"city":"Paris"}`)
	case in.Iteration > 0 && said == "ask":
		return skein.Answer("told " + string(in.Items[len(in.Items)-1].Content)), nil
	case in.Iteration > 0:
		say("done")
		return skein.Answer("done"), nil
	case said == "wait":
		s.mu.Lock()
		s.runs[in.ExecutionID]++
		s.mu.Unlock()
		say("Hel")
		s.begun <- struct{}{}
		select {
		case <-s.release:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		say("lo.")
		return skein.Answer("Hello."), nil
	case said == "flood":
		for range pieces {
			say(piece)
		}
		return skein.Answer(strings.Repeat(piece, pieces)), nil
	case said == "refund":
		return calls("refund", `{"eur":5}`)
	case said == "ask":
		return calls("ask", `{}`)
	}
	s.answered.Add(1)
	return skein.Answer("answer to " + said), nil
}

// begin begins a run over a protocol, with more headers that are not empty.
func (s *scene) begin(t *testing.T, p protocoltest.Protocol, id, text string, headers ...string) *protocoltest.Stream {
	t.Helper()
	if p.Made {
		if status, body := s.ask("", "POST", "/api/threads", fmt.Sprintf(`{"key":%q}`, id), "Idempotency-Key", "thread-"+id); status >= 300 {
			t.Fatalf("%d %s", status, body)
		}
	}
	r := p.Begin(id, "talker", text)
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			if r.Header == nil {
				r.Header = map[string]string{}
			}
			r.Header[headers[i]] = headers[i+1]
		}
	}
	return protocoltest.Open(t, s.at, r)
}

// started reads until the run of a stream, which waits, has begun.
func (s *scene) started(p protocoltest.Protocol, run *protocoltest.Stream) {
	if <-s.begun; !p.Whole {
		run.ReadTo(p, "Hel")
	}
}

// settle waits until a run that waited for a person has gone on, and has ended.
func (s *scene) settle(p protocoltest.Protocol, run *protocoltest.Stream) {
	if p.Follows { // what decided may be on its way
		run.ReadAll()
	}
	s.skein.WaitIdle()
}

// ended returns the execution of a stream as it is now.
func (s *scene) ended(t *testing.T, run *protocoltest.Stream) *events.Execution {
	t.Helper()
	c, err := s.skein.Client("acme").UpToDate(t.Context())
	s.skein.Must(err)
	if run.Execution() == "" { // it names the thread alone
		list, err := client.Read(t.Context(), c, events.ListExecutions{ThreadID: run.Thread()})
		s.skein.Must(err)
		return &list.Executions[0]
	}
	x, err := client.Read(t.Context(), c, events.GetExecution{ExecutionID: run.Execution()})
	s.skein.Must(err)
	return x
}

// over runs a case over protocols.
func over(t *testing.T, list []protocoltest.Protocol, do func(t *testing.T, s *scene, p protocoltest.Protocol, id string)) {
	t.Parallel()
	s := newScene(t)
	for n, p := range list {
		t.Run(p.Name, func(t *testing.T) { do(t, s, p, fmt.Sprintf("order-%d", n)) })
	}
}

// forEach runs a case over all protocols with HTTP, and forEvery over all.
func forEach(t *testing.T, do func(t *testing.T, s *scene, p protocoltest.Protocol, id string)) {
	over(t, protocoltest.All(), do)
}

func forEvery(t *testing.T, do func(t *testing.T, s *scene, p protocoltest.Protocol, id string)) {
	over(t, protocoltest.Every(), do)
}

// A stream that was cut off is resumed: the client has all of the text, once, and the run was made once.
func TestProtocols_ResumeAfterACut(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		first := s.begin(t, p, id, "wait")
		s.started(p, first)
		first.Cut()
		next := protocoltest.Open(t, s.at, p.Resume(id, "talker", "wait", first))
		if !p.Continues && !p.Whole {
			next.ReadTo(p, "Hel")
		}
		s.release <- struct{}{}
		next.ReadAll()
		text := p.Text(next.Frames)
		if p.Continues {
			text = p.Text(first.Frames) + text
		}
		if text != "Hello." || !next.Contains(p.Completed) {
			t.Errorf("the text is %q in\n%s", text, next)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if x := s.ended(t, next); s.runs[x.ID] != 1 || !p.Whole && x.ID != first.Execution() {
			t.Errorf("%s was run %d times", x.ID, s.runs[x.ID])
		}
	})
}

// A request that is sent again, during its run and after it, is answered by the same run; another one
// with its name is refused.
func TestProtocols_Repeat(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		first := s.begin(t, p, id, "wait")
		s.started(p, first)
		during := s.begin(t, p, id, "wait")
		if !p.Whole {
			during.ReadTo(p, "Hel")
		}
		s.release <- struct{}{}
		first.ReadAll()
		after := s.begin(t, p, id, "wait").ReadAll()
		for name, again := range map[string]*protocoltest.Stream{"during": during.ReadAll(), "after": after} {
			if text := p.Text(again.Frames); text != "Hello." || again.Execution() != first.Execution() || !again.Contains(p.Completed) {
				t.Errorf("%s: %d, the text %q of %s, and not of %s, in\n%s", name, again.Status, text, again.Execution(), first.Execution(), again)
			}
		}
		if other := s.begin(t, p, id, "something else").ReadAll(); other.Execution() != "" || other.Status < 400 && !other.Contains(`"error":{"code":-32602`) && !other.Contains(edge.HeaderKey) {
			t.Errorf("another request: %d\n%s", other.Status, other)
		}
	})
}

// A conversation that is read again, by a client that has none of it, has what was said, once.
func TestProtocols_Reload(t *testing.T) {
	forEvery(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		if p.Reload == nil {
			t.Skip("the protocol reads nothing again")
		}
		run := s.begin(t, p, id, "hello").ReadAll()
		s.skein.WaitIdle()
		again := protocoltest.Open(t, s.at, p.Reload(id, "talker", run)).ReadAll()
		if n := strings.Count(again.String(), "answer to hello"); again.Status != http.StatusOK || n != 1 {
			t.Errorf("%d, with the answer %d times:\n%s", again.Status, n, again)
		}
	})
}

// A run that is cancelled ends its stream as such, and keeps the text that was streamed.
func TestProtocols_Cancel(t *testing.T) {
	forEvery(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.begin(t, p, id, "wait")
		s.started(p, run)
		if answer := protocoltest.Open(t, s.at, p.Cancel(id, "talker", run)).ReadAll(); answer.Status >= 300 {
			t.Errorf("%d %s", answer.Status, answer)
		}
		run.ReadAll()
		if !run.Contains(p.Cancelled) || !p.Whole && p.Text(run.Frames) != "Hel" {
			t.Errorf("the text is %q in\n%s", p.Text(run.Frames), run)
		}
		s.skein.WaitIdle()
		if x := s.ended(t, run); !x.Finished || !x.Stopped {
			t.Errorf("%+v", x)
		}
	})
}

// asks begins a run that waits for a person, and reads what its stream says.
func (s *scene) asks(t *testing.T, p protocoltest.Protocol, id, text string) *protocoltest.Stream {
	t.Helper()
	run := s.begin(t, p, id, text)
	if p.Name == "REST" { // which follows the run until somebody has answered
		s.skein.WaitIdle()
		_, list := s.ask("", "GET", "/api/threads/key:"+id+"/executions", "")
		run.Frames = append(run.Frames, protocoltest.Frame{Data: list})
	} else {
		run.ReadToWait(p)
	}
	return run
}

// A run that waits for an approval ends its stream, or tells of it there, and goes on when the approval
// is granted over the same protocol.
func TestProtocols_Approval(t *testing.T) {
	forEvery(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.asks(t, p, id, "refund")
		if !run.Contains(p.Waits) {
			t.Fatalf("%d %s", run.Status, run)
		}
		answer := protocoltest.Open(t, s.at, p.Grant(id, "talker", run)).ReadAll()
		if answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer)
		}
		s.settle(p, run)
		if x := s.ended(t, run); !x.Finished || x.Status != events.ExecutionCompleted {
			t.Errorf("%+v", x)
		}
	})
}

// So does one that waits for the answer of a person, which it is told.
func TestProtocols_Question(t *testing.T) {
	forEvery(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.asks(t, p, id, "ask")
		if answer := protocoltest.Open(t, s.at, p.Answer(id, "talker", "it was late", run)).ReadAll(); answer.Status != http.StatusOK {
			t.Fatalf("%d %s, after\n%s", answer.Status, answer, run)
		}
		s.settle(p, run)
		x := s.ended(t, run)
		if _, said := s.ask("", "GET", "/api/threads/"+x.ThreadID+"/messages", ""); x.Status != events.ExecutionCompleted || !strings.Contains(said, "told ") || !strings.Contains(said, "it was late") {
			t.Errorf("%+v\n%s", x, said)
		}
	})
}

// A run that waits for a person is cancelled, too: its call is never made, also if somebody grants it
// afterwards. One that has ended stays as it ended.
func TestProtocols_CancelBesidesStreams(t *testing.T) {
	forEvery(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		refunded := s.refunded.Load()
		run := s.asks(t, p, id, "refund")
		if answer := protocoltest.Open(t, s.at, p.Cancel(id, "talker", run)).ReadAll(); answer.Status >= 300 {
			t.Errorf("%d %s", answer.Status, answer)
		}
		s.settle(p, run)
		if late := protocoltest.Open(t, s.at, p.Grant(id, "talker", run)).ReadAll(); late.Status >= 500 {
			t.Errorf("granted afterwards: %d %s", late.Status, late)
		}
		s.skein.WaitIdle()
		if x := s.ended(t, run); !x.Finished || !x.Stopped || s.refunded.Load() != refunded {
			t.Errorf("%d refunds of %+v", s.refunded.Load()-refunded, x)
		}

		done := s.begin(t, p, id+"-done", "hello").ReadAll()
		if answer := protocoltest.Open(t, s.at, p.Cancel(id+"-done", "talker", done)).ReadAll(); answer.Status >= 500 {
			t.Errorf("after its end: %d %s", answer.Status, answer)
		}
		if x := s.ended(t, done); x.Status != events.ExecutionCompleted || x.Stopped {
			t.Errorf("%+v", x)
		}
	})
}

// A credential that is revoked in mid-stream ends the stream, not as one that has completed, and not
// the run: another credential reads it to its end.
func TestProtocols_RevokedInMidStream(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		before := s.people[""]
		valid, revoke := context.WithCancel(t.Context())
		defer revoke()
		revoked := before
		revoked.Valid = valid
		s.people[""] = revoked
		run := s.begin(t, p, id, "wait")
		s.started(p, run)
		revoke()
		if run.ReadAll(); run.Contains(p.Completed) {
			t.Errorf("%s", run)
		}
		s.people[""] = before
		s.release <- struct{}{}
		s.skein.WaitIdle()
		if x := s.ended(t, run); x.Status != events.ExecutionCompleted || x.Stopped {
			t.Errorf("%+v", x)
		}
	})
}

// Each right alone begins no run: an answer has to be read as well. Without the right to approve, a key
// grants nothing, over no protocol.
func TestProtocols_FewRights(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		all := s.people[""]
		defer func() { s.people[""] = all }()
		with := func(can ...edge.Capability) {
			s.people[""] = edge.Principal{Tenant: "acme", Subject: "key:a", Can: can}
		}
		refused := func(what string, r protocoltest.Request) {
			t.Helper()
			if answer := protocoltest.Open(t, s.at, r).ReadAll(); answer.Execution() != "" || answer.Status != http.StatusForbidden && !answer.Contains(`"forbidden"`) && !answer.Contains(`"forbidden: `) {
				t.Errorf("%s: %d %s", what, answer.Status, answer)
			}
		}
		if p.Made {
			s.ask("", "POST", "/api/threads", fmt.Sprintf(`{"key":"%s-0"}`, id))
		}
		for _, can := range edge.Capabilities() {
			with(can)
			refused(string(can), p.Begin(id+"-0", "talker", "refund"))
		}
		with(edge.Read, edge.Write)
		run := s.asks(t, p, id, "refund")
		refunded := s.refunded.Load()
		refused("a grant", p.Grant(id, "talker", run))
		s.skein.WaitIdle()
		if x := s.ended(t, run); x.Finished || s.refunded.Load() != refunded {
			t.Errorf("%+v", x)
		}
	})
}

// A reader that takes nothing does not delay the run, and has all of it when it reads on.
func TestProtocols_SlowReader(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.begin(t, p, id, "flood")
		if !p.Whole {
			run.ReadTo(p, "0")
		}
		s.skein.WaitIdle() // the run ends, though the reader takes nothing
		run.ReadAll()
		if n := len(p.Text(run.Frames)); n != pieces*len(piece) || !run.Contains(p.Completed) {
			t.Errorf("%d of %d bytes, and then %.600s", n, pieces*len(piece), run.Frames[len(run.Frames)-1].Data)
		}
	})
}
