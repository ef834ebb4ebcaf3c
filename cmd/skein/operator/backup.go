package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/backup"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/operator/store"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

func (a *app) backupCommand() *cobra.Command {
	r := &remote{}
	cmd := &cobra.Command{
		Use: "backup DIR", Short: "Back up the log, submitted commands and file contents into an empty folder", Args: cobra.ExactArgs(1),
		Long: "Back up the log, the submitted commands that wait, and the contents of files into an empty folder, as\n" +
			"JetStream's own snapshots with their digests, of all tenants. Skein may be running.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.backup(cmd.Context(), r, args[0]) },
	}
	r.logFlags(cmd)
	tenantIs(cmd, "not used: a backup has all tenants")
	return cmd
}

func (a *app) restoreCommand() *cobra.Command {
	r := &remote{}
	var replicas int
	var into, folder string
	cmd := &cobra.Command{
		Use: "restore DIR", Short: "Restore a backup, and verify the log", Args: cobra.ExactArgs(1),
		Long: "Restore the streams of a backup on a server that has none of Skein's, while no Skein runs, and verify the\n" +
			"log as audit verify --log-only does: the exit code is 3 if it finds something. The next Skein\n" +
			"to start rebuilds everything derived. With --store the server runs in this process, on an empty folder:\n" +
			"start it afterwards with skein serve --store.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if replicas != 0 && replicas != 1 && replicas != 3 && replicas != 5 {
				return cli.WrongUsage("--replicas: %d; use 1, 3 or 5", replicas)
			}
			if into == "" && folder != "" {
				return cli.WrongUsage("--access is for --store; use --creds for a server")
			}
			if into == "" {
				return a.restore(cmd.Context(), r, args[0], replicas)
			}
			if cli.Given(cmd, "server") || cli.Given(cmd, "replicas") && replicas > 1 {
				return cli.WrongUsage("--store runs its server in this process, with one replica: remove --server and --replicas")
			}
			return a.restoreStore(cmd.Context(), r, args[0], into, folder)
		},
	}
	r.logFlags(cmd)
	tenantIs(cmd, "not used: a backup has all tenants")
	cmd.Flags().StringVar(&into, "store", "", "empty folder to create a store in, instead of restoring into a server")
	cmd.Flags().StringVar(&folder, "access", "", "folder of accounts and TLS that skein serve will use, for --store")
	cmd.Flags().IntVar(&replicas, "replicas", 0, "replicas of every stream: 1, 3 or 5 (default as in the backup)")
	return cmd
}

func (a *app) backup(ctx context.Context, r *remote, dir string) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	erasing, err := purging(ctx, log)
	if err != nil {
		return err
	}
	bar, begun := a.Progress(), time.Now()
	b, err := backup.Write(ctx, log, dir, func(stream string, bytes int64) { bar.Show("%s: %d bytes", stream, bytes) })
	bar.Clear()
	if refused := (*backup.FolderError)(nil); errors.As(err, &refused) {
		return err // a mistyped folder says nothing about the backups
	}
	if err != nil {
		a.report(log, backupReport(nil), begun, err)
		return err
	}
	a.report(log, backupReport(b), begun, nil)
	if erasing > 0 {
		a.Hint("%s purged and not erased yet: what was in it may be in this backup; see skein_ends_open in docs/erasure.md", cli.Count(erasing, "thread"))
	}
	return a.printBackup(r.JSON, b)
}

// purging returns how many purged threads were not erased yet.
func purging(ctx context.Context, log *eventlog.Log) (threads int, err error) {
	notes, err := log.Bucket(documents.NewModels().Of(documents.Threads).Bucket).All(ctx, buckets.DeletionPrefix+">")
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrNoResponders) {
		return 0, nil // there is no read model
	}
	for _, m := range notes {
		var d buckets.Deletion
		if json.Unmarshal(m.Data, &d) == nil && d.Purge {
			threads++
		}
	}
	return threads, err
}

func (a *app) restore(ctx context.Context, r *remote, dir string, replicas int) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	bar := a.Progress()
	b, err := backup.Restore(ctx, log, dir, replicas, func(stream string, bytes int64) { bar.Show("%s: %d bytes", stream, bytes) })
	bar.Clear()
	if err != nil {
		return err
	}
	if err := a.printBackup(r.JSON, b); err != nil {
		return err
	}
	err = a.verify(ctx, &verification{remote: r, options: audit.Options{LogOnly: true}}, nil)
	if found := (*cli.FoundError)(nil); err != nil && !errors.As(err, &found) {
		return err
	}
	// Also of a log in which something was found: it was so when it was backed up.
	return cmp.Or(backup.Finish(ctx, log), err)
}

// restoreStore restores into a server in this process, on a folder of its own.
func (a *app) restoreStore(ctx context.Context, r *remote, dir, into, folder string) error {
	if there, err := os.ReadDir(into); err == nil && len(there) > 0 {
		if err := store.Restored(into); err != nil {
			return err
		}
		return fmt.Errorf("restoring into the store %s: it contains %s; use a folder that is empty or does not exist", into, cli.Count(len(there), "file"))
	}
	o := embedded.NewOptions(into)
	o.Listen = "127.0.0.1:0"
	if folder != "" {
		with, err := access.Open(folder)
		if err != nil {
			return err
		}
		o.Conf, o.Account = with.Conf(), with.Account()
		r.Creds = filepath.Join(folder, access.SkeinCreds)
	}
	o.Prepare = func() error { return store.BeginRestore(into) }
	server, err := embedded.Start(o)
	if err != nil {
		return err
	}
	r.Server = server.URL()
	err = a.restore(ctx, r, dir, 1)
	if found := (*cli.FoundError)(nil); err != nil && !errors.As(err, &found) {
		server.Shutdown()
		return err
	}
	return cmp.Or(closeRestored(server, into), err)
}

// closeRestored ends the server of a store into which a backup was restored, and makes the
// store one that can be used.
func closeRestored(server *embedded.Server, dir string) error {
	server.Shutdown()
	release, err := embedded.LockFolder(dir)
	if err != nil {
		return err
	}
	defer release()
	return store.FinishRestore(store.Config{Dir: dir, Log: events.DefaultNames().Stream(assets.LogStream), Derived: isDerived})
}

func (a *app) printBackup(asJSON bool, b *backup.Manifest) error {
	if asJSON {
		return a.PrintJSON(b)
	}
	for _, s := range b.Streams {
		if _, err := fmt.Fprintf(a.Out, "%s: %d bytes, created %s\n", s.Name, s.Bytes, b.Made.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}
