package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/telemetry"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/runview"
)

// tracedRuns registers a reactor that fails once, calls two tools, and answers, with
// its usage.
func tracedRuns(t testing.TB) func(*runtime.Registry) error {
	call := func(id, name string) runtime.ToolCall {
		return runtime.ToolCall{CallID: id, Name: name, Arguments: events.JSON(`{}`)}
	}
	first := transcript.Text("looking", call("c1", "find"), call("c2", "weigh"))
	first.Usage = &runtime.Usage{Provider: "openai", Model: "small-1", InputTokens: 100, OutputTokens: 20}
	last := transcript.Text("here")
	last.Usage = &runtime.Usage{Provider: "openai", Model: "small-1", InputTokens: 150, OutputTokens: 10}
	script := transcript.Fixed(first, last)
	return func(r *runtime.Registry) error {
		for _, name := range []string{"find", "weigh"} {
			if err := r.AddTool(doneTool(name)); err != nil {
				return err
			}
		}
		return r.AddReactor("script", runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
			if in.Iteration == 0 && in.Attempt == 1 {
				return nil, &runtime.RetryError{Err: io.ErrUnexpectedEOF}
			}
			return script.React(ctx, in, out)
		}))
	}
}

// doneTool is a tool with that name.
type doneTool string

func (d doneTool) Spec() runtime.ToolSpec { return runtime.ToolSpec{Name: string(d)} }

func (doneTool) Call(context.Context, *runtime.ToolInput) (runtime.ToolResult, error) {
	return runtime.Done(events.JSON(`true`)), nil
}

// react creates a thread whose agent has had one turn.
func (w *world) react() (id, execution string) {
	w.t.Helper()
	applied := must(w.Send(w.t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"find","description":"finds","type":"go"}`)},
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"weigh","description":"weighs","type":"go"}`)},
		{Kind: events.AgentKind, Definition: events.JSON(`{"name":"orders","type":"ai_human","reactor":"script","tools":["find","weigh"],"retries":{"attempts":3,"backoffMs":1}}`)},
	}}))(w.t)
	// Workers read definitions from the read model.
	must(client.Read(w.t.Context(), w.WithMinSeq(applied.Seq), events.GetDefinition{Kind: events.AgentKind, Name: "orders"}))(w.t)
	id = must(w.Send(w.t.Context(), "", events.CreateThread{AgentID: "orders"}))(w.t).ThreadID
	execution = must(w.Send(w.t.Context(), id, events.ReactThread{Text: new("Where is it?")}))(w.t).Result.ExecutionID
	line := must(w.Timeline(w.t.Context(), client.SubscribeOptions{Thread: id, Types: []string{string(events.ThreadFinishedType)}}))(w.t)
	defer line.Close()
	limited, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	for _, err := range line.All(limited) {
		if err != nil {
			w.t.Fatalf("the turn does not end: %v", err)
		}
		break
	}
	x := must(client.Read(w.t.Context(), w.latest(), events.GetExecution{ThreadID: id, ExecutionID: execution}))(w.t)
	if x.Status != events.ExecutionCompleted {
		w.t.Fatalf("the execution is %s: %s", x.Status, x.ErrorText)
	}
	return id, execution
}

// documentsOf reads the documents of a bucket that are of a thread.
func documentsOf[T any](w *world, bucket, thread string) []T {
	w.t.Helper()
	js := must(jetstream.New(natstest.Dial(w.t, w.server.Addresses().NATS)))(w.t)
	defer js.Conn().Close()
	kv := must(js.KeyValue(w.t.Context(), bucket))(w.t)
	var out []T
	for key := range must(kv.ListKeysFiltered(w.t.Context(), "acme."+thread+".>"))(w.t).Keys() {
		var one T
		if err := json.Unmarshal(must(kv.Get(w.t.Context(), key))(w.t).Value(), &one); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, one)
	}
	return out
}

