package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/telemetry"
	"github.com/skein-threads/skein/runtime/transcript"
)

const caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// orders is an agent whose turn has two tools, one of which fails, and two steps.
func (w *world) orders() {
	lost := tool{spec: runtime.ToolSpec{Name: "ship", Idempotent: true}, call: func(in *runtime.ToolInput) (runtime.ToolResult, error) {
		if in.Attempt == 1 {
			return runtime.ToolResult{}, &runtime.RetryError{Err: errors.New("later")}
		}
		return runtime.Failed("no secret ship"), nil
	}}
	first := transcript.Text("secret answer", call("c1", "find"), call("c2", "ship"))
	first.Usage = &runtime.Usage{Provider: "openai", Model: "small-1", InputTokens: 120, CachedTokens: 100, OutputTokens: 30, ReasoningTokens: 20}
	last := transcript.Text("done")
	last.Usage = &runtime.Usage{Provider: "openai", Model: "small-1", InputTokens: 200, OutputTokens: 5}
	script := transcript.Fixed(first, last)
	w.agent("orders", runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
		if in.Iteration == 0 && in.Attempt == 1 {
			return nil, &runtime.RetryError{Err: errors.New("429")}
		}
		return script.React(ctx, in, out)
	}), returning("find", `{"secret":"result"}`), lost)
}

const ordersTree = `invoke_agent orders [internal]
  . gen_ai.agent.id = orders
  . gen_ai.agent.name = orders
  . gen_ai.agent.version = 3
  . gen_ai.operation.name = invoke_agent
  . gen_ai.provider.name = openai
  . gen_ai.usage.cache_read.input_tokens = 100
  . gen_ai.usage.input_tokens = 320
  . gen_ai.usage.output_tokens = 35
  . gen_ai.usage.reasoning.output_tokens = 20
  . skein.execution.status = completed
  . skein.tenant = acme
  step 0 [internal]
    . skein.step.iteration = 0
    ! skein.retry
    chat small [client]
      . gen_ai.operation.name = chat
      . gen_ai.provider.name = openai
      . gen_ai.request.model = small
      . gen_ai.response.model = small-1
      . gen_ai.usage.cache_read.input_tokens = 100
      . gen_ai.usage.input_tokens = 120
      . gen_ai.usage.output_tokens = 30
      . gen_ai.usage.reasoning.output_tokens = 20
    execute_tool find [internal]
      . gen_ai.operation.name = execute_tool
      . gen_ai.tool.call.id = c1
      . gen_ai.tool.name = find
    execute_tool ship [internal] error ""
      . error.type = _OTHER
      . gen_ai.operation.name = execute_tool
      . gen_ai.tool.call.id = c2
      . gen_ai.tool.name = ship
      . skein.attempts = 2
  step 1 [internal]
    . skein.step.iteration = 1
    chat small [client]
      . gen_ai.operation.name = chat
      . gen_ai.provider.name = openai
      . gen_ai.request.model = small
      . gen_ai.response.model = small-1
      . gen_ai.usage.input_tokens = 200
      . gen_ai.usage.output_tokens = 5
`

// A turn with two tools is one trace, in that of its request, without content.
func TestTurn(t *testing.T) {
	w := newWorld(t)
	w.orders()
	c := newCollector(t)
	url, _ := c.overHTTP("127.0.0.1:0")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=k1")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment=test")
	w.export(telemetry.Config{Endpoint: url, Version: "1.2.3"})
	id, execution := w.ask("orders", caller)
	spans := c.run(execution)
	if got := drawing(spans); got != ordersTree {
		t.Errorf("the trace is\n%s", got)
	}
	for _, s := range spans {
		if hex.EncodeToString(s.TraceId) != caller[3:35] {
			t.Errorf("%s is in the trace %x", s.Name, s.TraceId)
		}
		if s.Name == "invoke_agent orders" && hex.EncodeToString(s.ParentSpanId) != caller[36:52] {
			t.Errorf("the run is under %x", s.ParentSpanId)
		}
		if values(s.Attributes)["gen_ai.conversation.id"] != id || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s: %v", s.Name, s)
		}
		if strings.Contains(s.String(), "secret") {
			t.Errorf("content was exported: %v", s)
		}
	}
	if c.about["service.name"] != "skein" || c.about["service.version"] != "1.2.3" || c.about["deployment"] != "test" || c.header.Get("X-Key") != "k1" {
		t.Errorf("the resource is %v, the headers %v", c.about, c.header)
	}
	w.told("exported", len(spans))
	w.told("dropped", 0)
}

