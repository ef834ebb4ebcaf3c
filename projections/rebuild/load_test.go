package rebuild_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/internal/readtest/running"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

func TestUnknownProjection(t *testing.T) {
	h := running.New(t)
	_, err := rebuild.Verify(t.Context(), h.EventLog, rebuild.Scope{}, "items", "nothing")
	unknown, ok := err.(*rebuild.UnknownProjectionError)
	if !ok || unknown.Name != "nothing" || len(unknown.Known) != documents.Kinds {
		t.Errorf("%v", err)
	}
	if report := h.Verify("items", "thread_steps"); len(report.Projections) != 2 {
		t.Errorf("%v", report.Projections)
	}
}

// Every document of many threads is altered while all of them are written: the repair
// ends, and the runner continues.
func TestRepairUnderSteadyLoad(t *testing.T) {
	h := running.New(t)
	ids := h.Fill(50, 4)
	r, _ := h.Run(projections.Config{})
	h.AwaitRunner(r)
	for _, p := range h.Models.List() {
		for key, doc := range h.Live(p) {
			h.Tamper(p, key, strings.Replace(doc, `{`, `{"tampered":true,`, 1))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for lane := range 2 {
		others.Go(func() {
			for n := lane; ctx.Err() == nil; n += 2 {
				h.Do("thread.update", ids[n%len(ids)], `{"title":"again"}`)
			}
		})
	}
	begun := r.Progress().Seq()
	report := h.Repair()
	// Documents that the runner rewrote meanwhile needed no repair.
	if report.Found == 0 || report.Repaired == 0 {
		t.Errorf("found %d, repaired %d", report.Found, report.Repaired)
	}
	if now := r.Progress().Seq(); now == begun {
		t.Error("the runner stood still meanwhile")
	}
	stop()
	others.Wait()
	h.AwaitRunner(r)
	if report := h.Verify(); report.Found != 0 {
		t.Errorf("%d differences are left: %+v", report.Found, report.Differences[0])
	}
	h.Same(ids...)
}

// Documents that are only late are no difference.
func TestVerifyWhileTheRunnerIsBehind(t *testing.T) {
	h := running.New(t)
	a := readtest.NewAuthor(h.House, 13)
	r, stop := h.Run(projections.Config{})
	a.Write(100)
	h.AwaitRunner(r)
	stop()
	a.Write(100)
	if report := h.Verify(); report.Found != 0 {
		t.Errorf("%+v", report)
	}
	r, stop = h.Run(projections.Config{BatchCommits: 1})
	for range 10 {
		a.Write(10)
		if report := h.Verify(); report.Found != 0 {
			t.Errorf("%+v", report)
		}
	}
	h.AwaitRunner(r)
	stop()
	h.Same(a.Threads...)
}

// TestReportIsJSON: the command line prints it.
func TestReportIsJSON(t *testing.T) {
	raw, err := json.Marshal(rebuild.Report{Projections: []string{"items"}, Differences: []rebuild.Difference{{Projection: "items", Kind: rebuild.Missing, LogSeq: 3}}}, json.Deterministic(true))
	if err != nil || !strings.Contains(string(raw), `"kind":"missing","logSeq":3`) {
		t.Errorf("%s, %v", raw, err)
	}
}
