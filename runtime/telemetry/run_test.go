package telemetry

import (
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"github.com/skein-threads/skein/events"
)

// Ids are derived from the tenant, the thread, the execution and the event's own id,
// and never change: a collector may have the run already.
func TestIDsStay(t *testing.T) {
	n := name{"acme", "T-1", "exe_1"}
	trace, root, step := n.traceID(), n.spanID(""), n.spanID("stp_1")
	if got := hex.EncodeToString(trace[:]) + " " + hex.EncodeToString(root[:]) + " " + hex.EncodeToString(step[:]); got != "84407432b12b8a5ecc4c9f9e21064f2f e69ce0d39a9ccf17 f20acfdb361aa2a0" {
		t.Errorf("they are %s", got)
	}
	for _, other := range []name{{"acm", "T-1", "exe_1"}, {"acme", "T-2", "exe_1"}, {"acme", "T-1", "exe_2"}} {
		if other.traceID() == trace || other.spanID("") == root || other.spanID("stp_1") == step {
			t.Errorf("%v has the same ids", other)
		}
	}
	for _, bad := range []string{"", "00-0-0-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "x"} {
		if asked(bad).IsValid() {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// What is kept of a run is bounded, and what is dropped is counted. Records of other
// writers in forms of their own do no harm.
func TestBounds(t *testing.T) {
	at := events.Time(0)
	event := func(typ events.Type, subject string, data any) *events.Event {
		at += 1000
		return &events.Event{Type: typ, Time: at, Subject: subject, Tenant: "acme", ThreadID: "T-1", Correlation: "exe_1", Data: data}
	}
	r := begin(event(events.ExecutionCreatedType, "exe_1", events.ExecutionCreated{ID: "exe_1"}), &events.Commit{}, false)
	for i := range maxSpans + 10 {
		id := "stp_" + strconv.Itoa(i)
		r.apply(event(events.StepCreatedType, id, events.StepCreated{ID: id, Iteration: int64(i)}))
		r.apply(event(events.TraceRecordedType, "", events.TraceRecorded{Kind: events.TraceLog, Text: strings.Repeat("\xff\u00e9", 1<<16), Data: []byte(`{"attempt":"x"}`)}))
		r.apply(event(events.TraceRecordedType, "", events.TraceRecorded{Kind: events.TraceSpanKind, SpanID: "x", ParentID: "gone", StartedAt: "never", Data: []byte(`[1]`)}))
	}
	if !r.apply(event(events.ThreadFinishedType, "T-1", events.ThreadFinished{ExecutionID: "exe_1", Status: events.ExecutionFailed})) {
		t.Error("it is not over")
	}
	made := newMaker(resource.Empty(), "").spans(r, trace.SpanContext{})
	if len(made) != maxSpans+1 || r.Left != 11 || r.size > maxSpans+1+maxSpans+maxNotes {
		t.Errorf("%d spans, %d left out, of size %d", len(made), r.Left, r.size)
	}
	for _, s := range made {
		if s.EndTime().Before(s.StartTime()) || !s.Parent().IsValid() && s.Name() != "invoke_agent" {
			t.Errorf("%s: %v to %v under %v", s.Name(), s.StartTime(), s.EndTime(), s.Parent())
		}
		for _, e := range s.Events() {
			for _, a := range e.Attributes {
				if len(a.Value.AsString()) > maxText+3 || !strings.HasSuffix(a.Value.AsString(), "...") && a.Key == "skein.log.text" {
					t.Fatalf("%s has %d bytes", a.Key, len(a.Value.AsString()))
				}
			}
		}
	}
}
