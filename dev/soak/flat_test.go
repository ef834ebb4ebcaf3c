package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// sample is a measurement at a time.
type sample struct {
	at    time.Duration
	value float64
}

// series holds the samples of one quantity, and how much it may grow.
type series struct {
	name    string
	unit    string
	allowed float64 // growth over the time that was observed
	share   float64 // or this share of its median, if that is more
	samples []sample
}

func (s *series) add(at time.Duration, value float64) {
	s.samples = append(s.samples, sample{at, value})
}

// growth returns how much the series grew from its first to its last sample: the median
// of the slopes between all pairs (Theil and Sen), which outliers do not affect, times
// the time between.
func (s *series) growth() float64 {
	var slopes []float64
	for i, a := range s.samples {
		for _, b := range s.samples[i+1:] {
			slopes = append(slopes, (b.value-a.value)/(b.at-a.at).Seconds())
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	return median(slopes) * (s.samples[len(s.samples)-1].at - s.samples[0].at).Seconds()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func (s *series) median() float64 {
	var values []float64
	for _, one := range s.samples {
		values = append(values, one.value)
	}
	return median(values)
}

// problem describes how the series grew too much, or returns "".
func (s *series) problem() string {
	if len(s.samples) < 8 {
		return fmt.Sprintf("%s: %d samples are too few", s.name, len(s.samples))
	}
	grown, bound := s.growth(), max(s.allowed, s.share*s.median())
	if grown > bound {
		return fmt.Sprintf("%s grew by %.1f %s, around %.1f; at most %.1f are allowed", s.name, grown, s.unit, s.median(), bound)
	}
	return ""
}

// The test of slopes finds a leak under noise, and ignores noise.
func TestProblem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name  string
		value func(i int) float64
		leaks bool
	}{
		{"level", func(int) float64 { return 100 }, false},
		{"noise", func(int) float64 { return 100 + 20*r.Float64() }, false},
		{"a peak", func(i int) float64 {
			if i == 30 {
				return 10_000
			}
			return 100
		}, false},
		{"falling", func(i int) float64 { return 100 - float64(i) }, false},
		{"a leak", func(i int) float64 { return 100 + float64(i) }, true},
		{"a leak under noise", func(i int) float64 { return 100 + float64(i) + 20*r.Float64() }, true},
	} {
		s := series{name: c.name, unit: "things", allowed: 10, share: 0.1}
		for i := range 40 {
			s.add(time.Duration(i)*time.Second, c.value(i))
		}
		if got := s.problem(); (got != "") != c.leaks {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	few := series{name: "few", samples: make([]sample, 3)}
	if few.problem() == "" {
		t.Error("too few samples are enough")
	}
}
