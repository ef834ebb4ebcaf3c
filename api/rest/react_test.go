package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
)

// speaker is a reactor that says the words that a test sends it, until the channel is closed.
func (s *site) speaker(name string) chan<- string {
	words := make(chan string)
	s.Must(s.Reactor(name, func(ctx context.Context, _ *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		var said strings.Builder
		for {
			select {
			case word, more := <-words:
				if !more {
					return skein.Answer(said.String()), nil
				}
				said.WriteString(word)
				data, err := json.Marshal(map[string]string{"id": "t", "delta": word})
				if err != nil {
					return nil, err
				}
				out.Chunk(skein.Chunk{Type: "text-delta", Data: data})
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}))
	return words
}

// chunk is a chunk on the wire.
type chunk struct {
	ExecutionID, StepID, Type string
	Index, Attempt            int64
	Data                      struct{ Delta, FinishReason string }
}

// until returns the chunks of a stream up to one of that type, whose ids are their indexes.
func (in *sse) until(kind string) []chunk {
	in.t.Helper()
	var list []chunk
	for {
		e, ok := in.next()
		var c chunk
		if !ok || json.Unmarshal([]byte(e.data), &c) != nil || e.name != "" || e.id == "" {
			in.t.Fatalf("no chunk %s: %+v after %+v (%v)", kind, e, list, in.scan.Err())
		}
		if list = append(list, c); c.Type == kind {
			return list
		}
	}
}

func TestReact_Accepted(t *testing.T) {
	t.Parallel()
	s := start(t)
	close(s.speaker("echo"))
	thread := s.thread()
	a := s.ask("POST", thread+"/react", `{"agentId":"echo","text":"hello"}`, "Idempotency-Key", "r-1").want(http.StatusAccepted)
	if a.text("threadId") != id(thread) || a.text("executionId") != a.text("result.executionId") || a.text("reactionItemId") == "" {
		t.Errorf("the answer: %s", a.body)
	}
	if again := s.ask("POST", thread+"/react", `{"agentId":"echo","text":"hello"}`, "Idempotency-Key", "r-1").want(http.StatusAccepted); string(again.body) != string(a.body) {
		t.Errorf("a repeat: %s, first %s", again.body, a.body)
	}
	s.ask("POST", thread+"/react", `{"agentId":"nobody","text":"hello"}`).want(http.StatusNotFound)
	s.ask("POST", thread+"/react", `{"agentId":"nobody","text":"hello"}`, "Accept", "text/event-stream").want(http.StatusNotFound)
}

// A run is followed from its start to its end, and any reader can begin in the middle.
func TestReact_Followed(t *testing.T) {
	t.Parallel()
	s := start(t)
	words := s.speaker("echo")
	thread := s.thread()
	in := s.stream("POST", thread+"/react", `{"agentId":"echo","text":"hello"}`)
	begun, _ := in.next()
	var ids struct{ ThreadID, ExecutionID, ReactionItemID string }
	if json.Unmarshal([]byte(begun.data), &ids) != nil || begun.name != "started" || ids.ThreadID != id(thread) || ids.ExecutionID == "" || ids.ReactionItemID == "" {
		t.Fatalf("the first event: %+v", begun)
	}
	words <- "one "
	first := in.until("text-delta")
	at := first[len(first)-1]
	if at.Data.Delta != "one " || at.ExecutionID != ids.ExecutionID || at.Attempt != 1 || at.StepID == "" {
		t.Errorf("the first word: %+v", at)
	}
	late := s.stream("GET", thread+"/chunks?execution="+ids.ExecutionID, "", "Last-Event-ID", "0")
	current := s.stream("GET", thread+"/chunks", "")
	words <- "two"
	close(words)
	rest := in.until("finish")
	all := append(first, rest...)
	for n, c := range all {
		if c.Index != int64(n) {
			t.Errorf("chunk %d has the index %d", n, c.Index)
		}
	}
	done, _ := in.next()
	var execution struct{ ID, Status string }
	if json.Unmarshal([]byte(done.data), &execution) != nil || done.name != "done" || execution.ID != ids.ExecutionID || execution.Status != "completed" {
		t.Errorf("the last event: %+v", done)
	}
	for name, reader := range map[string]*sse{"late": late, "current": current} {
		got := reader.until("finish")
		want := all
		if name == "late" {
			want = all[1:]
		}
		if len(got) != len(want) || got[0].Index != want[0].Index {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if e, more := reader.next(); more {
			t.Errorf("%s: after the end %+v", name, e)
		}
	}
	if e, more := in.next(); more {
		t.Errorf("after the end %+v", e)
	}
	for seen := range all {
		again := s.stream("GET", thread+"/chunks?execution="+ids.ExecutionID, "", "Last-Event-ID", strconv.Itoa(seen))
		for _, want := range all[seen+1:] {
			if e, _ := again.next(); e.id != strconv.FormatInt(want.Index, 10) {
				t.Fatalf("after %d: %+v, want %+v", seen, e, want)
			}
		}
		if e, more := again.next(); more {
			t.Errorf("after %d: %+v", seen, e)
		}
	}
	s.ask("GET", thread+"/chunks?execution=exe_0195e5d03c1a7b2e9f441d2e3f405166", "").problem(http.StatusNotFound, "not_found", "")
	s.ask("GET", thread+"/chunks?execution=..", "").problem(http.StatusBadRequest, "invalid_request", "executionId")
	s.ask("GET", thread+"/chunks?from=1", "").problem(http.StatusBadRequest, "invalid_request", "from")
}

// Without a name, the next run is told from its beginning, however soon it ends.
func TestChunks_OfTheNextRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	close(s.speaker("echo"))
	thread := s.thread()
	for range 5 {
		in := s.stream("GET", thread+"/chunks", "")
		a := s.ask("POST", thread+"/react", `{"agentId":"echo","text":"hello"}`).want(http.StatusAccepted)
		s.WaitIdle()
		if all := in.until("finish"); all[0].Index != 0 || all[0].ExecutionID != a.text("executionId") {
			t.Fatalf("the chunks of %s: %+v", a.text("executionId"), all)
		}
	}
}

// speaking starts a run of the speaker echo on a new thread, and returns when its stream has the
// first word.
func (s *site) speaking() (thread string, in *sse, words chan<- string) {
	s.t.Helper()
	words, thread = s.speaker("echo"), s.thread()
	in = s.stream("POST", thread+"/react", `{"agentId":"echo","text":"one"}`)
	in.take(1)
	words <- "one"
	in.until("text-delta")
	return thread, in, words
}

// A message that waits for another run is followed when its turn comes.
func TestReact_FollowedFromTheQueue(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread, first, words := s.speaking()
	second := s.stream("POST", thread+"/queue", `{"agentId":"echo","text":"two"}`)
	begun, _ := second.next()
	if !strings.Contains(begun.data, `"queuedId":`) {
		t.Fatalf("the second did not wait: %+v", begun)
	}
	close(words)
	for _, in := range []*sse{first, second} {
		in.until("finish")
		if done, _ := in.next(); done.name != "done" || !strings.Contains(done.data, `"completed"`) {
			t.Errorf("the end: %+v", done)
		}
	}
}

// A message that is removed from the queue ends the stream that follows it.
func TestReact_RemovedFromTheQueue(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread, first, words := s.speaking()
	second := s.stream("POST", thread+"/react", `{"agentId":"echo","text":"two"}`)
	begun, _ := second.next()
	var ids struct{ QueuedID string }
	if json.Unmarshal([]byte(begun.data), &ids) != nil || ids.QueuedID == "" {
		t.Fatalf("the second did not wait: %+v", begun)
	}
	s.ask("PATCH", thread+"/queue/"+ids.QueuedID, hello).want(http.StatusOK)
	s.ask("DELETE", thread+"/queue/"+ids.QueuedID, "").want(http.StatusOK)
	if e, _ := second.next(); e.name != "error" || !strings.Contains(e.data, "not_found") {
		t.Errorf("the end: %+v", e)
	}
	s.ask("POST", thread+"/cancel", "").want(http.StatusOK)
	first.until("finish")
	close(words)
}

// A disconnected reader cancels nothing; stop and cancel do.
func TestReact_StopAndCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread, in, words := s.speaking()
	in.close()
	words <- "still here"
	s.ask("POST", thread+"/stop", `{"now":true}`).want(http.StatusOK)
	s.WaitIdle()
	list := s.ask("GET", thread+"/executions", "").want(http.StatusOK)
	if !strings.Contains(string(list.body), `"stopped":true`) {
		t.Errorf("executions: %s", list.body)
	}
	close(words)
}

// version returns the version of a thread that is idle.
func (s *site) version(thread string) string {
	s.t.Helper()
	return strings.Trim(s.ask("GET", thread, "").want(http.StatusOK).header.Get("ETag"), `"`)
}

func TestApprovals_OverHTTP(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Must(s.Tool(skein.NewTool("pay", func(_ context.Context, in struct {
		Amount int64 `json:"amount"`
	}) (int64, error) {
		return in.Amount, nil
	})))
	s.Must(s.Reactor("payer", func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		if in.Iteration > 0 {
			return skein.Answer("done"), nil
		}
		return &skein.Reaction{ToolCalls: []skein.ToolCall{{CallID: "call_1", Name: "pay", Arguments: json.RawMessage(`{"amount":1}`)}}}, nil
	}))
	s.ask("PUT", "/api/definitions/tool/pay", `{"description":"Pays.","type":"go","auto":false}`).want(http.StatusOK)
	s.ask("PUT", "/api/definitions/agent/payer", `{"type":"ai_human","reactor":"payer","tools":["pay"]}`).want(http.StatusOK)
	thread := s.thread()
	for _, c := range []struct{ answer, says string }{
		{`{"grant":true,"arguments":{"amount":42}}`, "42"},
		{`{"deny":true,"reason":"too much"}`, "too much"},
		{`{"result":{"paid":"by hand"}}`, "by hand"},
	} {
		s.ask("POST", thread+"/react", `{"agentId":"payer","text":"pay"}`).want(http.StatusAccepted)
		s.WaitIdle()
		if list := s.ask("GET", "/api/approvals", "").want(http.StatusOK); !strings.Contains(string(list.body), "call_1") {
			t.Fatalf("approvals: %s", list.body)
		}
		s.ask("POST", thread+"/approvals/call_1", `{"callId":"call_2","grant":true}`).problem(http.StatusBadRequest, "invalid_request", "callId")
		s.ask("POST", thread+"/approvals/call_1", `{}`).problem(http.StatusBadRequest, "invalid_request", "")
		ended := s.stream("GET", thread+"/events?types=thread.finished", "", "Last-Event-ID", s.version(thread))
		s.ask("POST", thread+"/approvals/call_1", c.answer).want(http.StatusOK)
		end := ended.take(1)[0]
		if list := s.ask("GET", thread+"/items?type=action_result&minVersion="+end.id, "").want(http.StatusOK); !strings.Contains(string(list.body), c.says) {
			t.Errorf("%s: the results are %s", c.answer, list.body)
		}
	}
}
