package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/skeintest"
)

// Clients of AG-UI and CopilotKit talk to an agent that asks for approvals, asks people, calls tools of
// its own and of its client, fails and is stopped.
func TestAGUI(t *testing.T) {
	dir, node := installFrom(t, "agui/package.json", "agui/agui.mjs")
	s := agui(t)
	runScript(t, node, dir, "agui.mjs", "SKEIN_URL="+s.Addresses().HTTP)
}

// agui is a server with the agent triage, whose reactor does what the last message says.
func agui(t *testing.T) *skeintest.Server {
	t.Helper()
	s := skeintest.Start(t, func(o *skein.Options) {
		o.HTTPListen, o.NATSListen, o.Tenant, o.EgressAllow = "127.0.0.1:0", "127.0.0.1:0", "acme", egress.Loopback()
	})
	steps := make(script)
	front := httptest.NewServer(steps)
	t.Cleanup(front.Close)
	t.Setenv("SKEIN_SCRIPT", front.URL)
	s.Must(s.Reactor("test", steps.reactAGUI))
	s.Must(s.Tool(skein.NewTool("refund", func(_ context.Context, in struct {
		EUR int `json:"eur"`
	}) (map[string]int, error) {
		return map[string]int{"refunded": in.EUR}, nil
	}, skein.Description("Refunds."))))
	s.Must(s.Tool(skein.NewTool("lookup", func(context.Context, struct{}) (string, error) { return "found", nil }, skein.Description("Looks up."))))
	var apply events.ApplyDefinitions
	for _, d := range []struct {
		kind events.DefinitionKind
		text string
	}{
		{events.ToolKind, `{"name":"refund","description":"Refunds.","type":"go","auto":false}`},
		{events.ToolKind, `{"name":"lookup","description":"Looks up.","type":"go"}`},
		{events.ToolKind, `{"name":"how_much","description":"Asks.","type":"person"}`},
		{events.AgentKind, `{"name":"triage","description":"Answers.","type":"ai_human","reactor":"test","tools":["refund","lookup","how_much"]}`},
	} {
		apply.Definitions = append(apply.Definitions, events.NewDefinition{Kind: d.kind, Definition: []byte(d.text)})
	}
	_, err := s.Client("acme").Send(t.Context(), "", apply)
	s.Must(err)
	return s
}

// reactAGUI calls the tool that the last message names, or says something, and then waits for a piece
// of the script or fails, as the message says.
func (s script) reactAGUI(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	say := func(text string) {
		if data, err := json.Marshal(map[string]string{"id": "text", "delta": text}); err == nil {
			out.Chunk(skein.Chunk{Type: events.ChunkTextDelta, Data: data})
		}
	}
	said, result := in.LastText(events.User), in.Iteration > 0
	for _, i := range in.Items { // of a call of the client, and nothing after it
		if i.ID != in.ItemID {
			result = i.Type == events.ActionResult || in.Iteration > 0
		}
	}
	arguments := map[string]string{"refund": `{"eur":5}`, "lookup": `{}`, "how_much": `{"question":"How much?"}`, "weather": `{"city":"Paris"}`}[said]
	switch {
	case result:
		say("done")
		return skein.Answer("done"), nil
	case arguments != "":
		id := "call" + in.ExecutionID[len(in.ExecutionID)-12:]
		r := skein.Answer("let me see")
		r.ToolCalls = []skein.ToolCall{{CallID: id, Name: said, Arguments: []byte(arguments)}}
		return r, nil
	case said == "slow", said == "fail":
		say("half an ")
		select {
		case <-s:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if said == "fail" {
			return nil, errors.New("the model is gone")
		}
		say("answer")
		return skein.Answer("half an answer"), nil
	}
	say("you said ")
	say(said)
	return skein.Answer("you said " + said), nil
}
