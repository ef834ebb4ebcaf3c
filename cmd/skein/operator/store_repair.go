package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/store"
)

// repairing holds the flags of store repair.
type repairing struct {
	offline
	server     remote
	from       []string
	acceptLoss bool
}

func (a *app) storeRepairCommand() *cobra.Command {
	o := &repairing{server: remote{Remote: cli.Remote{Timeout: logTimeout}}}
	cmd := &cobra.Command{
		Use: "repair", Short: "Repair a damaged store that is not in use", Args: cobra.NoArgs,
		Long: "Repair the streams that skein store check finds damaged. Every record that can be read keeps its\n" +
			"sequence; the others are searched for in the folders of --from: backups, copies of the store, or stores\n" +
			"of other servers of the same cluster. The files that are replaced are moved into the folder skein-aside of the\n" +
			"store, and nothing is deleted.\n\n" +
			"If something is found nowhere, nothing is changed, unless --accept-loss permits to continue without\n" +
			"it. Then the lost sequences are not used again, and everything derived is rebuilt by the\n" +
			"next skein serve, so that no read model shows what the log does not have.\n\n" +
			"With --server and --accept-loss the derived streams of a server are removed, while no Skein\n" +
			"runs: for a log on a cluster that lost its end.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cli.Given(cmd, "server") {
				return a.storeRepair(cmd.Context(), o)
			}
			if cli.Given(cmd, "store") || len(o.from) > 0 || !o.acceptLoss {
				return cli.WrongUsage("--server: the streams of a server cannot be repaired from here; use --accept-loss, and neither --store nor --from")
			}
			return a.dropDerived(cmd.Context(), o)
		},
	}
	o.offline.flags(cmd)
	cmd.Flags().StringVar(&o.server.Server, "server", "", "URL of a NATS server, for --accept-loss if skein serve runs with --nats")
	cmd.Flags().StringVar(&o.server.Creds, "creds", "", "file of NATS credentials, or of an NKey, for --server")
	cmd.Flags().StringVar(&o.server.CA, "tls-ca", "", "file of the certificate authority that signed the server's certificate")
	cmd.Flags().StringArrayVar(&o.from, "from", nil, "a backup, or another store, to restore lost records from; repeatable")
	cmd.Flags().BoolVar(&o.acceptLoss, "accept-loss", false, "continue without records that are found nowhere")
	return cmd
}

func (a *app) storeRepair(ctx context.Context, o *repairing) error {
	release, err := o.lock()
	if err != nil {
		return err
	}
	defer release()
	bar := a.Progress()
	done, err := store.Repair(ctx, store.RepairConfig{
		Config: store.Config{Dir: o.dir, Log: events.DefaultNames().Stream(assets.LogStream), Derived: isDerived, Progress: func(done, total int64) {
			bar.Bar(done, total, "%d of %d MiB", done>>20, total>>20)
		}},
		From: o.from, AcceptLoss: o.acceptLoss, Now: time.Now(),
	})
	bar.Clear()
	if err != nil {
		return err
	}
	if o.json {
		return a.PrintJSON(done)
	}
	return a.printRepair(done)
}

// dropDerived removes everything derived from a server, so that it is rebuilt.
func (a *app) dropDerived(ctx context.Context, o *repairing) error {
	log, closeLog, err := o.server.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	names, err := assets.DropDerived(ctx, log.Streams())
	if err != nil {
		return err
	}
	done := &store.Repaired{Dir: o.server.Server, Streams: []store.RepairedStream{}, Rebuild: names}
	if o.json {
		return a.PrintJSON(done)
	}
	for _, name := range names {
		if _, err := fmt.Fprintf(a.Out, "%s: removed; the next skein serve rebuilds it from the log\n", name); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printRepair(done *store.Repaired) error {
	var lines []string
	for _, s := range done.Streams {
		lines = append(lines, fmt.Sprintf("%s: %s rewritten, %d of them restored from elsewhere; it ends at %d", s.Name, cli.Count(s.Messages, "message"), s.Found, s.Last))
		for _, l := range s.Lost {
			lines = append(lines, fmt.Sprintf("%s: lost: sequences %s", s.Name, l))
		}
	}
	for _, name := range done.Rebuild {
		lines = append(lines, fmt.Sprintf("%s: moved aside; the next skein serve rebuilds it from the log", name))
	}
	switch {
	case done.Aside == "":
		lines = append(lines, "nothing is damaged, and nothing was changed")
	default:
		lines = append(lines, "what was replaced is in "+done.Aside)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return err
		}
	}
	return nil
}
