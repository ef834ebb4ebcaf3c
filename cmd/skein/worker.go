package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

func (a *app) workerCommand() *cobra.Command {
	return group("worker", "Show which reactors and tools a process serves now", a.workerList())
}

func (a *app) workerList() *cobra.Command {
	var q events.ListWorkers
	var kind string
	var limit int
	cmd := reading("list", "List who serves agents, models, reactors and tools now", cobra.NoArgs, func(ctx context.Context, r *remote, c *client.Client, _ []string) error {
		q.Kind = events.ServedKind(kind)
		if kind != "" {
			if err := choice("--kind", kind, q.Kind.Enum()); err != nil {
				return err
			}
		}
		if len(q.Names) > 0 && kind == "" {
			return wrongUsage("--name: it needs --kind")
		}
		t := a.table("KIND", "NAME", "DEFINED", "SERVED BY")
		row := func(s *events.Serving) {
			defined := "yes"
			if !s.Defined {
				defined = "no"
			}
			t.row(string(s.Kind), s.Name, defined, orDash(servedBy(s.Workers)))
		}
		return printPages(a, r, limit, t, row, q.Cursor, func(n int64, at string) ([]events.Serving, string, error) {
			q.Cursor, q.Limit = at, new(min(n, 200))
			got, err := c.ListWorkers(ctx, q)
			if err != nil {
				return nil, "", err
			}
			return got.Serving, got.NextCursor, nil
		})
	})
	f := cmd.Flags()
	f.StringVar(&kind, "kind", "", "only this kind: "+strings.Join(q.Kind.Enum(), ", "))
	f.StringSliceVar(&q.Names, "name", nil, "only these; needs --kind")
	pageFlags(f, &q.Cursor, &limit, 100)
	return cmd
}

// servedBy describes who serves something.
func servedBy(list []events.Worker) string {
	var all []string
	for _, w := range list {
		text := string(w.Kind) + " " + w.Name + ": "
		switch {
		case w.State == events.WorkerAbsent:
			text += "nobody"
		case w.State == events.WorkerUnchecked:
			text += string(w.Place) + ", not checked"
		case w.Place == events.ServerPlace:
			text += "the server"
		default:
			text += "a process on NATS"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}
