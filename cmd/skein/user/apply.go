package user

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
	"github.com/skein-threads/skein/schema"
)

func (a *app) applyCommand() *cobra.Command {
	var files []string
	var o manifestOptions
	cmd := remoteCommand("apply -f FILE", "Apply definitions of models, prompts, tools and agents from files", cobra.NoArgs,
		func(ctx context.Context, r *cli.Remote, c *client.Client, _ []string) error {
			if len(files) == 0 {
				return cli.WrongUsage("apply needs -f FILE; - is standard input")
			}
			entries, err := a.readManifests(files)
			if err != nil {
				return err
			}
			if o.Prune && len(entries) == 0 {
				return events.Errorf(events.InvalidRequest, "the files have no definitions: --prune would remove all definitions of the tenant")
			}
			outcomes, err := applyManifest(ctx, c, entries, o)
			if err != nil {
				return err
			}
			return a.printOutcomes(r, outcomes, o.DryRun)
		})
	cmd.Long = "Apply definitions of models, prompts, tools and agents from files: YAML or JSON, any number of definitions in each.\n" +
		"All of them are applied, or none. Unchanged definitions are skipped, so applying again changes nothing."
	f := cmd.Flags()
	f.StringArrayVarP(&files, "file", "f", nil, "file of definitions; - is standard input; repeatable")
	f.BoolVar(&o.Prune, "prune", false, "remove every definition of the tenant that is not in the files")
	f.BoolVar(&o.DryRun, "dry-run", false, "only show what would change")
	return cmd
}

// manifestBytes is the limit of one file.
const manifestBytes = 4 * events.MaxPayload

// readManifests reads files of definitions, and validates them as the server does.
func (a *app) readManifests(files []string) ([]manifestEntry, error) {
	validator, err := schema.New()
	if err != nil {
		return nil, err
	}
	var entries []manifestEntry
	for _, name := range files {
		raw, err := a.readFile(name)
		if err != nil {
			return nil, err
		}
		if name == "-" {
			name = "stdin"
		}
		list, err := readManifest(name, raw)
		if err != nil {
			return nil, err
		}
		entries = append(entries, list...)
	}
	return entries, checkManifest(validator, entries)
}

func (a *app) readFile(name string) ([]byte, error) {
	in := a.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, manifestBytes+1))
	if err == nil && len(raw) > manifestBytes {
		err = events.Errorf(events.PayloadTooLarge, "%s has more than %d bytes", name, manifestBytes)
	}
	return raw, err
}

// shownChanges is how many changes of one definition are printed for people.
const shownChanges = 12

// printOutcomes prints the outcome of each definition: one line of JSON each, or for
// people the changed ones and totals.
func (a *app) printOutcomes(r *cli.Remote, outcomes []manifestOutcome, dry bool) error {
	if r.JSON {
		for i := range outcomes {
			if err := a.PrintJSON(&outcomes[i]); err != nil {
				return err
			}
		}
		return nil
	}
	count := map[events.DefinitionOutcome]int{}
	for _, o := range outcomes {
		count[o.Outcome]++
		sign := map[events.DefinitionOutcome]string{events.DefinitionAdded: "+", events.DefinitionUpdated: "~", events.DefinitionRemoved: "-"}[o.Outcome]
		if sign == "" {
			continue
		}
		if _, err := fmt.Fprintf(a.Out, "%s %s %s, version %d\n", sign, o.Kind, o.Name, o.Version); err != nil {
			return err
		}
		for i, c := range o.Changes {
			if i == shownChanges {
				_, _ = fmt.Fprintf(a.Out, "    and %d more\n", len(o.Changes)-i)
				break
			}
			_, _ = fmt.Fprintf(a.Out, "    %s: %s -> %s\n", eventtext.Brief(c.Path, 80), side(c.From), side(c.To))
		}
	}
	if count[manifestUnchanged] == len(outcomes) {
		_, err := fmt.Fprintf(a.Out, "no changes: all %d definitions are up to date\n", len(outcomes))
		return err
	}
	would := ""
	if dry {
		would = "dry run, nothing was written: "
	}
	_, err := fmt.Fprintf(a.Out, "%s%d added, %d changed, %d removed, %d unchanged\n", would,
		count[events.DefinitionAdded], count[events.DefinitionUpdated], count[events.DefinitionRemoved], count[manifestUnchanged])
	return err
}

// side returns one side of a change.
func side(v events.JSON) string {
	if v == nil {
		return "(nothing)"
	}
	return eventtext.Brief(string(v), 60)
}
