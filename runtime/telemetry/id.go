package telemetry

import (
	"context"
	"crypto/sha256"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// name is what an execution is called in its installation: its id alone may be
// the caller's choice, and stand on two threads.
type name struct{ tenant, thread, execution string }

// digest hashes the name and what belongs to it.
func (n name) digest(what, id string) [sha256.Size]byte {
	return sha256.Sum256([]byte(n.tenant + "\x00" + n.thread + "\x00" + n.execution + "\x00" + what + "\x00" + id))
}

// traceID derives the trace of a run that was not asked for in one.
func (n name) traceID() (id trace.TraceID) {
	sum := n.digest("trace", "")
	copy(id[:], sum[:])
	if !id.IsValid() {
		id[len(id)-1] = 1
	}
	return id
}

// spanID derives the id of a span: of a step or a recorded span by its id, of
// the run itself by none.
func (n name) spanID(of string) (id trace.SpanID) {
	sum := n.digest("span", of)
	copy(id[:], sum[:])
	if !id.IsValid() {
		id[len(id)-1] = 1
	}
	return id
}

// asked reads a W3C trace context. What cannot be read is none.
func asked(traceparent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	return trace.SpanContextFromContext(ctx)
}

// root gives the context of a run's own span, as links to it need it.
func (n name) root(traceparent string) trace.SpanContext {
	id := n.traceID()
	if parent := asked(traceparent); parent.IsValid() {
		id = parent.TraceID()
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: n.spanID(""), TraceFlags: trace.FlagsSampled})
}

// spanIDs are the ids that the next span gets. They travel in the context of its
// start, where the generator finds them.
type spanIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

type spanIDsKey struct{}

// derived gives spans the ids that were derived for them.
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
