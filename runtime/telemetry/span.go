package telemetry

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/runview"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/skein-threads/skein/runtime/telemetry"

// maker creates the spans of runs with the SDK of OpenTelemetry, which reads its own
// variables: OTEL_TRACES_SAMPLER, OTEL_SPAN_EVENT_COUNT_LIMIT and the like. It is not
// safe for concurrent use.
type maker struct {
	tracer trace.Tracer
	made   collected
}

// collected collects the spans that have ended.
type collected struct{ spans []sdktrace.ReadOnlySpan }

func (c *collected) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (c *collected) OnEnd(s sdktrace.ReadOnlySpan)                   { c.spans = append(c.spans, s) }
func (c *collected) Shutdown(context.Context) error                  { return nil }
func (c *collected) ForceFlush(context.Context) error                { return nil }

func newMaker(of *resource.Resource, version string) *maker {
	m := &maker{}
	m.tracer = sdktrace.NewTracerProvider(
		sdktrace.WithResource(of), sdktrace.WithIDGenerator(derived{}), sdktrace.WithSpanProcessor(&m.made),
	).Tracer(scope, trace.WithInstrumentationVersion(version), trace.WithSchemaURL(semconv.SchemaURL))
	return m
}

// spans returns the spans of a run that has ended: none if the request's trace, or the
// sampler, does not sample it. above is the span of the run that waited for it, if one
// did.
func (m *maker) spans(r *run, above trace.SpanContext) []sdktrace.ReadOnlySpan {
	m.made.spans = nil
	ctx := context.Background()
	if parent := asked(r.TraceParent); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	var links []trace.Link
	if above.IsValid() {
		links = []trace.Link{{SpanContext: above, Attributes: []attribute.KeyValue{text(semconv.GenAIToolCallIDKey, r.Parent.CallID)}}}
	}
	own, end := m.start(ctx, r, r.Own, links)
	within := map[string]context.Context{}
	var ends []func()
	for _, s := range r.Spans {
		if s.Kind == runview.WaitSpan { // a note says so
			continue
		}
		around, ok := within[s.Parent]
		if !ok {
			around = own
		}
		var done func()
		within[s.ID], done = m.start(around, r, s, nil)
		ends = append(ends, done)
	}
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	end()
	return m.made.spans
}

// start starts a span, and returns a function that ends it.
func (m *maker) start(ctx context.Context, r *run, s *runview.Span, links []trace.Link) (context.Context, func()) {
	title, attrs := r.describe(s)
	kind := trace.SpanKindInternal
	if s.Kind == runview.ModelSpan {
		kind = trace.SpanKindClient
	}
	ctx = context.WithValue(ctx, spanIDsKey{}, spanIDs{r.name().traceID(), r.name().spanID(spanOf(s))})
	ctx, made := m.tracer.Start(ctx, title, trace.WithTimestamp(s.Begun.Go()), trace.WithSpanKind(kind),
		trace.WithAttributes(attrs...), trace.WithLinks(links...))
	for _, n := range r.notes[s] {
		made.AddEvent(n.name, trace.WithTimestamp(n.at.Go()), trace.WithAttributes(n.attrs...))
	}
	if s.Failed {
		made.SetStatus(codes.Error, excerpt.Of(s.Detail, maxText))
	}
	return ctx, func() { made.End(trace.WithTimestamp(max(s.Ended, s.Begun).Go())) }
}

// describe returns the name and the attributes of a span.
func (r *run) describe(s *runview.Span) (title string, attrs attributes) {
	content := r.said[s]
	if content == nil {
		content = &said{}
	}
	switch s.Kind {
	case runview.RunSpan:
		title = r.describeRun(&attrs)
	case runview.StepSpan:
		title = "step " + strconv.FormatInt(s.Iteration, 10)
		attrs = append(attrs, attribute.Int64("skein.step.iteration", s.Iteration))
		attrs.text("skein.side", string(s.Side))
		r.describeUsage(s, &attrs)
	case runview.ModelSpan:
		title = "chat"
		attrs = append(attrs, semconv.GenAIOperationNameChat)
		attrs.provider(s.Usage)
		r.describeUsage(s, &attrs)
		if model := requested(s); model != "" {
			title += " " + excerpt.Of(model, maxText)
		}
		attrs.whole(semconv.GenAIOutputMessagesKey, content.output)
	case runview.ToolSpan:
		title = "execute_tool " + excerpt.Of(s.Name, maxText)
		attrs = append(attrs, semconv.GenAIOperationNameExecuteTool)
		attrs.text(semconv.GenAIToolNameKey, s.Name)
		attrs.text(semconv.GenAIToolCallIDKey, s.Call)
		attrs.count("skein.attempts", s.Attempts)
		attrs.whole(semconv.GenAIToolCallArgumentsKey, content.input)
		attrs.whole(semconv.GenAIToolCallResultKey, content.output)
	case runview.OtherSpan:
		if title = excerpt.Of(s.Name, maxText); title == "" {
			title = "span"
		}
		r.describeUsage(s, &attrs)
	}
	if s.Kind != runview.RunSpan {
		attrs.text("skein.span.id", s.ID)
		attrs.text(semconv.GenAIConversationIDKey, r.Thread)
	}
	attrs.text(semconv.SessionIDKey, r.Session)
	if s.Failed {
		attrs.text("error.type", failureType(s.Detail))
	}
	return title, attrs
}

func (r *run) describeRun(attrs *attributes) (title string) {
	*attrs = append(*attrs, semconv.GenAIOperationNameInvokeAgent)
	if title = "invoke_agent"; r.Agent != "" {
		title += " " + r.Agent
	}
	attrs.text(semconv.GenAIAgentNameKey, r.Agent)
	attrs.text(semconv.GenAIAgentIDKey, r.Agent)
	if r.AgentVersion > 0 {
		attrs.text(semconv.GenAIAgentVersionKey, strconv.FormatInt(r.AgentVersion, 10))
	}
	attrs.text(semconv.GenAIConversationIDKey, r.Thread)
	attrs.provider(&r.Usage)
	attrs.tokens(r.Usage)
	attrs.text("skein.tenant", r.Tenant)
	attrs.text("skein.execution.id", r.ID)
	attrs.text("skein.execution.status", string(r.Status))
	if r.Parent != nil {
		attrs.text("skein.parent.thread.id", r.Parent.ThreadID)
		attrs.text("skein.parent.execution.id", r.Parent.ExecutionID)
	}
	attrs.count("skein.spans.left_out", int64(r.Left))
	if said := r.said[r.Own]; said != nil {
		attrs.whole(semconv.GenAIInputMessagesKey, said.input)
	}
	return title
}

func (r *run) describeUsage(s *runview.Span, attrs *attributes) {
	attrs.text(semconv.GenAIRequestModelKey, requested(s))
	if s.Usage != nil {
		attrs.text(semconv.GenAIResponseModelKey, s.Usage.Model)
		attrs.tokens(*s.Usage)
	}
}

// requested returns the requested model: if unknown, the one that answered.
func requested(s *runview.Span) string {
	if s.Model == "" && s.Usage != nil {
		return s.Usage.Model
	}
	return s.Model
}

// spanOf returns what a span's id is derived from: nothing for that of the run.
func spanOf(s *runview.Span) string {
	if s.Kind == runview.RunSpan {
		return ""
	}
	return s.ID
}

// failureType returns the kind of a failure, as one of few words.
func failureType(text string) string {
	if text == thread.Aborted {
		return thread.Aborted
	}
	return "_OTHER"
}
