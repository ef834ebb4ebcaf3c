package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/eventlog"
)

func (a *app) backupCommand() *cobra.Command {
	r := &remote{}
	cmd := &cobra.Command{
		Use: "backup DIR", Short: "Copy what is not derived into an empty folder", Args: cobra.ExactArgs(1),
		Long: "Copy the log, the submitted commands that wait, and the contents of files into an empty folder, as\n" +
			"JetStream's own snapshots with their digests, of all tenants. Skein may be at work meanwhile.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.backup(cmd.Context(), r, args[0]) },
	}
	r.flags(cmd)
	return cmd
}

func (a *app) restoreCommand() *cobra.Command {
	r := &remote{}
	var replicas int
	cmd := &cobra.Command{
		Use: "restore DIR", Short: "Make the streams of a backup, and check the log", Args: cobra.ExactArgs(1),
		Long: "Make the streams of a backup on a server that has none of Skein's, while no Skein runs, and check the\n" +
			"log as audit verify --log-only does: the exit code is 3 if something is wrong with it. The next Skein\n" +
			"to start makes anew what is derived.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if replicas != 0 && replicas != 1 && replicas != 3 && replicas != 5 {
				return wrongUsage("--replicas: %d; 1, 3 or 5 are possible", replicas)
			}
			return a.restore(cmd.Context(), r, args[0], replicas)
		},
	}
	r.flags(cmd)
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
	b, err := log.Backup(ctx, dir, func(stream string, bytes int64) { bar.show("%s: %d bytes", stream, bytes) })
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
	b, err := log.Restore(ctx, dir, replicas, func(stream string, bytes int64) { bar.show("%s: %d bytes", stream, bytes) })
	bar.clear()
	if err != nil {
		return err
	}
	if err := a.printBackup(r.json, b); err != nil {
		return err
	}
	return a.verify(ctx, &verification{remote: r, options: audit.Options{LogOnly: true}}, nil)
}

func (a *app) printBackup(asJSON bool, b *eventlog.Backup) error {
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
