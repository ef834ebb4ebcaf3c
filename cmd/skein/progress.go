package main

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

// progress shows the progress of long work on standard error. It is used by one
// goroutine at a time.
type progress struct {
	out      io.Writer
	terminal bool
	last     time.Time
	shown    bool // a line is shown on the terminal
}

func (a *app) progress() *progress {
	return &progress{out: a.err, terminal: a.isTerminal(a.err), last: time.Now()}
}

// show shows a line, if the interval since the last one has passed.
func (p *progress) show(format string, args ...any) {
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

// bar shows a line behind a progress bar. Without a known end it shows the line only.
func (p *progress) bar(done, of int64, format string, args ...any) {
	if of <= 0 {
		p.show(format, args...)
		return
	}
	done = min(max(done, 0), of)
	full := int(barWidth * done / of)
	drawn := strings.Repeat("#", full) + strings.Repeat(".", barWidth-full)
	p.show("[%s] %3d%%  %s", drawn, 100*done/of, fmt.Sprintf(format, args...))
}

// clear removes the line from the terminal.
func (p *progress) clear() {
	if p.shown {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}
