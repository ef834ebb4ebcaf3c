package rebuild_test

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/readtest/running"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// Changes in the bucket of definitions are found, and repaired from the log, and so is an
// emptied bucket.
func TestRepair_Definitions(t *testing.T) {
	h := running.New(t)
	r, stop := h.Run(projections.Config{})
	p := h.Models.Of(documents.Definitions)
	h.Apply(`{"definitions":[{"kind":"model","name":"a","definition":{"model":"x"}},{"kind":"model","name":"b","definition":{"model":"x"}},{"kind":"model","name":"c","definition":{"model":"x"}}]}`)
	h.Apply(`{"remove":[{"kind":"model","name":"c"}]}`)
	thread := h.Do("thread.create", "", `{}`).ThreadID
	h.AwaitRunner(r)
	if report := h.Verify(); report.Found != 0 || report.Threads != 1 || report.Documents < 3 {
		t.Fatalf("nothing is wrong yet: %+v", report)
	}
	h.Tamper(p, "acme.model.a", strings.Replace(h.Live(p)["acme.model.a"], `"x"`, `"y"`, 1))
	h.Tamper(p, "acme.model.b", "")
	h.Tamper(p, "acme.model.c", `{"kind":"model","name":"c","version":9,"seq":1}`)
	h.Tamper(p, "nobody.model.a", `{"kind":"model","name":"a","version":1,"seq":1}`)
	want := map[string]string{"acme.model.a": rebuild.Different, "acme.model.b": rebuild.Missing, "acme.model.c": rebuild.Extra, "nobody.model.a": rebuild.Extra}
	for _, report := range []rebuild.Report{h.Verify(), h.Repair()} {
		if int(report.Found) != len(want) {
			t.Errorf("%+v", report)
		}
		for _, d := range report.Differences {
			if want[d.Key] != d.Kind || d.Projection != "definitions" {
				t.Errorf("%+v", d)
			}
		}
	}
	h.AwaitRunner(r)
	h.Same(thread)

	stop()
	stream, err := h.EventLog.JetStream().Stream(t.Context(), "KV_"+p.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, _ = h.Run(projections.Config{})
	h.Apply(`{"definitions":[{"kind":"model","name":"d","definition":{"model":"x"}}]}`)
	h.Until(func() bool { return len(h.Live(p)) == 3 && r.Progress().Seq() > 0 }, "the bucket was not filled again")
	h.AwaitRunner(r)
	h.Same(thread)
}
