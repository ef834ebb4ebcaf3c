package bench

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/dev/bench/traffic"
)

// A short run measures every case over HTTP and over NATS, and nothing is refused.
func TestHTTP(t *testing.T) {
	r, err := HTTP(t.Context(), HTTPOptions{
		Seconds: 0.1, Clients: []int{1, 3}, Readers: []int{1, 20}, Events: 5, Dir: t.TempDir(), Profile: filepath.Join(t.TempDir(), "cpu.prof"),
		LoadArgs: []string{"load"}, Log: func(s string) { t.Log(s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, name := range traffic.Cases() {
		numbers := []int{1, 3}
		if name == traffic.FanOut {
			numbers = []int{1, 20}
		}
		for _, n := range numbers {
			for _, over := range []string{"HTTP", "NATS"} {
				c := r.find(name, over, n)
				switch {
				case c == nil || c.Name != map[string]string{"HTTP": "http-", "NATS": "nats-"}[over]+name || !strings.Contains(out.String(), c.Name):
					t.Errorf("%s over %s, %d, is missing", name, over, n)
				case c.Refused > 0 || c.P50Ms <= 0 || c.P99Ms < c.P50Ms || c.MaxMs < c.P99Ms || c.Micros <= 0:
					t.Errorf("%+v", c)
				case name == traffic.FanOut && c.Times != n*5:
					t.Errorf("%d events to %d readers: %+v", 5, n, c)
				case (c.FirstP50Ms > 0) != traffic.Streams(name) || c.FirstP50Ms > c.P99Ms:
					t.Errorf("the first part of an answer: %+v", c)
				}
			}
		}
	}
	if !slices.ContainsFunc(r.Ratios, func(x Ratio) bool { return strings.HasPrefix(x.Name, "ms that HTTP adds") }) {
		t.Errorf("ratios: %+v", r.Ratios)
	}
}

// What cannot be done is told, not measured.
func TestHTTP_UnknownCase(t *testing.T) {
	if _, err := HTTP(t.Context(), HTTPOptions{Cases: []string{"nothing"}, Dir: t.TempDir(), LoadArgs: []string{"load"}}); err == nil {
		t.Error("there is a result")
	}
}

// The processor time of an operation counts those that warm up: they have used it, too.
func TestHTTPCase_WarmUpsUseTheProcessor(t *testing.T) {
	got := &Loaded{Nanos: []int64{1, 1}, WarmUps: 6, Elapsed: 2}
	if c := httpCase("item", "HTTP", 1, got, 8*time.Microsecond); c.Micros != 1 || c.Times != 2 {
		t.Errorf("%+v", c)
	}
}
