package projections

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// tamper puts something into a bucket as no runner does; nothing means that the
// document is taken out.
func (h *house) tamper(p documents.Projection, key, value string) {
	h.Helper()
	stream, err := h.log.JetStream().Stream(h.Context(), "KV_"+p.Bucket)
	if err != nil {
		h.Fatal(err)
	}
	subject := "$KV." + p.Bucket + "." + key
	if value == "" {
		m, err := stream.GetLastMsgForSubject(h.Context(), subject)
		if err != nil {
			h.Fatal(err)
		}
		// As key-value clients remove: a marker.
		if _, err := h.log.JetStream().PublishMsg(h.Context(), &nats.Msg{Subject: subject, Header: marker(m.Sequence)}); err != nil {
			h.Fatal(err)
		}
		return
	}
	if _, err := h.log.JetStream().Publish(h.Context(), subject, []byte(value)); err != nil {
		h.Fatal(err)
	}
}

func (h *house) rebuild(verify bool, names ...string) Report {
	h.Helper()
	r := New(h.newLog(), Config{}, zerolog.Nop(), nil)
	report, err := r.Rebuild(h.Context(), names, verify)
	if err != nil {
		h.Fatal(err)
	}
	return report
}

// TestRebuildFindsAndRepairs tampers with documents of every kind while threads
// are written and read.
func TestRebuildFindsAndRepairs(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{CheckpointEvery: 50 * time.Millisecond})
	quiet := h.do("thread.create", "", `{"title":"quiet"}`).ThreadID
	gone := h.do("thread.create", "", `{}`).ThreadID
	busy := h.do("thread.create", "", `{"title":"busy"}`).ThreadID
	for n := range 3 {
		h.react(quiet, n)
		h.react(gone, n)
		h.react(busy, n)
	}
	h.do("thread.delete", gone, `{}`)
	h.await(r)
	if report := h.rebuild(true); report.Found != 0 || report.Threads != 3 || report.Documents == 0 {
		t.Fatalf("nothing is wrong yet: %+v", report)
	}

	// One of each: altered, missing, too many, of no thread, no document at all.
	want := map[string]string{}
	for _, p := range h.models.List() {
		var keys []string
		for key := range h.live(p) {
			if strings.Contains(key, quiet) {
				keys = append(keys, key)
			}
		}
		if len(keys) == 0 {
			continue
		}
		h.tamper(p, keys[0], strings.Replace(h.live(p)[keys[0]], `"threadId"`, `"tampered":1,"threadId"`, 1)+" ")
		want[p.Bucket+" "+keys[0]] = Different
		if len(keys) > 1 {
			h.tamper(p, keys[1], "")
			want[p.Bucket+" "+keys[1]] = Missing
		}
		if p.Kind != documents.Threads {
			h.tamper(p, acme+"."+quiet+".extra", `{"id":"extra","version":1,"seq":1}`)
			want[p.Bucket+" "+acme+"."+quiet+".extra"] = Extra
			h.tamper(p, acme+"."+gone+".extra", `{"id":"extra","version":1,"seq":999999}`)
			want[p.Bucket+" "+acme+"."+gone+".extra"] = Extra
		}
		h.tamper(p, "nobody.T-x", `{"seq":1}`)
		want[p.Bucket+" nobody.T-x"] = Extra
		h.tamper(p, "rubbish", `no JSON`)
		want[p.Bucket+" rubbish"] = Extra
	}
	check := func(report Report) {
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
	check(h.rebuild(true))
	if h.rebuild(true).Repaired != 0 {
		t.Error("a verification repaired something")
	}

	// Now repair it while the busy thread is written and read.
	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	written := atomic.Int64{}
	beside.Go(func() {
		for n := 100; ctx.Err() == nil; n++ {
			h.react(busy, n)
			written.Add(1)
		}
	})
	beside.Go(func() { h.neverOlder(ctx, busy) })
	report := h.rebuild(false)
	if int(report.Found) != len(want) || report.Repaired < report.Found {
		t.Errorf("found %d and repaired %d, want %d", report.Found, report.Repaired, len(want))
	}
	check(report)
	for range 5 {
		if report := h.rebuild(true); report.Found != 0 {
			t.Errorf("after the repair, while writes go on: %+v", report)
		}
	}
	stop()
	beside.Wait()
	if written.Load() == 0 {
		t.Error("nothing was written meanwhile")
	}
	h.await(r)
	h.same(quiet, gone, busy)
}

// neverOlder reads documents of a thread again and again: none may go back to an
// older sequence.
func (h *house) neverOlder(ctx context.Context, thread string) {
	last := map[string]int64{}
	for ctx.Err() == nil {
		for _, p := range h.models.List() {
			pattern := acme + "." + thread
			if p.Kind != documents.Threads {
				pattern += ".>"
			}
			got, err := h.log.Bucket(p.Bucket).Get(h.Context(), pattern)
			if err != nil {
				continue // too many by now
			}
			for _, m := range got {
				var doc events.Stamp
				if err := json.Unmarshal(m.Data, &doc); err != nil {
					h.Errorf("%s: %v", m.Subject, err)
				}
				if doc.Seq < last[p.Bucket+m.Subject] {
					h.Errorf("%s went back from %d to %d", m.Subject, last[p.Bucket+m.Subject], doc.Seq)
				}
				last[p.Bucket+m.Subject] = doc.Seq
			}
		}
	}
}

// On a store that was only just made, a read model that no runner has begun with is
// waited for: what it does not show yet is not missing. One that nobody fills is
// judged as it is.
func TestVerify_OfAYoungStoreTellsNoDifferences(t *testing.T) {
	h := newHouse(t)
	ensured, stop := h.run(Config{}) // makes the buckets
	h.await(ensured)
	stop()
	for _, p := range h.models.List() {
		stream, err := h.log.JetStream().Stream(t.Context(), "KV_"+p.Bucket)
		if err == nil {
			err = stream.Purge(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	id := h.do("thread.create", "", `{}`).ThreadID
	h.react(id, 1)
	verify := func(every time.Duration) Report {
		report, err := New(h.newLog(), Config{CheckpointEvery: every}, zerolog.Nop(), nil).Verify(t.Context(), Scope{})
		if err != nil {
			t.Error(err)
		}
		return report
	}
	if report := verify(time.Millisecond); report.Found == 0 || report.Differences[0].Kind != Missing {
		t.Errorf("nobody fills them: %+v", report)
	}
	asked, err := h.newLog().Conn().SubscribeSync("$JS.API.STREAM.MSG.GET.KV_" + h.models.Of(documents.Threads).Bucket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan Report, 1)
	go func() { done <- verify(time.Hour) }()
	for range 3 { // it has looked, and looks again
		if _, err := asked.NextMsg(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := h.run(Config{})
	if report := <-done; report.Found != 0 || report.Threads != 1 {
		t.Errorf("a runner was about to begin: %+v", report)
	}
	h.await(r)
	if report := verify(time.Hour); report.Found != 0 || report.Documents == 0 {
		t.Errorf("a runner has done its work: %+v", report)
	}
}
