package chart

import (
	"fmt"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
)

// MaxBars is how many bars a waterfall draws.
const MaxBars = 300

// Kind is what a bar shows.
type Kind string

// The kinds of bars.
const (
	RunBar   Kind = "run"   // an execution
	StepBar  Kind = "step"  // one turn of its loop
	ModelBar Kind = "model" // a call of a reactor
	ToolBar  Kind = "tool"  // a call of a tool
	WaitBar  Kind = "wait"  // for a person, a worker or another thread
	MarkBar  Kind = "mark"  // a moment, such as a retry
	OtherBar Kind = "other" // a span that somebody else recorded
)

// Bar is something that took time.
type Bar struct {
	ID, Parent string
	Kind       Kind
	Name       string
	Detail     string // such as why it failed
	Begun      events.Time
	Ended      events.Time // 0: it lasts
	Failed     bool
	Usage      events.Usage
	Models     []events.Usage // of a run: what each of its models used
	Version    int64          // of the thread, where it began
	Call       string         // the call of a tool
	Thread     string         // another thread that works for it
	Shown      *events.Shown  // what a model was shown
	Href       string         // of its name
	Chosen     bool           // its reader looks at it

	depth int
}

// end returns when a bar ended, or now.
func (b *Bar) end(now events.Time) events.Time {
	if b.Ended == 0 {
		return max(b.Begun, now)
	}
	return max(b.Begun, b.Ended)
}

// Duration formats how long something took, with a precision that a reader can use.
func Duration(micros int64) string {
	d := time.Duration(max(micros, 0)) * time.Microsecond
	switch {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return trimZero(fmt.Sprintf("%.1f", float64(d)/1e6)) + " ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return trimZero(fmt.Sprintf("%.1f", d.Seconds())) + " s"
	case d < time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	}
	return twoUnits(d, 24*time.Hour, "d", time.Hour, "h")
}

func trimZero(s string) string { return strings.TrimSuffix(s, ".0") }

func twoUnits(d, large time.Duration, one string, small time.Duration, other string) string {
	text := fmt.Sprintf("%d %s", d/large, one)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, other)
	}
	return text
}

// Count formats a number with its thousands apart.
func Count(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
