package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/happened"
)

// The text of a thread must not control the terminal of its reader.
func TestPrint_RemovesTerminalControls(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[31mred\x07\u202e\r\nnext\u200b"
	for _, got := range []string{happened.Printable(evil, false), happened.Printable(evil, true), happened.Brief(evil, 100)} {
		if strings.ContainsAny(got, "\x1b\x07\r\u202e\u200b") || !strings.Contains(got, "red") || !strings.Contains(got, "next") {
			t.Errorf("%q", got)
		}
	}
	if got := happened.Brief("äöü", 2); got != "ä…" {
		t.Errorf("%q", got)
	}
}

// Every event of the catalog has a line, without colours unless requested.
func TestEventLine_EveryEvent(t *testing.T) {
	t.Parallel()
	for _, row := range events.Catalog() {
		e := events.Event{Type: row.Type, ThreadID: "T-01900000-0000-7000-8000-000000000000", Data: row.New()}
		line := eventLine(&e, false)
		if !strings.Contains(line, string(row.Type)) || strings.Contains(line, "\n") || strings.Contains(line, "\x1b") {
			t.Errorf("%q", line)
		}
		if !strings.Contains(eventLine(&e, true), "\x1b[") {
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
		a := &app{
			isTerminal: func(any) bool { return c.terminal },
			env:        func(string) (string, bool) { return c.noColour, c.noColour != "" },
		}
		if a.colour(nil) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &progress{out: &out, terminal: true}
	p.bar(1, 2, "%d threads", 7)
	p.clear()
	if got := out.String(); got != "\r\x1b[K[############............]  50%  7 threads\r\x1b[K" {
		t.Errorf("%q", got)
	}
	out.Reset()
	p = &progress{out: &out, last: time.Now()}
	p.bar(1, 0, "early")
	p.last = time.Now().Add(-time.Minute)
	p.bar(5, 0, "%d threads", 7)
	p.bar(6, 0, "too soon")
	p.clear()
	if got := out.String(); got != "7 threads\n" {
		t.Errorf("%q", got)
	}
}

// Every command that talks to a server has the flags of the contract, and every command
// and flag is described.
func TestHelp_CommandsAreDescribed(t *testing.T) {
	t.Parallel()
	a := &app{}
	alone := map[string]bool{"serve": true, "gateway": true, "demo": true, "version": true, "skein bench append": true, "skein bench react": true, "skein bench memory": true, "skein bench neighbour": true, "skein bench http": true, "skein bench thread": true, "skein bench threads": true, "skein store check": true, "skein store repair": true}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		if cmd.HasSubCommands() || cmd.Hidden {
			return
		}
		if cmd.Short == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no description", cmd.CommandPath(), f.Name)
			}
		})
		if strings.HasPrefix(cmd.CommandPath(), "skein access ") { // it works on a folder, without a server
			return
		}
		for _, name := range []string{"server", "creds", "tenant", "json", "timeout"} {
			if !alone[cmd.Name()] && !alone[cmd.CommandPath()] && cmd.Flags().Lookup(name) == nil {
				t.Errorf("%s has no --%s", cmd.CommandPath(), name)
			}
		}
	}
	walk(a.root())
}
