package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/skein-threads/skein/cmd/skein/cli"
)

// Of every flag with a number or a duration, negative values are refused, but where they have a
// meaning.
func TestNumbers_NegativeOnlyWhereItHasAMeaning(t *testing.T) {
	t.Parallel()
	means := map[string]bool{}
	for _, name := range []string{"tenant-rate", "tenant-inflight", "tenant-kv-mib", "tenant-fair-rate", "tenant-fair-running", "tenant-effect-rate", "workers"} {
		means["skein serve --"+name] = true
	}
	negative := map[string]string{"int": "-7", "int64": "-7", "float64": "-0.5", "intSlice": "1,-7", "duration": "-7s"}
	checked := 0
	for _, c := range leaves(root()) {
		path := c.CommandPath()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			value := negative[f.Value.Type()]
			if value == "" {
				if kind := f.Value.Type(); strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "float") || strings.HasPrefix(kind, "duration") {
					t.Errorf("%s --%s has the type %s, which is not checked", path, f.Name, kind)
				}
				return
			}
			checked++
			a := &cli.App{Env: func(string) (string, bool) { return "", false }}
			root := a.Root(verbs(a)...)
			cmd, _, err := root.Find(strings.Fields(strings.TrimPrefix(path, "skein ")))
			if err != nil {
				t.Fatal(err)
			}
			cmd.SetContext(t.Context())
			if err = cmd.Flags().Set(f.Name, value); err == nil { // a type of our own refuses it itself
				err = root.PersistentPreRunE(cmd, nil)
				if refused := err != nil && strings.HasPrefix(err.Error(), "--"+f.Name+": "); refused == means[path+" --"+f.Name] {
					t.Errorf("%s --%s %s: %v", path, f.Name, value, err)
				}
			}
			delete(means, path+" --"+f.Name)
		})
	}
	if checked < 100 || len(means) > 0 {
		t.Errorf("%d flags were checked, and not %v", checked, means)
	}
}
