package rebuild_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/internal/readtest/running"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// Documents of every kind are altered while threads are written and read.
func TestRebuildFindsAndRepairs(t *testing.T) {
	h := running.New(t)
	r, _ := h.Run(projections.Config{CheckpointEvery: 50 * time.Millisecond})
	quiet := h.Do("thread.create", "", `{"title":"quiet"}`).ThreadID
	gone := h.Do("thread.create", "", `{}`).ThreadID
	busy := h.Do("thread.create", "", `{"title":"busy"}`).ThreadID
	for n := range 3 {
		h.React(quiet, n)
		h.React(gone, n)
		h.React(busy, n)
	}
	h.Do("thread.delete", gone, `{}`)
	h.AwaitRunner(r)
	if report := h.Verify(); report.Found != 0 || report.Threads != 3 || report.Documents == 0 {
		t.Fatalf("nothing is wrong yet: %+v", report)
	}

	// One of each: altered, missing, too many, of no thread, no document at all.
	want := map[string]string{}
	for _, p := range h.Models.List() {
		var keys []string
		for key := range h.Live(p) {
			if strings.Contains(key, quiet) {
				keys = append(keys, key)
			}
		}
		if len(keys) == 0 {
			continue
		}
		h.Tamper(p, keys[0], strings.Replace(h.Live(p)[keys[0]], `"threadId"`, `"tampered":1,"threadId"`, 1)+" ")
		want[p.Bucket+" "+keys[0]] = rebuild.Different
		if len(keys) > 1 {
			h.Tamper(p, keys[1], "")
			want[p.Bucket+" "+keys[1]] = rebuild.Missing
		}
		if p.Kind != documents.Threads {
			h.Tamper(p, readtest.Acme+"."+quiet+".extra", `{"id":"extra","version":1,"seq":1}`)
			want[p.Bucket+" "+readtest.Acme+"."+quiet+".extra"] = rebuild.Extra
			h.Tamper(p, readtest.Acme+"."+gone+".extra", `{"id":"extra","version":1,"seq":999999}`)
			want[p.Bucket+" "+readtest.Acme+"."+gone+".extra"] = rebuild.Extra
		}
		h.Tamper(p, "nobody.T-x", `{"seq":1}`)
		want[p.Bucket+" nobody.T-x"] = rebuild.Extra
		h.Tamper(p, "garbage", `no JSON`)
		want[p.Bucket+" garbage"] = rebuild.Extra
	}
	check := func(report rebuild.Report) {
		t.Helper()
		if int(report.Found) != len(want) {
			t.Errorf("%d differences, want %d", report.Found, len(want))
		}
		for _, d := range report.Differences {
			if got := want[d.Bucket+" "+d.Key]; got != d.Kind {
				t.Errorf("%s %s is %s, want %q", d.Bucket, d.Key, d.Kind, got)
			}
		}
	}
	check(h.Verify())
	check(followed(t, h))
	if h.Verify().Repaired != 0 {
		t.Error("a verification repaired something")
	}

	// Repair them while the busy thread is written and read.
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	written := atomic.Int64{}
	others.Go(func() {
		for n := 100; ctx.Err() == nil; n++ {
			h.React(busy, n)
			written.Add(1)
		}
	})
	others.Go(func() { h.NeverOlder(ctx, busy) })
	report := h.Repair()
	if int(report.Found) != len(want) || report.Repaired < report.Found {
		t.Errorf("found %d and repaired %d, want %d", report.Found, report.Repaired, len(want))
	}
	check(report)
	for range 5 {
		if report := h.Verify(); report.Found != 0 {
			t.Errorf("after the repair, while writes go on: %+v", report)
		}
	}
	stop()
	others.Wait()
	if written.Load() == 0 {
		t.Error("nothing was written meanwhile")
	}
	h.AwaitRunner(r)
	h.Same(quiet, gone, busy)
}

// On a new store, Verify waits for a read model that no runner has begun with: what it
// does not show yet is not missing. One that no runner fills is judged as it is.
func TestVerify_OfAYoungStoreTellsNoDifferences(t *testing.T) {
	h := running.New(t)
	ensured, stop := h.Run(projections.Config{}) // creates the buckets
	h.AwaitRunner(ensured)
	stop()
	for _, p := range h.Models.List() {
		stream, err := h.EventLog.JetStream().Stream(t.Context(), "KV_"+p.Bucket)
		if err == nil {
			err = stream.Purge(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	id := h.Do("thread.create", "", `{}`).ThreadID
	h.React(id, 1)
	verify := func(wait time.Duration) rebuild.Report {
		report, err := rebuild.Verify(t.Context(), h.NewLog(), rebuild.Scope{Wait: wait})
		if err != nil {
			t.Error(err)
		}
		return report
	}
	if report := verify(time.Millisecond); report.Found == 0 || report.Differences[0].Kind != rebuild.Missing {
		t.Errorf("nobody fills them: %+v", report)
	}
	asked, err := h.NewLog().Conn().SubscribeSync("$JS.API.STREAM.MSG.GET.KV_" + h.Models.Of(documents.Threads).Bucket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan rebuild.Report, 1)
	go func() { done <- verify(time.Hour) }()
	for range 3 { // it has looked, and looks again
		if _, err := asked.NextMsg(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := h.Run(projections.Config{})
	if report := <-done; report.Found != 0 || report.Threads != 1 {
		t.Errorf("a runner was about to begin: %+v", report)
	}
	h.AwaitRunner(r)
	if report := verify(time.Hour); report.Found != 0 || report.Documents == 0 {
		t.Errorf("a runner has done its work: %+v", report)
	}
}

// followed verifies all threads as a caller does that reads the log itself.
func followed(t *testing.T, h *running.House) rebuild.Report {
	t.Helper()
	v, err := rebuild.Begin(t.Context(), h.EventLog, rebuild.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	folds, names := map[string]*rebuild.Fold{}, h.EventLog.Config().Names
	for m, err := range h.EventLog.Raw(t.Context(), names.Log("*", "*"), 1) {
		if err != nil {
			t.Fatal(err)
		}
		tenant, thread, _ := names.ParseLog(m.Subject)
		if folds[m.Subject] == nil {
			folds[m.Subject] = v.Thread(tenant, thread)
		}
		c, err := h.EventLog.Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		folds[m.Subject].Commit(c)
	}
	for _, f := range folds {
		if err := f.End(); err != nil {
			t.Fatal(err)
		}
	}
	report, err := v.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// What a rewrite that was killed has left in a bucket is no document, and the next one removes it.
func TestRewrite_WasKilled(t *testing.T) {
	h := running.New(t)
	r, _ := h.Run(projections.Config{})
	h.Do("thread.create", "", `{"title":"a"}`)
	h.AwaitRunner(r)
	for _, p := range h.Models.List() {
		h.Tamper(p, "_.filler", strings.Repeat("\x00", 1<<10))
	}
	if report := h.Verify(); report.Found != 0 {
		t.Errorf("what a killed rewrite left: %+v", report)
	}
	if report, err := rebuild.Progress(nil).Rewrite(t.Context(), h.EventLog); err != nil || report.Found != 0 {
		t.Fatalf("the next one: %+v, %v", report, err)
	}
	for _, p := range h.Models.List() {
		if _, there, err := h.EventLog.Bucket(p.Bucket).Newest(t.Context(), "_.filler"); err != nil || there {
			t.Errorf("after the next one, of %s: %v, %v", p.Name, there, err)
		}
	}
}
