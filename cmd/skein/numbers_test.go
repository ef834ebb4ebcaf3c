package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/skein-threads/skein/cmd/skein/cli"
)

// A flag refuses the numbers that have no meaning for it: negative ones, and 0 where that is not
// its default.
func TestNumbers_OnlyThoseWithAMeaning(t *testing.T) {
	t.Parallel()
	const serve = "skein serve --"
	for _, c := range []struct {
		values map[string]string // by the type of a flag
		means  []string          // the flags that accept them
		least  int               // how many flags are checked at least
	}{
		{map[string]string{"int": "-7", "int64": "-7", "float64": "-0.5", "intSlice": "1,-7", "duration": "-7s"}, []string{
			serve + "tenant-rate", serve + "tenant-inflight", serve + "tenant-kv-mib", serve + "tenant-fair-rate", serve + "tenant-fair-running", serve + "tenant-effect-rate", serve + "workers",
		}, 100},
		{map[string]string{"int": "0", "int64": "0", "float64": "0", "intSlice": "1,0", "duration": "0s"}, []string{
			"skein approval list --limit", "skein definition list --limit", "skein run list --limit", "skein thread list --limit", "skein worker list --limit", "skein size --limit",
			"skein archive --idle", "skein thread freeze --idle", "skein files gc --grace", "skein message list --max-depth",
		}, 50},
	} {
		var accepted []string
		checked := 0
		for _, leaf := range leaves(root()) {
			leaf.Flags().VisitAll(func(f *pflag.Flag) {
				value := c.values[f.Value.Type()]
				switch kind := f.Value.Type(); {
				case value == "" && (strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "float") || strings.HasPrefix(kind, "duration")):
					t.Errorf("%s --%s has the type %s, which is not checked", leaf.CommandPath(), f.Name, kind)
				case value == "" || value == f.DefValue || f.DefValue == "[]":
				default:
					checked++
					if accepts(t, leaf.CommandPath(), f.Name, value) {
						accepted = append(accepted, leaf.CommandPath()+" --"+f.Name)
					}
				}
			})
		}
		slices.Sort(accepted)
		slices.Sort(c.means)
		if checked < c.least || !slices.Equal(accepted, c.means) {
			t.Errorf("%d flags were checked for %v, and accepted by %q, want %q", checked, c.values, accepted, c.means)
		}
	}
}

// accepts reports whether a command accepts the value of a flag, before it runs.
func accepts(t *testing.T, path, name, value string) bool {
	t.Helper()
	a := &cli.App{Env: func(string) (string, bool) { return "", false }}
	root := a.Root(verbs(a)...)
	cmd, _, err := root.Find(strings.Fields(strings.TrimPrefix(path, "skein ")))
	if err != nil {
		t.Fatal(err)
	}
	cmd.SetContext(t.Context())
	if cmd.Flags().Set(name, value) != nil { // a type of our own refuses it itself
		return false
	}
	err = root.PersistentPreRunE(cmd, nil)
	return err == nil || !strings.HasPrefix(err.Error(), "--"+name+": ")
}
