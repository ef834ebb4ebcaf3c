package operator

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/operator/store"
	"github.com/skein-threads/skein/server"
)

func (a *app) storeCommand() *cobra.Command {
	return cli.Group("store", "Check and repair the store of an embedded server", a.storeCheckCommand(), a.storeRepairCommand())
}

// offline holds the flags of a command that works on the files of a store.
type offline struct {
	dir  string
	json bool
}

func (o *offline) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dir, "store", server.DefaultStore, "folder of the embedded nats-server")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
}

// lock locks the store, as serve does: one process at a time may use it.
func (o *offline) lock() (release func(), err error) {
	if _, err := os.Stat(o.dir); err != nil {
		return nil, cli.WrongUsage("--store: %v", err)
	}
	return embedded.LockFolder(o.dir)
}

func (a *app) storeCheckCommand() *cobra.Command {
	o := &offline{}
	cmd := &cobra.Command{
		Use: "check", Short: "Check every block of a store that is not in use", Args: cobra.NoArgs,
		Long: "Read every block of every stream of a store, and compare the end of each stream with the one that Skein\n" +
			"recorded. No Skein may use the store meanwhile; nothing is changed. Unreadable data is reported with its\n" +
			"file, its offset, and the sequences that may be lost. The exit code is 3 if there is any.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.storeCheck(cmd.Context(), o) },
	}
	o.flags(cmd)
	return cmd
}

func (a *app) storeCheck(ctx context.Context, o *offline) error {
	release, err := o.lock()
	if err != nil {
		return err
	}
	defer release()
	bar := a.Progress()
	r, err := store.Check(ctx, store.Config{Dir: o.dir, Log: events.DefaultNames().Stream(assets.LogStream), Derived: isDerived, Progress: func(done, total int64) {
		bar.Bar(done, total, "%d of %d MiB", done>>20, total>>20)
	}})
	bar.Clear()
	if err != nil {
		return err
	}
	if err := a.printCheck(o, r); err != nil {
		return err
	}
	if n := len(r.Damages); n > 0 {
		return cli.Found("%s in the store %s; repair it with: skein store repair --store %s", cli.Count(n, "damage"), o.dir, o.dir)
	}
	return nil
}

func (a *app) printCheck(o *offline, r *store.Report) error {
	if o.json {
		return a.PrintJSON(r)
	}
	for _, s := range r.Streams {
		derived := ""
		if s.Derived {
			derived = ", derived"
		}
		if s.Skipped != "" {
			derived += ", not read: " + s.Skipped
		}
		if _, err := fmt.Fprintf(a.Out, "%s: %s of %s, sequences %d to %d, %d bytes%s\n",
			s.Name, cli.Count(s.Messages, "message"), cli.Count(s.Blocks, "block"), s.First, s.Last, s.Bytes, derived); err != nil {
			return err
		}
	}
	for _, d := range r.Damages {
		if _, err := fmt.Fprintf(a.Out, "damaged: %s\n", d); err != nil {
			return err
		}
	}
	return nil
}

// isDerived reports whether a stream of an offline store can be rebuilt from the log.
func isDerived(stream string) bool { return assets.Derived(events.DefaultNames(), stream) }
