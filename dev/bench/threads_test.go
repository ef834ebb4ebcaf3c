package bench

import (
	"bytes"
	"strings"
	"testing"
)

// A short run measures every case, and prints each.
func TestThreads(t *testing.T) {
	r, err := Threads(t.Context(), ThreadsOptions{Messages: 60, Threads: 3, Times: 2, Dir: t.TempDir(), Log: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name  string
		times int
	}{
		{"document of 60 messages", 2}, {"first fork of 60 messages", 1}, {"fork of 60 messages", 2}, {"history, 50 of 3 threads", 2},
		{"state.merge of one key", 2}, {"from a write to an observer", 2},
	} {
		if c := r.Cases[i]; c.Name != want.name || c.Times != want.times || c.P50Ms <= 0 || c.MaxMs < c.P99Ms || c.P99Ms < c.P50Ms || !strings.Contains(out.String(), want.name) {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}