// A turn of a real agent fills the three buckets of traces: a run with what its
// models used in sum (EK-158), a span for each step, call of the reactor and call
// of a tool, with its usage and what the model was shown (EK-159, EK-105,
// EK-106), and an event for each log line (EK-157), which log.list shows too.
func TestTraceBucketsOfARun(t *testing.T) {
	t.Parallel()
	cfg := store(t)
	cfg.Register = tracedRuns(t)
	w := startWorld(t, cfg, "acme")
	id, execution := w.react()
	runs := documentsOf[events.TraceRun](w, "thread_trace_runs", id)
	if len(runs) != 1 || runs[0].ID != execution || runs[0].Status != events.ExecutionCompleted || runs[0].Micros <= 0 || runs[0].EndedAt == "" ||
		runs[0].Usage == nil || runs[0].Usage.InputTokens != 250 || runs[0].Usage.OutputTokens != 30 || runs[0].Usage.Model != "small-1" {
		t.Errorf("the runs are %+v", runs)
	}
	steps := map[string]string{} // what is around a span, by the step's id
	var have []string
	spans := documentsOf[events.TraceSpan](w, "thread_trace_spans", id)
	for _, s := range spans {
		if s.ParentID == "" {
			steps[s.ID] = s.Name
		}
	}
	for _, s := range spans {
		have = append(have, strings.TrimPrefix(steps[s.ParentID]+"/"+s.Name, "/"))
		if s.RunID != execution || s.EndedAt == "" || s.StartedAt == "" {
			t.Errorf("a span %+v", s)
		}
		if s.Name == runview.ReactorSpanName && (s.Usage == nil || s.Usage.Provider != "openai" || s.Shown == nil || len(s.Shown.Items) == 0) {
			t.Errorf("the reactor's span is %+v", s)
		}
	}
	slices.Sort(have)
	if got := strings.Join(have, ", "); got != "step 0, step 0/reactor, step 0/tool find, step 0/tool weigh, step 1, step 1/reactor" {
		t.Errorf("the spans are %s", got)
	}
	lines := documentsOf[events.TraceEvent](w, "thread_trace_events", id)
	if len(lines) != 1 || lines[0].RunID != execution || steps[lines[0].SpanID] != "step 0" || lines[0].Kind != "log" || lines[0].Level != "warn" ||
		!strings.Contains(lines[0].Text, "attempt 1") || string(lines[0].Data) != `{"attempt":1}` {
		t.Errorf("the events are %+v", lines)
	}
	logs := must(client.Read(t.Context(), w.latest(), events.ListLogs{ThreadID: id}))(t)
	if len(logs.Logs) != 1 || logs.Logs[0].ID != lines[0].ID {
		t.Errorf("the log lines are %+v", logs.Logs)
	}
}

// With an OTLP endpoint, which a flag or a variable names, runs are exported and
// counted; without one there is nothing of it.
func TestTelemetry(t *testing.T) {
	got := make(chan string, 100)
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("a request that cannot be read: %v", err)
		}
		got <- string(raw) // dev/telemetry decodes it
	}))
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	cfg := store(t)
	cfg.Register = tracedRuns(t)
	w := startWorld(t, cfg, "acme")
	_, execution := w.react()
	deadline := time.After(5 * time.Minute)
	for found := false; !found; {
		select {
		case req := <-got:
			found = strings.Contains(req, execution)
		case <-deadline:
			t.Fatal("the run was not exported")
		}
	}
	for !strings.Contains(w.metrics(), `skein_telemetry_spans_total{result="exported"} 7`) {
		select {
		case <-deadline:
			t.Fatalf("the metrics are %s", w.metrics())
		default:
		}
	}
	w.stop()

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	cfg = store(t)
	w = startWorld(t, cfg, "acme")
	js := must(jetstream.New(natstest.Dial(t, w.server.Addresses().NATS)))(t)
	defer js.Conn().Close()
	if _, err := js.KeyValue(t.Context(), telemetry.Bucket); err == nil {
		t.Error("it exports without configuration")
	}
	cfg.OTLPEndpoint = "c:4317"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "--otlp-endpoint") {
		t.Errorf("%v", err)
	}
}

// metrics returns the metrics page.
func (w *world) metrics() string {
	w.t.Helper()
	return scrape(w.t, w.server.Addresses().HTTP)
}
