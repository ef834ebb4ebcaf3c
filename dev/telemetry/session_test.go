package telemetry

import (
	"testing"

	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/telemetry"
	"github.com/skein-threads/skein/runtime/transcript"
)

// AG-53: every span of a run, and of a run on another thread that one of its calls waited for, names
// the session of the request; those of a run that no session asked for name none.
func TestSpans_NameTheSession(t *testing.T) {
	const session = "sess_0a1b"
	w := newWorld(t)
	w.react["left"], w.react["right"] = transcript.Fixed(transcript.Text("a")), transcript.Fixed(transcript.Step{}, transcript.Text("b"))
	w.agents["debate"] = &runtime.Agent{
		Name: "debate", Type: runtime.DualAgent, A: runtime.Side{Reactor: "left"}, B: runtime.Side{Reactor: "right", StopOnResponse: true},
	}
	w.agent("plain", transcript.Fixed(transcript.Text("hello")))
	w.agent("main", transcript.Fixed(transcript.Text("ask", call("c1", "debate"), call("c2", "find")), transcript.Text("over")),
		agentTool{tool{spec: runtime.ToolSpec{Name: "debate"}, agent: "debate"}}, returning("find", `{}`))
	c := newCollector(t)
	url, _ := c.overHTTP("127.0.0.1:0")
	w.export(telemetry.Config{Endpoint: url})
	_, plain := w.ask("plain", "")
	for _, s := range c.run(plain) {
		if id, ok := values(s.Attributes)["session.id"]; ok {
			t.Errorf("%s is of session %q", s.Name, id)
		}
	}
	id := w.must("thread.create", "", "", events.CreateThread{AgentID: "main"}).ThreadID
	execution := w.must("thread.react", id, "", events.ReactThread{Text: new("hello"), SessionID: session}).Result.ExecutionID
	spans := c.run(execution)
	kinds := map[string]bool{}
	for _, s := range spans {
		kinds[s.Name] = true
		if got := values(s.Attributes)["session.id"]; got != session {
			t.Errorf("%s is of session %q", s.Name, got)
		}
	}
	if !kinds["invoke_agent main"] || !kinds["step 0"] || !kinds["execute_tool find"] {
		t.Errorf("the spans are %v", kinds)
	}
	c.until("the debate's run", func(all []*pb.Span) bool {
		for _, s := range all {
			if v := values(s.Attributes); s.Name == "invoke_agent debate" && v["skein.parent.execution.id"] == execution {
				if v["session.id"] != session {
					t.Errorf("the debate's run is of session %q", v["session.id"])
				}
				return true
			}
		}
		return false
	})
}
