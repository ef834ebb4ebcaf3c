package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/protocoltest"
)

// scene is a stage with the agent talker, which does what it is told:
//
//	wait     says "Hel", waits until it is released, and says "lo."
//	flood    says more than any connection buffers
//	refund   calls a tool that needs an approval, and says "done"
//	ask      asks a person, and says what they have answered
type scene struct {
	*stage
	release  chan struct{}
	refunded atomic.Int64

	mu   sync.Mutex
	runs map[string]int // how often each execution was begun
}

// A flood is so many chunks with so much text: as much as an answer may have, in several MB of a stream.
const (
	pieces = 5_000
	piece  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

func newScene(t *testing.T) *scene {
	s := &scene{stage: newStage(t, map[string]edge.Principal{"": {Tenant: "acme", Subject: "key:a"}}), release: make(chan struct{}), runs: map[string]int{}}
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
	switch {
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
	return skein.Answer("answer to " + said), nil
}

// begin begins a run over a protocol. REST needs a thread first.
func (s *scene) begin(t *testing.T, p protocoltest.Protocol, id, text string) *protocoltest.Stream {
	t.Helper()
	if p.Name == "REST" {
		if status, body := s.ask("", "POST", "/api/threads", fmt.Sprintf(`{"key":%q}`, id), "Idempotency-Key", "thread-"+id); status >= 300 {
			t.Fatalf("%d %s", status, body)
		}
	}
	return protocoltest.Open(t, s.url, p.Begin(id, "talker", text))
}

// ended returns an execution as it is now.
func (s *scene) ended(t *testing.T, execution string) *events.Execution {
	t.Helper()
	c, err := s.skein.Client("acme").UpToDate(t.Context())
	s.skein.Must(err)
	x, err := client.Read(t.Context(), c, events.GetExecution{ExecutionID: execution})
	s.skein.Must(err)
	return x
}

// forEach runs a case over all protocols.
func forEach(t *testing.T, do func(t *testing.T, s *scene, p protocoltest.Protocol, id string)) {
	t.Parallel()
	s := newScene(t)
	for n, p := range protocoltest.All() {
		t.Run(p.Name, func(t *testing.T) { do(t, s, p, fmt.Sprintf("order-%d", n)) })
	}
}

// A stream that was cut off is resumed: the client has all of the text, once, and the run was made once.
func TestProtocols_ResumeAfterACut(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		first := s.begin(t, p, id, "wait")
		first.ReadTo(p, "Hel")
		first.Cut()
		next := protocoltest.Open(t, s.url, p.Resume(id, "talker", "wait", first))
		if !p.Continues {
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
		if n := s.runs[first.Execution()]; n != 1 {
			t.Errorf("%s was run %d times", first.Execution(), n)
		}
	})
}

// A request that is sent again, during its run and after it, is answered by the same run; another one
// with its name is refused.
func TestProtocols_Repeat(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		first := s.begin(t, p, id, "wait")
		first.ReadTo(p, "Hel")
		during := s.begin(t, p, id, "wait")
		during.ReadTo(p, "Hel")
		s.release <- struct{}{}
		first.ReadAll()
		after := s.begin(t, p, id, "wait").ReadAll()
		for name, again := range map[string]*protocoltest.Stream{"during": during.ReadAll(), "after": after} {
			if text := p.Text(again.Frames); text != "Hello." || again.Execution() != first.Execution() || !again.Contains(p.Completed) {
				t.Errorf("%s: %d, the text %q of %s, and not of %s, in\n%s", name, again.Status, text, again.Execution(), first.Execution(), again)
			}
		}
		if other := s.begin(t, p, id, "something else").ReadAll(); other.Execution() != "" || other.Status < 400 && !other.Contains(`"error":{"code":-32602`) {
			t.Errorf("another request: %d\n%s", other.Status, other)
		}
	})
}

// A run that is cancelled ends its stream as such, and keeps the text that was streamed.
func TestProtocols_Cancel(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.begin(t, p, id, "wait")
		run.ReadTo(p, "Hel")
		if answer := protocoltest.Open(t, s.url, p.Cancel(id, "talker", run)).ReadAll(); answer.Status >= 300 {
			t.Errorf("%d %s", answer.Status, answer)
		}
		run.ReadAll()
		if !run.Contains(p.Cancelled) || p.Text(run.Frames) != "Hel" {
			t.Errorf("the text is %q in\n%s", p.Text(run.Frames), run)
		}
		s.skein.WaitIdle()
		if x := s.ended(t, run.Execution()); !x.Finished || !x.Stopped {
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
		run.ReadAll()
	}
	return run
}

