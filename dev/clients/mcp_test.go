package clients_test

import (
	"context"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
)

// Both generations of the official TypeScript client, and the inspector, use the threads and agents of
// a server at /mcp. The second one asks its user what an agent asks a person.
func TestMCP_Node(t *testing.T) {
	dir, node := installFrom(t, "mcp/package.json", "mcp/mcp.mjs")
	s := openResponses(t)
	s.Must(s.Reactor("asks", func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		if in.Iteration > 0 {
			return skein.Answer("it was " + string(in.Items[len(in.Items)-1].Content)), nil
		}
		return &skein.Reaction{ToolCalls: []skein.ToolCall{{CallID: "c1", Name: "how_much", Arguments: []byte(`{}`)}}}, nil
	}))
	_, err := s.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ToolKind, Definition: []byte(`{"name":"how_much","description":"Asks.","type":"person","question":"How much?","answer":{"type":"object","properties":{"eur":{"type":"integer"}},"required":["eur"]}}`)},
		{Kind: events.AgentKind, Definition: []byte(`{"name":"asking","type":"ai_human","reactor":"asks","tools":["how_much"]}`)},
	}})
	s.Must(err)
	runScript(t, node, dir, "mcp.mjs", "SKEIN_URL="+s.Addresses().HTTP)
}
