package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
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
type scene struct {
	*stage
	release chan struct{}

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
		return map[string]int{"refunded": in.EUR}, nil
	}, skein.Description("Refunds."))))
	for path, body := range map[string]string{
		"tool/refund":  `{"name":"refund","description":"Refunds.","type":"go","auto":false}`,
		"agent/talker": `{"name":"talker","type":"ai_human","reactor":"talker","tools":["refund"]}`,
	} {
		if status, text := s.ask("", "PUT", "/api/definitions/"+path, body); status >= 300 {
			t.Fatalf("%s: %d %s", path, status, text)
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
	switch {
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
		r := skein.Answer("let me see")
		r.ToolCalls = []skein.ToolCall{{CallID: "call-" + in.ExecutionID[len(in.ExecutionID)-12:], Name: "refund", Arguments: []byte(`{"eur":5}`)}}
		return r, nil
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

// A run that waits for an approval ends its stream, or tells of it there, and goes on when the approval
// is granted over the same protocol.
func TestProtocols_Approval(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.begin(t, p, id, "refund")
		if p.Name == "REST" { // which follows the run until somebody has granted it
			s.skein.WaitIdle()
			_, list := s.ask("", "GET", "/api/threads/key:"+id+"/executions", "")
			run.Frames = append(run.Frames, protocoltest.Frame{Data: list})
		} else {
			run.ReadAll()
		}
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
