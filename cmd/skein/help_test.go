package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/internal/suggest"
)

// root returns the command skein, to look at.
func root() *cobra.Command {
	a := &cli.App{}
	return a.Root(verbs(a)...)
}

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
	for _, c := range leaves(root()) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
	}
	lines := 0
	var examples strings.Builder
	for _, v := range verbs(&cli.App{}) {
		examples.WriteString(v.Examples + "\n")
	}
	for line := range strings.Lines(examples.String()) {
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
		cmd, rest, err := root().Find(args)
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
	for _, c := range leaves(root()) {
		shown += len(strings.Split(c.Example, "\n"))
	}
	if shown != lines {
		t.Errorf("%d examples are shown of %d", shown, lines)
	}
}

// Every command that talks to a server has the flags of the contract, and every command
// and flag is described.
func TestHelp_CommandsAreDescribed(t *testing.T) {
	t.Parallel()
	alone := map[string]bool{"serve": true, "gateway": true, "demo": true, "version": true, "skein store check": true, "skein store repair": true}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		if cmd.HasSubCommands() || cmd.Hidden || cmd.Name() == "help" || cmd.Parent().Name() == "completion" {
			return
		}
		if cmd.Short == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no description", cmd.CommandPath(), f.Name)
			}
			if variable := "SKEIN_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")); strings.Contains(f.Usage, "required") && !strings.Contains(f.Usage, variable) {
				t.Errorf("%s --%s: %q, but %s serves", cmd.CommandPath(), f.Name, f.Usage, variable)
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
	walk(root())
}

// The help of a command calls --tenant required if, and only if, it does nothing without one.
func TestHelp_SaysWhetherATenantIsRequired(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, c := range leaves(root()) {
		tenant := c.Flags().Lookup("tenant")
		if tenant == nil || c.Flags().Lookup("server") == nil {
			continue
		}
		checked++
		example, _, _ := strings.Cut(c.Example, "\n")
		call := example[strings.LastIndex(example, "| ")+1:]
		call = strings.NewReplacer(" --all-tenants", "", " --tenant acme", "").Replace(call)
		out, err := exec.Command("sh", "-c", `skein() { for a in "$@"; do printf '%s\n' "$a"; done; }; `+call).Output()
		if err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		var said strings.Builder
		a := &cli.App{In: strings.NewReader("{}"), Out: io.Discard, Err: &said, IsTerminal: func(any) bool { return false }}
		a.Env = func(name string) (string, bool) { return "nats://127.0.0.1:1", name == "SKEIN_SERVER" }
		a.Execute(t.Context(), strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), verbs(a)...)
		if strings.Contains(tenant.Usage, "required") != strings.Contains(said.String(), "a tenant is required") {
			t.Errorf("%s --tenant: %q, and without it: %s", c.CommandPath(), tenant.Usage, said.String())
		}
	}
	if checked < 80 {
		t.Errorf("only %d commands were checked", checked)
	}
}

// Help is the same each time: a flag's default that is a map is written in order.
func TestHelp_SameEachTime(t *testing.T) {
	t.Parallel()
	for _, c := range leaves(root()) {
		first := c.UsageString()
		for range 5 {
			again, _, err := root().Find(strings.Fields(c.CommandPath())[1:])
			if err != nil {
				t.Fatal(err)
			}
			if got := again.UsageString(); got != first {
				t.Errorf("%s: its help is\n%s\nand then\n%s", c.CommandPath(), first, got)
				break
			}
		}
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
