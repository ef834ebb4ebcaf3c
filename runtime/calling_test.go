package runtime

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
)

// counter counts the calls of a tool.
type counter struct {
	mu    sync.Mutex
	calls []string
}

func (k *counter) tool(name string, manual bool) Tool {
	return tool{ToolSpec{Name: name, Manual: manual}, func(_ context.Context, in *ToolInput) (ToolResult, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.calls = append(k.calls, in.Name+" "+in.CallID)
		return Done(events.JSON(`"made"`)), nil
	}}
}

func (k *counter) made() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.calls, ", ")
}

// A model that makes up the name of a tool which its agent does not list calls nothing, whatever
// the tenant defines: the call's result says that there is no such tool, and no person is asked.
// The other side's tools are not its own either.
func TestCall_OnlyListedTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var k counter
	w.agents.tools["secret"], w.agents.tools["refund"], w.agents.tools["agent"] = k.tool("secret", false), k.tool("refund", true), agentTool{tool{spec: ToolSpec{Name: "agent"}}, "main"}
	w.agent("main", script(says("one", call("c1", "secret", `{}`), call("c2", "refund", `{}`), call("c3", "agent", `{}`), call("c4", "own", `{}`)), says("two")), k.tool("own", false))
	w.reactors["left"], w.reactors["right"] = script(says("from a", call("d1", "right_only", `{}`)), says("a")), script(says("b"))
	w.agents.tools["right_only"] = k.tool("right_only", false)
	w.agents.agents["both"] = &Agent{Name: "both", Type: DualAgent, A: Side{Reactor: "left", MaxSteps: 1}, B: Side{Reactor: "right", MaxSteps: 1, Tools: []Tool{k.tool("right_only", false)}}}
	w.work(Config{})
	for agent, want := range map[string]int{"main": 3, "both": 1} {
		id, _ := w.begin(agent, "go")
		all := w.until(id, func(e *events.Event) bool {
			return e.Type == events.ThreadFinishedType || e.Type == events.RunParkedType
		})
		if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
			t.Errorf("%s: it ended %s (%s)", agent, status, text)
		}
		if _, failed, approvals := results(all); failed != want || approvals != 0 {
			t.Errorf("%s: %d calls failed, and %d asked a person", agent, failed, approvals)
		}
		if n := strings.Count(resultTexts(all), "tool not found: "); n != want {
			t.Errorf("%s: %d results say that there is no such tool", agent, n)
		}
	}
	if got := k.made(); got != "own c4" {
		t.Errorf("made: %s", got)
	}
}

// A caller may queue a call of any tool, and so may a reactor that answers by its own name.
func TestCall_AnyToolOfTheTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var k counter
	w.agents.tools["lookup"] = k.tool("lookup", false)
	w.agent("listed", script(says("fine")))
	w.agent("program", script(says("one", call("c1", "lookup", `{}`)), says("two"))).A.AnyTool = true
	w.work(Config{})
	id, execution := w.begin("listed", "hello")
	w.finished(id, execution)
	queued := w.must("tool.queue", id, events.QueueTool{Name: "lookup", CallID: "q1", Arguments: events.JSON(`{}`)})
	w.finished(id, queued.Result.ExecutionID)
	id, execution = w.begin("program", "hello")
	w.finished(id, execution)
	if got := k.made(); got != "lookup q1, lookup c1" {
		t.Errorf("made: %s", got)
	}
}

// The calls of an answer stay those of the agent that made them, also when another one has taken
// the thread over before they are made; that one calls its own tools alone.
func TestCall_ToolsOfTheAgentThatCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var k counter
	w.agents.tools["refund"], w.agents.tools["lookup"] = k.tool("refund", true), k.tool("lookup", false)
	w.agent("triage", script(says("to billing", call("c1", "billing", `{}`), call("c2", "refund", `{}`))), agentTool{tool{spec: ToolSpec{Name: "billing"}}, "billing"}, k.tool("refund", true), k.tool("lookup", false))
	w.agent("billing", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		if in.Iteration == 1 {
			return says("as triage", call("c3", "lookup", `{}`), call("c4", "refund", `{}`)), nil
		}
		return says("done"), nil
	}))
	_, stop := w.worker(Config{})
	id, execution := w.begin("triage", "an invoice")
	w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
	stop()
	w.must("approval.grant", id, events.GrantApproval{CallID: "c2"})
	w.work(Config{}) // which has never known triage's turn
	all := w.finished(id, execution)
	if got := k.made(); got != "refund c2" {
		t.Errorf("made: %s", got)
	}
	if recorded, failed, approvals := results(all); recorded != 4 || failed != 2 || approvals != 1 {
		t.Errorf("%d results, %d failed, %d approvals", recorded, failed, approvals)
	}
}

// resultTexts returns the contents of the results' items.
func resultTexts(all []events.Event) string {
	var out strings.Builder
	for _, e := range all {
		if d, ok := e.Data.(events.ItemCreated); ok && d.Type == events.ActionResult {
			out.Write(d.Content)
		}
	}
	return out.String()
}
