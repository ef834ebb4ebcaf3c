package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/eventlog/backup"
	"github.com/skein-threads/skein/internal/access"
	"github.com/skein-threads/skein/internal/embedded"
)

func (a *app) backupCommand() *cobra.Command {
	r := &remote{}
	cmd := &cobra.Command{
		Use: "backup DIR", Short: "Copy what is not derived into an empty folder", Args: cobra.ExactArgs(1),
		Long: "Copy the log, the submitted commands that wait, and the contents of files into an empty folder, as\n" +
			"JetStream's own snapshots with their digests, of all tenants. Skein may be at work meanwhile.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.backup(cmd.Context(), r, args[0]) },
	}
	r.logFlags(cmd)
	return cmd
}

func (a *app) restoreCommand() *cobra.Command {
	r := &remote{}
	var replicas int
	var into, folder string
	cmd := &cobra.Command{
		Use: "restore DIR", Short: "Make the streams of a backup, and check the log", Args: cobra.ExactArgs(1),
		Long: "Make the streams of a backup on a server that has none of Skein's, while no Skein runs, and check the\n" +
			"log as audit verify --log-only does: the exit code is 3 if something is wrong with it. The next Skein\n" +
			"to start makes anew what is derived. With --store the server is one of this process, on an empty folder:\n" +
			"skein serve --store takes it from there.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if replicas != 0 && replicas != 1 && replicas != 3 && replicas != 5 {
				return wrongUsage("--replicas: %d; 1, 3 or 5 are possible", replicas)
			}
			if into == "" && folder != "" {
				return wrongUsage("--access is for --store; give --creds for a server")
			}
			if into == "" {
				return a.restore(cmd.Context(), r, args[0], replicas)
			}
			if cmd.Flags().Changed("server") || replicas > 1 {
				return wrongUsage("--store: its server is one of this process, and keeps one copy; leave --server and --replicas out")
			}
			return a.restoreStore(cmd.Context(), r, args[0], into, folder)
		},
	}
	r.logFlags(cmd)
	cmd.Flags().StringVar(&into, "store", "", "empty folder to make a store of, instead of restoring into a server")
	cmd.Flags().StringVar(&folder, "access", "", "folder of accounts and TLS that skein serve will be given, for --store")
	cmd.Flags().IntVar(&replicas, "replicas", 0, "copies of every stream: 1, 3 or 5 (default as many as there were)")
	return cmd
}

func (a *app) backup(ctx context.Context, r *remote, dir string) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	bar := a.progress()
	b, err := backup.Write(ctx, log, dir, func(stream string, bytes int64) { bar.show("%s: %d bytes", stream, bytes) })
	bar.clear()
	if err != nil {
		return err
	}
	return a.printBackup(r.json, b)
}

func (a *app) restore(ctx context.Context, r *remote, dir string, replicas int) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	bar := a.progress()
	b, err := backup.Restore(ctx, log, dir, replicas, func(stream string, bytes int64) { bar.show("%s: %d bytes", stream, bytes) })
	bar.clear()
	if err != nil {
		return err
	}
	if err := a.printBackup(r.json, b); err != nil {
		return err
	}
	return a.verify(ctx, &verification{remote: r, options: audit.Options{LogOnly: true}}, nil)
}

// restoreStore restores into a server of this process, on a folder of its own.
func (a *app) restoreStore(ctx context.Context, r *remote, dir, into, folder string) error {
	if there, err := os.ReadDir(into); err == nil && len(there) > 0 {
		return fmt.Errorf("restoring into the store %s: it holds %s; name a folder that is empty or not there", into, count(len(there), "file"))
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
	server, err := embedded.Start(o)
	if err != nil {
		return err
	}
	defer server.Shutdown()
	r.server = server.URL()
	return a.restore(ctx, r, dir, 1)
}

func (a *app) printBackup(asJSON bool, b *backup.Manifest) error {
	if asJSON {
		return a.printJSON(b)
	}
	for _, s := range b.Streams {
		if _, err := fmt.Fprintf(a.out, "%s: %d bytes, made %s\n", s.Name, s.Bytes, b.Made.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}
