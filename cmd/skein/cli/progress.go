package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// How often progress is shown.
const (
	redraw    = 100 * time.Millisecond // on a terminal, in place
	plainLine = 5 * time.Second        // elsewhere, as separate lines
)

// Progress shows the progress of long work on standard error. It is used by one
// goroutine at a time.
type Progress struct {
	out      io.Writer
	terminal bool
	last     time.Time
	shown    bool // a line is shown on the terminal
}

// Progress returns the progress of one piece of work. On a terminal the first line is shown at once.
func (a *App) Progress() *Progress {
	p := &Progress{out: a.Err, terminal: a.IsTerminal(a.Err)}
	if !p.terminal {
		p.last = time.Now()
	}
	return p
}

// Show shows a line, if the interval since the last one has passed.
func (p *Progress) Show(format string, args ...any) {
	pause := plainLine
	if p.terminal {
		pause = redraw
	}
	if now := time.Now(); now.Sub(p.last) >= pause {
		p.last = now
		line := fmt.Sprintf(format, args...)
		if p.terminal {
			_, _ = fmt.Fprint(p.out, "\r\x1b[K"+line)
			p.shown = true
			return
		}
		_, _ = fmt.Fprintln(p.out, line)
	}
}

// barWidth is the width of a bar, in characters.
const barWidth = 24

// Bar shows a line behind a progress bar. Without a known end it shows the line only.
func (p *Progress) Bar(done, of int64, format string, args ...any) {
	if of <= 0 {
		p.Show(format, args...)
		return
	}
	done = min(max(done, 0), of)
	full := int(barWidth * done / of)
	drawn := strings.Repeat("#", full) + strings.Repeat(".", barWidth-full)
	p.Show("[%s] %3d%%  %s", drawn, 100*done/of, fmt.Sprintf(format, args...))
}

// Clear removes the line from the terminal.
func (p *Progress) Clear() {
	if p.shown {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}