// The same over gRPC, with content.
func TestContentOverGRPC(t *testing.T) {
	w := newWorld(t)
	w.orders()
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.overGRPC())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_SERVICE_NAME", "my-agents")
	w.export(telemetry.Config{Content: true})
	_, execution := w.ask("orders", "")
	want := map[string]string{
		"invoke_agent orders gen_ai.input.messages":    `[{"role":"user","parts":[{"type":"text","content":"Where is my secret order?"}]}]`,
		"chat small gen_ai.output.messages":            `[{"role":"assistant","parts":[{"type":"text","content":"secret answer"},{"type":"tool_call","id":"c1","name":"find","arguments":"{\"secret\":\"argument\"}"},{"type":"tool_call","id":"c2","name":"ship","arguments":"{\"secret\":\"argument\"}"}]}]`,
		"execute_tool find gen_ai.tool.call.arguments": `{"secret":"argument"}`,
		"execute_tool find gen_ai.tool.call.result":    `{"secret":"result"}`,
	}
	for _, s := range c.run(execution) {
		for k, v := range values(s.Attributes) {
			if want[s.Name+" "+k] == v {
				delete(want, s.Name+" "+k)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("these are not there: %v", want)
	}
	if c.about["service.name"] != "my-agents" {
		t.Errorf("the resource is %v", c.about)
	}
}

// A run that is exported twice, live and read from the log from its beginning, is the
// same trace: ids are derived from the events.
func TestExporter_RepeatedExportIsSame(t *testing.T) {
	w := newWorld(t)
	w.orders()
	c := newCollector(t)
	url, _ := c.overHTTP("127.0.0.1:0")
	stop := w.export(telemetry.Config{Endpoint: url})
	_, execution := w.ask("orders", "")
	first := c.run(execution)
	stop()
	for _, kept := range []int64{0, 1} { // from memory, and read again at the end
		p := w.position()
		if err := p.Save(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		c.spans = nil
		c.mu.Unlock()
		stop := w.export(telemetry.Config{Endpoint: url, Kept: kept})
		again := c.run(execution)
		stop()
		if ids(again) != ids(first) || drawing(again) != drawing(first) {
			t.Errorf("kept %d: the second time it was\n%s\n%s\nand the first\n%s\n%s", kept, ids(again), drawing(again), ids(first), drawing(first))
		}
	}
}

// An exporter that is stopped during a run, while it waits for an approval, continues
// where it was: runs that ended meanwhile are exported completely.
func TestExporter_RestartDuringRun(t *testing.T) {
	w := newWorld(t)
	asks := returning("pay", `1`)
	asks.spec.Manual = true
	w.agent("bank", transcript.Fixed(transcript.Text("pay?", call("c1", "pay")), transcript.Text("paid")), asks)
	c := newCollector(t)
	url, _ := c.overHTTP("127.0.0.1:0")
	stop := w.export(telemetry.Config{Endpoint: url})
	id, execution := w.ask("bank", "")
	w.until("the approval's request", func(e *events.Event) bool { return e.Type == events.RunParkedType })
	stop()
	w.must("approval.grant", id, "", events.GrantApproval{CallID: "c1"})
	w.finished(execution)
	w.export(telemetry.Config{Endpoint: url})
	const want = `invoke_agent bank [internal]
  . gen_ai.agent.id = bank
  . gen_ai.agent.name = bank
  . gen_ai.agent.version = 3
  . gen_ai.operation.name = invoke_agent
  . gen_ai.provider.name = _OTHER
  . skein.execution.status = completed
  . skein.tenant = acme
  ! skein.run.parked
  ! skein.run.claimed
  step 0 [internal]
    . skein.step.iteration = 0
    ! skein.approval.requested
    ! skein.approval.granted
    chat small [client]
      . gen_ai.operation.name = chat
      . gen_ai.provider.name = _OTHER
      . gen_ai.request.model = small
    execute_tool pay [internal]
      . gen_ai.operation.name = execute_tool
      . gen_ai.tool.call.id = c1
      . gen_ai.tool.name = pay
  step 1 [internal]
    . skein.step.iteration = 1
    chat small [client]
      . gen_ai.operation.name = chat
      . gen_ai.provider.name = _OTHER
      . gen_ai.request.model = small
`
	spans := c.run(execution)
	if got := drawing(spans); got != want {
		t.Errorf("the trace is\n%s", got)
	}
	derived := sha256.Sum256([]byte(tenant + "\x00" + id + "\x00" + execution + "\x00trace\x00"))
	for _, s := range spans {
		if string(s.TraceId) != string(derived[:16]) {
			t.Errorf("%s is in the trace %x, not the derived one", s.Name, s.TraceId)
		}
	}
}

// A run that another one waited for has a link to it; a handoff and a failure appear.
func TestRunsOfRuns(t *testing.T) {
	w := newWorld(t)
	w.react["left"], w.react["right"] = transcript.Fixed(transcript.Text("a")), transcript.Fixed(transcript.Step{}, transcript.Text("b"))
	w.agents["debate"] = &runtime.Agent{
		Name: "debate", Type: runtime.DualAgent, A: runtime.Side{Reactor: "left"}, B: runtime.Side{Reactor: "right", StopOnResponse: true},
	}
	to := func(agent string) runtime.Tool {
		return agentTool{tool{spec: runtime.ToolSpec{Name: agent}, agent: agent}}
	}
	w.agent("main", transcript.Fixed(transcript.Text("talk", call("c1", "debate")), transcript.Text("over", call("c2", "billing"))),
		to("debate"), to("billing"))
	w.agent("billing", transcript.Fixed(transcript.Step{}, transcript.Step{}, transcript.Step{Err: errors.New("no such account")}))
	c := newCollector(t)
	url, _ := c.overHTTP("127.0.0.1:0")
	w.export(telemetry.Config{Endpoint: url})
	_, execution := w.ask("main", caller)
	main := c.run(execution)
	var root, child *pb.Span
	for _, s := range main {
		if s.Name == "invoke_agent main" {
			root = s
		}
	}
	for _, s := range c.until("the child", func(s []*pb.Span) bool { return len(s) > len(main) }) {
		if s.Name == "invoke_agent debate" {
			child = s
		}
	}
	if child == nil || len(child.Links) != 1 || string(child.Links[0].SpanId) != string(root.SpanId) || string(child.Links[0].TraceId) != string(root.TraceId) ||
		string(child.TraceId) == string(root.TraceId) || values(child.Links[0].Attributes)["gen_ai.tool.call.id"] != "c1" {
		t.Fatalf("the child is %v", child)
	}
	if values(child.Attributes)["skein.parent.execution.id"] != execution {
		t.Errorf("the child is described by %v", values(child.Attributes))
	}
	got := drawing(main)
	for _, want := range []string{"! skein.run.suspended", "! skein.run.resumed", "! skein.handoff", `invoke_agent main [internal] error "no such account"`,
		`step 2 [internal] error "no such account"`, ". error.type = _OTHER"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// The run of a request whose trace is not sampled is not exported.
func TestUnsampled(t *testing.T) {
	w := newWorld(t)
	w.orders()
	c := newCollector(t)
	url, _ := c.overHTTP("127.0.0.1:0")
	w.export(telemetry.Config{Endpoint: url})
	_, quiet := w.ask("orders", strings.TrimSuffix(caller, "01")+"00")
	w.finished(quiet)
	_, loud := w.ask("orders", "")
	c.run(loud)
	for _, s := range c.until("all", func([]*pb.Span) bool { return true }) {
		if values(s.Attributes)["skein.execution.id"] == quiet || hex.EncodeToString(s.TraceId) == caller[3:35] {
			t.Errorf("%s was exported", s.Name)
		}
	}
}
