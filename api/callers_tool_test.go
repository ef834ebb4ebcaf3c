package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/protocoltest"
)

// offers begins a run that calls a tool of the caller, and reads its stream.
func (s *scene) offers(t *testing.T, p protocoltest.Protocol, id string) (run *protocoltest.Stream, call string) {
	t.Helper()
	if p.Offer == nil {
		t.Skip("the protocol has no tools of the caller")
	}
	if p.Made {
		if status, body := s.ask("", "POST", "/api/threads", fmt.Sprintf(`{"key":%q}`, id), "Idempotency-Key", "thread-"+id); status >= 300 {
			t.Fatalf("%d %s", status, body)
		}
	}
	run = protocoltest.Open(t, s.at, p.Offer(id, "talker", "weather")).ReadAll()
	if run.Status != http.StatusOK || !run.Contains(p.Calls) {
		t.Fatalf("%d %s", run.Status, run)
	}
	s.skein.WaitIdle()
	x := s.ended(t, run)
	if x.Status != events.ExecutionCompleted {
		t.Fatalf("%+v", x)
	}
	return run, "call-" + x.ID[len(x.ID)-12:]
}

// runsOf returns how many runs the thread of a stream has had.
func (s *scene) runsOf(t *testing.T, run *protocoltest.Stream) int {
	t.Helper()
	c, err := s.skein.Client("acme").UpToDate(t.Context())
	s.skein.Must(err)
	list, err := client.Read(t.Context(), c, events.ListExecutions{ThreadID: s.ended(t, run).ThreadID})
	s.skein.Must(err)
	return len(list.Executions)
}

// A call of a tool of the caller ends the run, and the result of it begins the next one, which has it.
// Both requests may be repeated, and a result of a call that nobody made begins nothing.
func TestProtocols_CallersTool(t *testing.T) {
	forEach(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run, call := s.offers(t, p, id)
		if again := protocoltest.Open(t, s.at, p.Offer(id, "talker", "weather")).ReadAll(); again.Execution() != run.Execution() || !again.Contains(p.Calls) {
			t.Errorf("asked again: %d %s", again.Status, again)
		}
		if !p.Imports {
			if forged := protocoltest.Open(t, s.at, p.Result(id, "talker", "weather", "call-0123456789ab", "snow", run)).ReadAll(); forged.Status < 400 {
				t.Errorf("the result of another call: %d %s", forged.Status, forged)
			}
		}
		result := p.Result(id, "talker", "weather", call, "rain", run)
		next := protocoltest.Open(t, s.at, result).ReadAll()
		if text := p.Text(next.Frames); !strings.Contains(text, "told ") || !strings.Contains(text, "rain") || !next.Contains(p.Completed) {
			t.Errorf("%d, the text %q in\n%s", next.Status, text, next)
		}
		if again := protocoltest.Open(t, s.at, result).ReadAll(); again.Execution() != next.Execution() || p.Text(again.Frames) != p.Text(next.Frames) {
			t.Errorf("the result again: %d %s", again.Status, again)
		}
		s.skein.WaitIdle()
		if n := s.runsOf(t, run); n != 2 {
			t.Errorf("%d runs", n)
		}
	})
}
