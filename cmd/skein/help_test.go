package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/internal/suggest"
)

// leaves returns the commands without subcommands.
func leaves(root *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, c := range root.Commands() {
		switch {
		case c.Hidden || c.Name() == "completion" || c.Name() == "help":
		case c.HasSubCommands():
			out = append(out, leaves(c)...)
		default:
			out = append(out, c)
		}
	}
	return out
}

// Every command shows examples in its help, and each is a call that the command line
// accepts: with valid flags, values and arguments.
func TestHelp_ExamplesParse(t *testing.T) {
	t.Parallel()
	for _, c := range leaves((&app{}).root()) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
	}
	lines := 0
	for line := range strings.Lines(examples) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		lines++
		call := line[strings.LastIndex(line, "| ")+1:]
		// The shell splits it as a reader's does.
		out, err := exec.Command("sh", "-c", `skein() { for a in "$@"; do printf '%s\n' "$a"; done; }; `+call).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		args := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		cmd, rest, err := (&app{}).root().Find(args)
		if err != nil || cmd.HasSubCommands() {
			t.Errorf("%s: no such command (%v)", line, err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	shown := 0
	for _, c := range leaves((&app{}).root()) {
		shown += len(strings.Split(c.Example, "\n"))
	}
	if shown != lines {
		t.Errorf("%d examples are shown of %d", shown, lines)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"create", "get", "list", "react", "update", "status", "delete"}
	for typed, want := range map[string]string{
		"creat": "create", "crate": "create", "lits": "list", "lst": "list", "upd": "update", "DELETE": "delete", "gte": "get", "g": "",
		"reacts": "react", "nonsense": "", "": "",
	} {
		if got := suggest.Nearest(typed, known); got != want {
			t.Errorf("nearest to %q: %q, want %q", typed, got, want)
		}
	}
}
