package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// MaxPoints is how many points a sparkline draws. Of more, each point is the largest of several.
const MaxPoints = 240

// Sparkline is a measurement over time.
type Sparkline struct {
	ID     string // unique on its page: letters, digits, dashes and underscores
	Title  string
	Points []float64            // oldest first; NaN: nothing was measured
	Format func(float64) string // of a value; default: the shortest number
}

// HTML returns the line, and its last value in words.
func (s Sparkline) HTML() template.HTML {
	format := s.Format
	if format == nil {
		format = func(f float64) string { return number(f) }
	}
	points := thin(s.Points)
	low, high, last, measured := bounds(points)
	id, title := template.HTMLEscapeString(s.ID), escape(s.Title, 200)
	if !measured {
		return template.HTML(fmt.Sprintf(`<span class="spark"><span class="name">%s</span> <span class="value">–</span></span>`+"\n", title))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<span class="spark"><span class="name">%s</span> <span class="value">%s</span>`, title, escape(format(last), 40))
	fmt.Fprintf(&b, `<svg role="img" aria-labelledby="%s-t %s-d" viewBox="0 0 100 24" preserveAspectRatio="none"><title id="%s-t">%s</title><desc id="%s-d">%s at last, between %s and %s.</desc>`,
		id, id, id, title, id, escape(format(last), 40), escape(format(low), 40), escape(format(high), 40))
	line, area := paths(points, math.Min(low, 0), high)
	fmt.Fprintf(&b, `<path class="area" d="%s"/><path class="line" d="%s" vector-effect="non-scaling-stroke"/></svg></span>`+"\n", area, line)
	return template.HTML(b.String())
}

// thin returns at most MaxPoints points.
func thin(points []float64) []float64 {
	if len(points) <= MaxPoints {
		return points
	}
	out := make([]float64, MaxPoints)
	for i := range out {
		out[i] = math.NaN()
		for _, v := range points[i*len(points)/MaxPoints : (i+1)*len(points)/MaxPoints] {
			if number := !math.IsNaN(v) && !math.IsInf(v, 0); number && (math.IsNaN(out[i]) || v > out[i]) {
				out[i] = v
			}
		}
	}
	return out
}

func bounds(points []float64) (low, high, last float64, measured bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range points {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high, last, measured = math.Min(low, v), math.Max(high, v), v, true
		}
	}
	return low, high, last, measured
}

// paths returns the line through the points, in pieces where nothing was measured, and the area
// below it.
func paths(points []float64, low, high float64) (line, area string) {
	var l, a strings.Builder
	step, spread := 100/math.Max(float64(len(points)-1), 1), high-low
	open, lastX := false, 0.0
	end := func() {
		if open {
			fmt.Fprintf(&a, "L%s 24Z", number(lastX))
		}
		open = false
	}
	for i, v := range points {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			end()
			continue
		}
		x, y := float64(i)*step, 23.0
		if spread > 0 {
			y = 23 - 22*(v-low)/spread
		}
		if open {
			fmt.Fprintf(&l, "L%s %s", number(x), number(y))
			fmt.Fprintf(&a, "L%s %s", number(x), number(y))
		} else {
			fmt.Fprintf(&l, "M%s %s", number(x), number(y))
			fmt.Fprintf(&a, "M%s 24L%s %s", number(x), number(x), number(y))
			if i == len(points)-1 || math.IsNaN(points[i+1]) { // a point alone
				fmt.Fprintf(&l, "L%s %s", number(x+0.5), number(y))
			}
		}
		open, lastX = true, x
	}
	end()
	return l.String(), a.String()
}
