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
	for i, name := range []string{"document of 60 messages", "fork of 60 messages", "history, 50 of 3 threads", "state.merge of one key", "from a write to an observer"} {
		if c := r.Cases[i]; c.Name != name || c.Times != 2 || c.P50Ms <= 0 || c.MaxMs < c.P99Ms || c.P99Ms < c.P50Ms || !strings.Contains(out.String(), name) {
			t.Errorf("%+v, want %s", c, name)
		}
	}
}
