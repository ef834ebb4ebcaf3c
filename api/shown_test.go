package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/protocoltest"
)

// What a client reads next shows what it was told of a thread, whichever way it was told: by the thread's
// events, by the last chunk of a run, or by an answer that the run waits for a person.
func TestReads_ShowWhatWasTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const rounds = 20 // the read models lag for some milliseconds, which a read may take as well
	follow := func(path, ends string) func(thread, text string) {
		return func(thread, text string) {
			status, begun := s.ask("", "POST", "/api/threads/"+thread+"/react", fmt.Sprintf(`{"agentId":"talker","text":%q}`, text))
			if status != http.StatusAccepted {
				t.Fatalf("%d %s", status, begun)
			}
			stream := protocoltest.Open(t, s.at, protocoltest.Request{Method: "GET", Path: "/api/threads/" + thread + strings.Replace(path, "EXE", begun[strings.Index(begun, "exe_"):][:36], 1)})
			stream.ReadToWait(protocoltest.Protocol{Follows: true, Waits: ends})
			stream.Cut()
		}
	}
	for _, c := range []struct {
		name, text, shows string
		told              func(thread, text string)
	}{
		{"events", "hello", "answer to hello", follow("/events", `"type":"thread.finished"`)},
		{"a page of events", "hello", "answer to hello", func(thread, text string) {
			if status, begun := s.ask("", "POST", "/api/threads/"+thread+"/react", fmt.Sprintf(`{"agentId":"talker","text":%q}`, text)); status != http.StatusAccepted {
				t.Fatalf("%d %s", status, begun)
			}
			for page := ""; !strings.Contains(page, `"type":"thread.finished"`); {
				_, page = s.ask("", "GET", "/api/threads/"+thread+"/events?limit=1000", "")
			}
		}},
		{"chunks", "hello", "answer to hello", follow("/chunks?execution=EXE", `"type":"finish"`)},
		{"ask_agent", "refund", "let me see", func(thread, text string) {
			answer := protocoltest.Open(t, s.at, protocoltest.Request{
				Path: "/mcp", Header: map[string]string{"Mcp-Protocol-Version": "2025-06-18"},
				Body: fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_agent","arguments":{"agent":"talker","text":%q,"thread":%q}}}`, text, thread),
			}).ReadAll()
			if !answer.Contains(`"status":"waiting"`) {
				t.Fatalf("%d %s", answer.Status, answer)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range rounds {
				_, made := s.ask("", "POST", "/api/threads", `{}`)
				thread := made[strings.Index(made, "T-"):][:38]
				c.told(thread, c.text)
				if status, items := s.ask("", "GET", "/api/threads/"+thread+"/items", ""); status != http.StatusOK || !strings.Contains(items, c.shows) {
					t.Fatalf("%d %s", status, items)
				}
			}
		})
	}
}
