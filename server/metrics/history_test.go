package metrics

import (
	"math"
	"testing"
	"time"
)

func TestHistory_RatesAndLatencies(t *testing.T) {
	m := New()
	h, at := m.History(), time.Unix(1000, 0)
	h.measure(at)
	for range 300 {
		m.Done("thread.create", "ok", 0.0015)
	}
	h.measure(at.Add(15 * time.Second))
	values := map[string]float64{}
	for _, s := range h.Series() {
		if len(s.Points) != 1 {
			t.Fatalf("%s has %d points", s.Name, len(s.Points))
		}
		values[s.Name] = s.Points[0]
	}
	if got := values["Commands"]; got != 20 {
		t.Errorf("%f commands/s", got)
	}
	if got := values["Command, 95th percentile"]; math.Abs(got-1.6) > 0.01 {
		t.Errorf("a command took %f ms", got)
	}
	if got := values["Query, 95th percentile"]; !math.IsNaN(got) {
		t.Errorf("no query took %f ms", got)
	}
	if values["Memory"] <= 0 {
		t.Error("no memory")
	}
}

// An hour is kept, however long the process runs.
func TestHistory_IsBounded(t *testing.T) {
	m := New()
	h := m.History()
	for i := range historyKeeps + 50 {
		m.Done("thread.create", "ok", 0.001)
		h.measure(time.Unix(int64(15*i), 0))
	}
	for _, s := range h.Series() {
		if len(s.Points) != historyKeeps {
			t.Errorf("%s has %d points", s.Name, len(s.Points))
		}
	}
}