// A run that waits for an approval ends its stream, or tells of it there, and goes on when the approval
// is granted over the same protocol.
func TestProtocols_Approval(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.asks(t, p, id, "refund")
		if !run.Contains(p.Waits) {
			t.Fatalf("%d %s", run.Status, run)
		}
		answer := protocoltest.Open(t, s.url, p.Grant(id, "talker", run)).ReadAll()
		if answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer)
		}
		s.skein.WaitIdle()
		if x := s.ended(t, run.Execution()); !x.Finished || x.Status != events.ExecutionCompleted {
			t.Errorf("%+v", x)
		}
	})
}

// So does one that waits for the answer of a person, which it is told.
func TestProtocols_Question(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.asks(t, p, id, "ask")
		if answer := protocoltest.Open(t, s.url, p.Answer(id, "talker", "it was late", run)).ReadAll(); answer.Status != http.StatusOK {
			t.Fatalf("%d %s, after\n%s", answer.Status, answer, run)
		}
		s.skein.WaitIdle()
		x := s.ended(t, run.Execution())
		if _, said := s.ask("", "GET", "/api/threads/"+x.ThreadID+"/messages", ""); x.Status != events.ExecutionCompleted || !strings.Contains(said, "told ") || !strings.Contains(said, "it was late") {
			t.Errorf("%+v\n%s", x, said)
		}
	})
}

// A run that waits for a person is cancelled, too: its call is never made, also if somebody grants it
// afterwards. One that has ended stays as it ended.
func TestProtocols_CancelBesidesStreams(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		refunded := s.refunded.Load()
		run := s.asks(t, p, id, "refund")
		if answer := protocoltest.Open(t, s.url, p.Cancel(id, "talker", run)).ReadAll(); answer.Status >= 300 {
			t.Errorf("%d %s", answer.Status, answer)
		}
		s.skein.WaitIdle()
		if late := protocoltest.Open(t, s.url, p.Grant(id, "talker", run)).ReadAll(); late.Status >= 500 {
			t.Errorf("granted afterwards: %d %s", late.Status, late)
		}
		s.skein.WaitIdle()
		if x := s.ended(t, run.Execution()); !x.Finished || !x.Stopped || s.refunded.Load() != refunded {
			t.Errorf("%d refunds of %+v", s.refunded.Load()-refunded, x)
		}

		done := s.begin(t, p, id+"-done", "hello").ReadAll()
		if answer := protocoltest.Open(t, s.url, p.Cancel(id+"-done", "talker", done)).ReadAll(); answer.Status >= 500 {
			t.Errorf("after its end: %d %s", answer.Status, answer)
		}
		if x := s.ended(t, done.Execution()); x.Status != events.ExecutionCompleted || x.Stopped {
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
		run.ReadTo(p, "Hel")
		revoke()
		if run.ReadAll(); run.Contains(p.Completed) {
			t.Errorf("%s", run)
		}
		s.people[""] = before
		s.release <- struct{}{}
		s.skein.WaitIdle()
		if x := s.ended(t, run.Execution()); x.Status != events.ExecutionCompleted || x.Stopped {
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
			if answer := protocoltest.Open(t, s.url, r).ReadAll(); answer.Execution() != "" || answer.Status != http.StatusForbidden && !answer.Contains(`"forbidden"`) {
				t.Errorf("%s: %d %s", what, answer.Status, answer)
			}
		}
		if p.Name == "REST" {
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
		if x := s.ended(t, run.Execution()); x.Finished || s.refunded.Load() != refunded {
			t.Errorf("%+v", x)
		}
	})
}

// A reader that takes nothing does not delay the run, and has all of it when it reads on.
func TestProtocols_SlowReader(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.begin(t, p, id, "flood")
		run.ReadTo(p, "0")
		s.skein.WaitIdle() // the run ends, though the reader takes nothing
		run.ReadAll()
		if n := len(p.Text(run.Frames)); n != pieces*len(piece) || !run.Contains(p.Completed) {
			t.Errorf("%d of %d bytes, and then %.600s", n, pieces*len(piece), run.Frames[len(run.Frames)-1].Data)
		}
	})
}
