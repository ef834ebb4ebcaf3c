package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// history returns events, each a millisecond after the one before.
func history(run string, data ...any) (list []events.Event) {
	for i, d := range data {
		e := events.Event{ID: fmt.Sprintf("e%d", i), Tenant: "acme", ThreadID: "T-1", Time: events.Time(i) * 1000, Version: int64(i + 1), Correlation: run, Actor: "key:1", Data: d}
		switch d := d.(type) {
		case events.ExecutionCreated:
			e.Correlation, e.Subject = d.ID, d.ID
		case events.StepStatusChanged:
			e.Subject = "stp_1"
		}
		list = append(list, e)
	}
	return list
}

func shown(r *Run) string {
	var b strings.Builder
	for _, bar := range nest(r.Bars) {
		fmt.Fprintf(&b, "%s%s %s %d-%d", strings.Repeat(" ", bar.depth), bar.Kind, bar.Name, bar.Begun/1000, bar.Ended/1000)
		if bar.Failed {
			b.WriteString(" failed")
		}
		if bar.Detail != "" {
			b.WriteString(" (" + bar.Detail + ")")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestFold_ARunWithAWaitAndAFailure(t *testing.T) {
	usage := &events.Usage{Model: "gpt-5", InputTokens: 10, OutputTokens: 2}
	runs := Fold(history("exe_1",
		events.ItemCreated{},
		events.ExecutionCreated{ID: "exe_1", Status: events.Executing},
		events.RunRequested{AgentID: "support", RetryOf: "exe_0"},
		events.RunClaimed{Worker: "w1", Token: 1},
		events.StepCreated{ID: "stp_1"},
		events.TraceRecorded{Kind: events.TraceLog, Text: "503", SpanID: "stp_1", Data: events.JSON(`{"attempt":1}`)},
		events.TraceRecorded{Kind: events.TraceSpanKind, SpanID: "s1", ParentID: "stp_1", Name: "reactor", StartedAt: "1970-01-01T00:00:00.004000Z", Usage: usage, Data: events.JSON(`{"model":"best"}`)},
		events.ApprovalRequested{CallID: "c1", StepID: "stp_1", Name: "refund"},
		events.RunParked{Token: 1, Calls: []string{"c1", "c2"}},
		events.ApprovalGranted{CallID: "c1"},
		events.RunResumed{Calls: []string{"c2"}},
		events.RunRequested{},
		events.RunClaimed{Worker: "w2", Token: 2},
		events.RunAwaited{For: []events.WaitFor{{Kind: events.ToolWorker, Name: "refund"}}},
		events.RunAwaited{},
		events.TraceRecorded{Kind: events.TraceSpanKind, SpanID: "s2", ParentID: "stp_1", Name: "tool refund", StartedAt: "1970-01-01T00:00:00.014000Z", Data: events.JSON(`{"callId":"c1","status":"error","attempts":2}`)},
		events.StepStatusChanged{To: events.StepFailed, ErrorText: "no money"},
		events.ExecutionStatusChanged{From: events.Executing, To: events.ExecutionFailed, ErrorText: "no money"},
		events.ThreadFinished{Status: events.ExecutionFailed},
	))
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	r := runs[0]
	want := `run support 1-18 failed (no money)
 step step 1 4-16 failed (no money)
  model best 4-6
  mark attempt 1 failed 5-5 (503)
  wait approval of refund 7-9 (granted by key:1)
  wait another thread 8-10
  mark taken up again 12-12 (by w2)
  wait a worker for tool refund 13-14
  tool refund 14-15 failed (2 attempts)
`
	if got := shown(r); got != want {
		t.Errorf("the bars are\n%s", got)
	}
	if r.Agent != "support" || r.RetryOf != "exe_0" || r.Usage.InputTokens != 10 || r.Claims != 2 {
		t.Errorf("%+v", r)
	}
	for _, b := range r.Bars {
		if b.Name == "another thread" && b.Thread != events.DeriveThreadID("acme", "T-1\x00exe_1\x00c2") {
			t.Errorf("the other thread is %s", b.Thread)
		}
	}
}

// What lasts has no end, and what a run leaves open ends with it.
func TestFold_ARunThatLasts(t *testing.T) {
	list := history("exe_1",
		events.ExecutionCreated{ID: "exe_1", Status: events.Executing}, events.RunRequested{AgentID: "a"}, events.StepCreated{ID: "stp_1"},
		events.ApprovalRequested{CallID: "c1", Name: "refund"},
		events.ExecutionStatusChanged{To: events.ExecutionCompleted},
	)
	if got := shown(Fold(list[:4])[0]); got != "run a 0-0\n step step 1 2-0\n  wait approval of refund 3-0\n" {
		t.Errorf("while it lasts:\n%s", got)
	}
	if got := shown(Fold(list)[0]); got != "run a 0-4\n step step 1 2-4\n  wait approval of refund 3-4\n" {
		t.Errorf("when it has ended:\n%s", got)
	}
}

// Whatever somebody recorded, folding it neither fails nor grows without bounds.
func TestFold_HostileEventsAreBounded(t *testing.T) {
	data := []any{events.ExecutionCreated{ID: "exe_1"}, events.ExecutionCreated{ID: "exe_1"}, events.StepCreated{}, events.TraceRecorded{Kind: events.TraceSpanKind, SpanID: "x", ParentID: "x", StartedAt: "9999-12-31T00:00:00.000000Z"}}
	for i := range maxSpans {
		data = append(data, events.TraceRecorded{Kind: events.TraceSpanKind, SpanID: fmt.Sprint("s", i), ParentID: "nobody", Name: "x", StartedAt: "when", Data: events.JSON(`[`)})
	}
	runs := Fold(history("exe_1", data...))
	if len(runs) != 1 || len(runs[0].Bars) != maxSpans || runs[0].Left != 3 {
		t.Fatalf("%d runs, %d bars, %d left", len(runs), len(runs[0].Bars), runs[0].Left)
	}
	check(t, string(Waterfall{ID: "w", Bars: runs[0].Bars, Left: runs[0].Left}.HTML()))
}
