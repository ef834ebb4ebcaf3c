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
	if parent := asked(r.traceparent); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	var links []trace.Link
	if above.IsValid() {
		links = []trace.Link{{SpanContext: above, Attributes: []attribute.KeyValue{text(semconv.GenAIToolCallIDKey, r.parent.CallID)}}}
	}
	own, end := m.start(ctx, r, r.own, links)
	within := map[string]context.Context{}
	var ends []func()
	for _, s := range r.spans {
		around, ok := within[s.parent]
		if !ok {
			around = own
		}
		var done func()
		within[s.id], done = m.start(around, r, s, nil)
		ends = append(ends, done)
	}
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	end()
	return m.made.spans
}

// start starts a span, and returns a function that ends it.
func (m *maker) start(ctx context.Context, r *run, s *span, links []trace.Link) (context.Context, func()) {
	title, attrs := r.describe(s)
	kind := trace.SpanKindInternal
	if s.kind == chatSpan {
		kind = trace.SpanKindClient
	}
	ctx = context.WithValue(ctx, spanIDsKey{}, spanIDs{r.traceID(), r.spanID(s.id)})
	ctx, made := m.tracer.Start(ctx, title, trace.WithTimestamp(s.begun.Go()), trace.WithSpanKind(kind),
		trace.WithAttributes(attrs...), trace.WithLinks(links...))
	for _, n := range s.notes {
		made.AddEvent(n.name, trace.WithTimestamp(n.at.Go()), trace.WithAttributes(n.attrs...))
	}
	if s.failed {
		made.SetStatus(codes.Error, excerpt.Of(s.failure, maxText))
	}
	ended := s.ended
	if ended == 0 {
		ended = r.own.ended
	}
	return ctx, func() { made.End(trace.WithTimestamp(max(ended, s.begun).Go())) }
}

// describe returns the name and the attributes of a span.
func (r *run) describe(s *span) (title string, attrs attributes) {
	switch s.kind {
	case runSpan:
		title = r.describeRun(&attrs)
	case stepSpan:
		title = "step " + strconv.FormatInt(s.iteration, 10)
		attrs = append(attrs, attribute.Int64("skein.step.iteration", s.iteration))
		attrs.text("skein.side", string(s.side))
		r.describeUsage(s, &attrs)
	case chatSpan:
		title = "chat"
		attrs = append(attrs, semconv.GenAIOperationNameChat)
		attrs.provider(s.usage)
		r.describeUsage(s, &attrs)
		if model := s.asked(); model != "" {
			title += " " + excerpt.Of(model, maxText)
		}
		attrs.whole(semconv.GenAIOutputMessagesKey, s.output)
	case toolSpan:
		title = "execute_tool " + excerpt.Of(s.name, maxText)
		attrs = append(attrs, semconv.GenAIOperationNameExecuteTool)
		attrs.text(semconv.GenAIToolNameKey, s.name)
		attrs.text(semconv.GenAIToolCallIDKey, s.call)
		attrs.count("skein.attempts", s.attempts)
		attrs.whole(semconv.GenAIToolCallArgumentsKey, s.input)
		attrs.whole(semconv.GenAIToolCallResultKey, s.output)
	case otherSpan:
		if title = excerpt.Of(s.name, maxText); title == "" {
			title = "span"
		}
		r.describeUsage(s, &attrs)
	}
	if s.kind != runSpan {
		attrs.text("skein.span.id", s.id)
		attrs.text(semconv.GenAIConversationIDKey, r.thread)
	}
	attrs.text(semconv.SessionIDKey, r.session)
	if s.failed {
		attrs.text("error.type", failureType(s.failure))
	}
	return title, attrs
}

func (r *run) describeRun(attrs *attributes) (title string) {
	*attrs = append(*attrs, semconv.GenAIOperationNameInvokeAgent)
	if title = "invoke_agent"; r.agent != "" {
		title += " " + r.agent
	}
	attrs.text(semconv.GenAIAgentNameKey, r.agent)
	attrs.text(semconv.GenAIAgentIDKey, r.agent)
	if r.version > 0 {
		attrs.text(semconv.GenAIAgentVersionKey, strconv.FormatInt(r.version, 10))
	}
	attrs.text(semconv.GenAIConversationIDKey, r.thread)
	attrs.provider(&r.usage)
	attrs.tokens(r.usage)
	attrs.text("skein.tenant", r.tenant)
	attrs.text("skein.execution.id", r.execution)
	attrs.text("skein.execution.status", string(r.status))
	if r.parent != nil {
		attrs.text("skein.parent.thread.id", r.parent.ThreadID)
		attrs.text("skein.parent.execution.id", r.parent.ExecutionID)
	}
	attrs.count("skein.spans.left_out", int64(r.left))
	attrs.whole(semconv.GenAIInputMessagesKey, r.own.input)
	return title
}

func (r *run) describeUsage(s *span, attrs *attributes) {
	attrs.text(semconv.GenAIRequestModelKey, s.asked())
	if s.usage != nil {
		attrs.text(semconv.GenAIResponseModelKey, s.usage.Model)
		attrs.tokens(*s.usage)
	}
}

// asked returns the requested model: if unknown, the one that answered.
func (s *span) asked() string {
	if s.model == "" && s.usage != nil {
		return s.usage.Model
	}
	return s.model
}

// failureType returns the kind of a failure, as one of few words.
func failureType(text string) string {
	if text == thread.Aborted {
		return thread.Aborted
	}
	return "_OTHER"
}
