package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

// The text of a thread must not control the terminal of its reader.
func TestPrint_RemovesTerminalControls(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[31mred\x07\u202e\r\nnext\u200b"
	for _, got := range []string{eventtext.Printable(evil, false), eventtext.Printable(evil, true), eventtext.Brief(evil, 100)} {
		if strings.ContainsAny(got, "\x1b\x07\r\u202e\u200b") || !strings.Contains(got, "red") || !strings.Contains(got, "next") {
			t.Errorf("%q", got)
		}
	}
	if got := eventtext.Brief("äöü", 2); got != "ä…" {
		t.Errorf("%q", got)
	}
}

// Every event of the catalog has a line, without colours unless requested.
func TestEventLine_EveryEvent(t *testing.T) {
	t.Parallel()
	for _, row := range events.Catalog() {
		e := events.Event{Type: row.Type, ThreadID: "T-01900000-0000-7000-8000-000000000000", Data: row.New()}
		line := EventLine(&e, false)
		if !strings.Contains(line, string(row.Type)) || strings.Contains(line, "\n") || strings.Contains(line, "\x1b") {
			t.Errorf("%q", line)
		}
		if !strings.Contains(EventLine(&e, true), "\x1b[") {
			t.Error("no colours")
		}
	}
}

func TestColour_OnlyOnTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		terminal bool
		noColour string
		want     bool
	}{{false, "", false}, {true, "", true}, {true, "1", false}} {
		a := &App{
			IsTerminal: func(any) bool { return c.terminal },
			Env:        func(string) (string, bool) { return c.noColour, c.noColour != "" },
		}
		if a.Colour(nil) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Progress{out: &out, terminal: true}
	p.Bar(1, 2, "%d threads", 7)
	p.Clear()
	if got := out.String(); got != "\r\x1b[K[############............]  50%  7 threads\r\x1b[K" {
		t.Errorf("%q", got)
	}
	out.Reset()
	p = &Progress{out: &out, last: time.Now()}
	p.Bar(1, 0, "early")
	p.last = time.Now().Add(-time.Minute)
	p.Bar(5, 0, "%d threads", 7)
	p.Bar(6, 0, "too soon")
	p.Clear()
	if got := out.String(); got != "7 threads\n" {
		t.Errorf("%q", got)
	}
}
