package documents

import (
	"strconv"

	"github.com/skein-threads/skein/events"
)

// traceRuns returns the read model of runs: a run for each execution.
func traceRuns() Projection {
	type T = events.TraceRun
	return Projection{
		Kind: TraceRuns, Name: "trace_runs", Version: 3, Bucket: "thread_trace_runs",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.ExecutionCreatedType, subject, func(c *change, d events.ExecutionCreated) *T {
				return &T{
					ID: d.ID, ThreadID: c.commit.Thread, SessionID: d.SessionID, Status: d.Status, StartedAt: c.time(),
					Actor: c.event.Actor, Trace: c.event.TraceParent,
				}
			}),
			on(events.ExecutionStatusChangedType, subject, func(c *change, doc *T, d events.ExecutionStatusChanged) {
				doc.Status = d.To
				if d.To != events.Executing {
					doc.EndedAt, doc.Micros = c.time(), c.since(doc.StartedAt)
				}
			}),
			on(events.TraceRecordedType, func(c *change, d events.TraceRecorded) (string, bool) {
				return c.run(d), d.Usage != nil && c.run(d) != ""
			}, func(_ *change, doc *T, d events.TraceRecorded) {
				sum := *d.Usage
				if doc.Usage != nil {
					sum = doc.Usage.Add(sum)
				}
				doc.Usage = &sum
			}),
			together(events.LifecycleDeletedType),
		},
	}
}

// traceSpans returns the read model of spans: a span for each step, and each recorded one.
func traceSpans() Projection {
	type T = events.TraceSpan
	return Projection{
		Kind: TraceSpans, Name: "trace_spans", Version: 3, Bucket: "thread_trace_spans",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.StepCreatedType, stepMade, func(c *change, d events.StepCreated) *T {
				return &T{
					ID: d.ID, RunID: d.ExecutionID, ThreadID: c.commit.Thread, SessionID: d.SessionID, Name: "step " + strconv.FormatInt(d.Iteration, 10),
					Status: string(d.Status), StartedAt: c.time(),
				}
			}),
			on(events.StepStatusChangedType, stepMoved, func(c *change, doc *T, d events.StepStatusChanged) {
				doc.Status = string(d.To)
				if d.To != events.StepRunning {
					doc.EndedAt, doc.Micros = c.time(), c.since(doc.StartedAt)
				}
			}),
			puts(events.TraceRecordedType, func(c *change, d events.TraceRecorded) (string, bool) {
				return c.run(d) + "." + d.SpanID, c.isSpan(d)
			}, recordSpan),
			together(events.LifecycleDeletedType),
		},
	}
}

// recordSpan creates a recorded span, or merges a record into a step's own span.
func recordSpan(c *change, doc *events.TraceSpan, d events.TraceRecorded) *events.TraceSpan {
	if doc != nil && doc.Status != "" {
		doc.Usage, doc.Shown, doc.Data = d.Usage, d.Shown, d.Data
		return doc
	}
	start, err := events.ParseTime(d.StartedAt)
	if err != nil {
		start = c.event.Time
	}
	doc = &events.TraceSpan{
		ID: d.SpanID, RunID: c.run(d), ThreadID: c.commit.Thread, SessionID: d.SessionID, ParentID: d.ParentID, Name: d.Name,
		StartedAt: start.ISO(), EndedAt: c.time(), Micros: max(0, int64(c.event.Time-start)), Usage: d.Usage, Shown: d.Shown, Data: d.Data,
	}
	if doc.Name == "" {
		doc.Name = "span"
	}
	return doc
}

// traceEvents returns the read model of trace events: one for each record that is not a span.
// A span without a run or an id is one of them, so that nothing is lost.
func traceEvents() Projection {
	type T = events.TraceEvent
	return Projection{
		Kind: TraceEvents, Name: "trace_events", Version: 3, Bucket: "thread_trace_events",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.TraceRecordedType, func(c *change, d events.TraceRecorded) (string, bool) { return c.event.ID, !c.isSpan(d) },
				func(c *change, d events.TraceRecorded) *T {
					return &T{
						ID: c.event.ID, ThreadID: c.commit.Thread, RunID: c.run(d), SessionID: d.SessionID, SpanID: d.SpanID, Kind: string(d.Kind),
						Level: d.Level, Text: d.Text, Usage: d.Usage, Data: d.Data, At: c.time(), AtMicros: int64(c.event.Time),
						Place: c.event.Version,
					}
				}),
			together(events.LifecycleDeletedType),
		},
	}
}

// run returns the run that a record belongs to: the one it names, or that of its event.
func (c *change) run(d events.TraceRecorded) string {
	if d.ExecutionID != "" {
		return d.ExecutionID
	}
	return c.event.Correlation
}

func (c *change) isSpan(d events.TraceRecorded) bool {
	return d.Kind == "span" && d.SpanID != "" && c.run(d) != ""
}

// since returns the microseconds from a document's time, which is truncated to milliseconds,
// to the event.
func (c *change) since(start string) int64 {
	if c.slot.made {
		return max(0, int64(c.event.Time)-c.slot.at)
	}
	t, err := events.ParseTime(start)
	if err != nil {
		return 0
	}
	return max(0, int64(c.event.Time-t))
}
