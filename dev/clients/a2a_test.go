package clients_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/skeintest"
)

// The client of A2A talks to an agent that asks for approvals, asks people, fails and is cancelled. The
// server of A2A is an agent elsewhere that is a tool: it answers, asks, fails and is cancelled, over
// the cards of both versions.
func TestA2A(t *testing.T) {
	dir, node := installFrom(t, "a2a/package.json", "a2a/a2a.mjs", "a2a/elsewhere.mjs")
	t.Run("client", func(t *testing.T) {
		s := agui(t)
		runScript(t, node, dir, "a2a.mjs", "SKEIN_URL="+s.Addresses().HTTP)
	})
	t.Run("server", func(t *testing.T) { asksElsewhere(t, startAddressed(t, node, dir, "elsewhere.mjs")) })
}

// asksElsewhere asks an agent elsewhere with an agent that passes on what it is told, and answers a
// question with Monday.
func asksElsewhere(t *testing.T, url string) {
	s := skeintest.Start(t, func(o *skein.Options) { o.EgressAllow = egress.Loopback() })
	task := regexp.MustCompile(`"task":"([^"]+)"`)
	s.Must(s.Reactor("relay", func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		said := map[string]string{"message": in.LastText(events.User)}
		last := string(in.Items[len(in.Items)-1].Content)
		switch {
		case in.Iteration == 1 && strings.Contains(last, "input_required"):
			said = map[string]string{"message": "Monday", "task": task.FindStringSubmatch(last)[1]}
		case in.Iteration > 0:
			return skein.Answer(last), nil
		}
		arguments, err := json.Marshal(said)
		r := skein.Answer("")
		r.ToolCalls = []skein.ToolCall{{CallID: "call" + said["task"], Name: in.Tools[0].Name, Arguments: arguments}}
		return r, err
	}))
	c := s.Client("acme")
	for name, card := range map[string]string{"new": url, "old": url + "/old"} {
		_, err := c.Apply(t.Context(),
			events.ToolDefinition{Name: name, Description: "Books.", Type: events.A2ATool, Server: &events.ToolServer{URL: card}},
			events.AgentDefinition{Name: "with-" + name, Type: events.AIHuman, Reactor: "relay", Tools: []string{name}})
		s.Must(err)
		for message, want := range map[string]string{"hello": "you said hello", "book": "booked for Monday in skein-T-", "fail": "no train"} {
			thread, err := c.Send(t.Context(), "", events.CreateThread{AgentID: "with-" + name})
			s.Must(err)
			answer, err := c.Ask(t.Context(), thread.ThreadID, message)
			s.Must(err)
			if !strings.Contains(answer.Text, want) {
				t.Errorf("%s, %s: %q, want %q", name, message, answer.Text, want)
			}
		}
	}
	cancelsElsewhere(t, s, c, url)
}

// cancelsElsewhere cancels a run while its agent elsewhere works, which is told so.
func cancelsElsewhere(t *testing.T, s *skeintest.Server, c *client.Client, url string) {
	until := func(what string) {
		answer, err := http.Get(url + what)
		s.Must(err)
		s.Must(answer.Body.Close())
	}
	thread, err := c.Send(t.Context(), "", events.CreateThread{AgentID: "with-new"})
	s.Must(err)
	wait := "wait"
	run, err := c.Send(t.Context(), thread.ThreadID, events.ReactThread{Text: &wait})
	s.Must(err)
	until("/waits")
	_, err = c.Send(t.Context(), thread.ThreadID, events.CancelRun{ExecutionID: run.Result.ExecutionID})
	s.Must(err)
	until("/cancelled")
}
