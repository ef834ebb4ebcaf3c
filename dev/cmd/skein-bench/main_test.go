package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// run runs the program within the test.
func run(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	a := newApp()
	var to, errs bytes.Buffer
	a.Out, a.Err, a.Env = &to, &errs, func(string) (string, bool) { return "", false }
	code = a.Execute(t.Context(), args, a.verbs())
	return code, to.String(), errs.String()
}

// A number without a meaning is refused before anything is measured, and the error says what the
// flag takes.
func TestUsage_NumbersWithoutAMeaning(t *testing.T) {
	for args, want := range map[string]string{
		"append --seconds -1":       "--seconds: -1; use a number above 0: duration of a case",
		"append --seconds NaN":      "--seconds: NaN; use a number above 0",
		"append --seconds Inf":      "--seconds: +Inf; use a number above 0",
		"append --seconds 0":        "--seconds: 0; use a number above 0: duration of a case",
		"append --threads -1":       "--threads: -1; use a number",
		"append --threads 0":        "--threads: 0; use a number above 0: how many threads are written",
		"append --clients 0":        "--clients: 0; use a number above 0: how many clients",
		"append --peer mongo":       `--peer "mongo": use`,
		"react --at 1,0":            "--at: 0; use a number above 0: how many turns at a time",
		"react --at 1,-16":          "--at: -16; use a number",
		"thread --events 1000,99":   "--events: 99; use numbers from 100 on",
		"neighbour --case nonsense": `--case "nonsense": use`,
		"http --case nonsense":      `--case "nonsense": use`,
		"nonsense":                  "unknown command",
		"append --secnds 1":         "did you mean --seconds?",
	} {
		code, out, err := run(t, strings.Fields(args)...)
		if code != 2 || !strings.HasPrefix(err, "skein-bench: usage: ") || !strings.Contains(err, want) || strings.Count(err, "\n") != 1 || out != "" {
			t.Errorf("skein-bench %s: exit %d: %q %q, want %q", args, code, err, out, want)
		}
	}
}

// Every measurement is described, and shows an example, which the command line takes.
func TestHelp_EveryMeasurementHasAnExample(t *testing.T) {
	a := newApp()
	root := a.Root(a.verbs())
	for _, c := range root.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s: %q, %q, examples %q", c.Name(), c.Short, c.Long, c.Example)
		}
		takes(t, root, c.Example)
	}
	if code, out, err := run(t); code != 0 || !strings.Contains(out, "skein-bench [command]") || err != "" {
		t.Errorf("alone: exit %d: %q %q", code, out, err)
	}
}

func takes(t *testing.T, root *cobra.Command, examples string) {
	t.Helper()
	for line := range strings.Lines(examples) {
		cmd, rest, err := root.Find(strings.Fields(line)[1:])
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
