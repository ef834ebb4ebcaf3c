package chart

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// scale places times on a line from 0 to 100. Long waits in which nothing else happened are
// shortened, so that what happened before and after can be seen.
type scale struct {
	start events.Time
	ends  []events.Time // of segments
	at    []float64     // where they end
	gaps  []gap
}

// gap is a segment that is shortened.
type gap struct {
	from, to float64
	micros   int64
}

const (
	gapShare = 0.25 // of the busy time: a longer wait is shortened
	gapWidth = 0.08 // of the busy time: what remains of it
)

func newScale(bars []Bar, now events.Time) *scale {
	s := &scale{}
	edges := make([]events.Time, 0, 2*len(bars))
	busy, waits := map[events.Time]int{}, map[events.Time]int{}
	for i := range bars {
		b := &bars[i]
		from, to := b.Begun, b.end(now)
		edges = append(edges, from, to)
		switch b.Kind {
		case ModelBar, ToolBar, OtherBar:
			busy[from]++
			busy[to]--
		case WaitBar:
			waits[from]++
			waits[to]--
		}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	if len(edges) == 0 {
		return s
	}
	s.start = edges[0]
	idle := idleSegments(edges, busy, waits)
	var active int64
	for i := 1; i < len(edges); i++ {
		if !idle[i] {
			active += int64(edges[i] - edges[i-1])
		}
	}
	s.place(edges, idle, active)
	return s
}

// idleSegments tells, for each segment between two edges, whether something waited in it and
// nothing else happened.
func idleSegments(edges []events.Time, busy, waits map[events.Time]int) []bool {
	idle := make([]bool, len(edges))
	working, waiting := 0, 0
	for i := 1; i < len(edges); i++ {
		working += busy[edges[i-1]]
		waiting += waits[edges[i-1]]
		idle[i] = working == 0 && waiting > 0
	}
	return idle
}

// place lays out the segments.
func (s *scale) place(edges []events.Time, idle []bool, active int64) {
	widths, total := make([]float64, len(edges)), 0.0
	for i := 1; i < len(edges); i++ {
		width := float64(edges[i] - edges[i-1])
		if idle[i] && active > 0 && width > gapShare*float64(active) {
			width = gapWidth * float64(active)
		} else {
			idle[i] = false
		}
		widths[i] = width
		total += width
	}
	at := 0.0
	for i := range edges {
		from := at
		if total > 0 {
			at += 100 * widths[i] / total
		}
		s.ends, s.at = append(s.ends, edges[i]), append(s.at, min(at, 100))
		if idle[i] {
			s.gaps = append(s.gaps, gap{from, at, int64(edges[i] - edges[i-1])})
		}
	}
}

// of returns where a time is.
func (s *scale) of(t events.Time) float64 {
	i, exact := slices.BinarySearch(s.ends, t)
	switch {
	case len(s.ends) == 0 || i == 0:
		return 0
	case i == len(s.ends):
		return 100
	case exact:
		return s.at[i]
	}
	share := float64(t-s.ends[i-1]) / float64(s.ends[i]-s.ends[i-1])
	return s.at[i-1] + share*(s.at[i]-s.at[i-1])
}

// ticks returns places on the line, with how long after the start they are.
func (s *scale) ticks() (places []float64, micros []int64) {
	const n = 4
	if len(s.ends) < 2 {
		return nil, nil
	}
	for k := range n {
		place := float64(k) * 100 / n
		i, _ := slices.BinarySearch(s.at, place)
		if i = min(max(i, 1), len(s.at)-1); s.inGap(place) {
			continue
		}
		t := s.ends[i]
		if wide := s.at[i] - s.at[i-1]; wide > 0 {
			t = s.ends[i-1] + events.Time(float64(s.ends[i]-s.ends[i-1])*(place-s.at[i-1])/wide)
		}
		places, micros = append(places, place), append(micros, int64(t-s.start))
	}
	return places, micros
}

func (s *scale) inGap(place float64) bool {
	return slices.ContainsFunc(s.gaps, func(g gap) bool { return place > g.from && place < g.to })
}
