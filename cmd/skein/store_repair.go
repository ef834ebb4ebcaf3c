package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/store"
)

// repairing are the flags of store repair.
type repairing struct {
	offline
	from       []string
	acceptLoss bool
}

func (a *app) storeRepairCommand() *cobra.Command {
	o := &repairing{}
	cmd := &cobra.Command{
		Use: "repair", Short: "Mend a damaged store that is not in use", Args: cobra.NoArgs,
		Long: "Mend the streams that skein store check finds damaged. Every record that can be read keeps its\n" +
			"sequence; the others are looked for in the folders of --from: backups, copies of the store, or stores\n" +
			"of other servers of the same cluster. The files that are replaced are moved into the folder skein-aside of the\n" +
			"store, and nothing is thrown away.\n\n" +
			"Where something is nowhere to be found, nothing is changed, unless --accept-loss says to go on without\n" +
			"it. Then the sequences that are lost are not used again, and everything derived is made again by the\n" +
			"next skein serve, so that no read model shows what the log does not have.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.storeRepair(cmd.Context(), o) },
	}
	o.flags(cmd)
	cmd.Flags().StringArrayVar(&o.from, "from", nil, "a backup, or another store, to take from what is lost; may be repeated")
	cmd.Flags().BoolVar(&o.acceptLoss, "accept-loss", false, "go on without what is nowhere to be found")
	return cmd
}

func (a *app) storeRepair(ctx context.Context, o *repairing) error {
	release, err := o.lock()
	if err != nil {
		return err
	}
	defer release()
	bar := a.progress()
	done, err := store.Repair(ctx, store.RepairConfig{
		Config: store.Config{Dir: o.dir, Log: events.DefaultNames().Stream(eventlog.LogStream), Derived: eventlog.Config{}.Derived, Progress: func(done, total int64) {
			bar.bar(done, total, "%d of %d MiB", done>>20, total>>20)
		}},
		From: o.from, AcceptLoss: o.acceptLoss, Now: time.Now(),
	})
	bar.clear()
	if err != nil {
		return err
	}
	if o.json {
		return a.printJSON(done)
	}
	return a.printRepair(done)
}

func (a *app) printRepair(done *store.Repaired) error {
	var lines []string
	for _, s := range done.Streams {
		lines = append(lines, fmt.Sprintf("%s: %s written again, %d of them found elsewhere; it ends at %d", s.Name, count(s.Messages, "message"), s.Found, s.Last))
		for _, l := range s.Lost {
			lines = append(lines, fmt.Sprintf("%s: lost: sequences %s", s.Name, l))
		}
	}
	for _, name := range done.Rebuild {
		lines = append(lines, fmt.Sprintf("%s: moved aside; the next skein serve makes it again from the log", name))
	}
	switch {
	case done.Aside == "":
		lines = append(lines, "nothing is damaged, and nothing was changed")
	default:
		lines = append(lines, "what was replaced is in "+done.Aside)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(a.out, line); err != nil {
			return err
		}
	}
	return nil
}
