package telemetry

import (
	"context"
	"crypto/sha256"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// name identifies an execution in its installation: its id alone may be chosen by the
// caller, and be used on two threads.
type name struct{ tenant, thread, execution string }

// digest hashes the name with a purpose and an id.
func (n name) digest(what, id string) [sha256.Size]byte {
	return sha256.Sum256([]byte(n.tenant + "\x00" + n.thread + "\x00" + n.execution + "\x00" + what + "\x00" + id))
}

// traceID derives the trace of a run whose request had none.
func (n name) traceID() (id trace.TraceID) {
	sum := n.digest("trace", "")
	copy(id[:], sum[:])
	if !id.IsValid() {
		id[len(id)-1] = 1
	}
	return id
}

// spanID derives the id of a span: of a step or a recorded span from its id, of the run
// itself from none.
func (n name) spanID(of string) (id trace.SpanID) {
	sum := n.digest("span", of)
	copy(id[:], sum[:])
	if !id.IsValid() {
		id[len(id)-1] = 1
	}
	return id
}

// asked parses a W3C trace context. An invalid one is ignored.
func asked(traceparent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	return trace.SpanContextFromContext(ctx)
}

// root returns the context of a run's own span, for links to it.
func (n name) root(traceparent string) trace.SpanContext {
	id := n.traceID()
	if parent := asked(traceparent); parent.IsValid() {
		id = parent.TraceID()
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: n.spanID(""), TraceFlags: trace.FlagsSampled})
}

// spanIDs are the ids of the next span. They are passed to the generator in the context
// of its start.
type spanIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

type spanIDsKey struct{}

// derived generates the derived ids of spans.
type derived struct{}

// NewIDs implements sdktrace.IDGenerator.
func (derived) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	ids, _ := ctx.Value(spanIDsKey{}).(spanIDs)
	return ids.trace, ids.span
}

// NewSpanID implements sdktrace.IDGenerator.
func (derived) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	ids, _ := ctx.Value(spanIDsKey{}).(spanIDs)
	return ids.span
}
