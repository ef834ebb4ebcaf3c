package user

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) definitionCommand() *cobra.Command {
	return cli.Group("definition", "Show models, prompts, tools and agents; apply changes them", a.definitionList(), a.definitionGet(), a.definitionPack())
}

func (a *app) definitionList() *cobra.Command {
	var kind, cursor string
	var limit int
	cmd := reading("list", "List definitions, by kind and name", cobra.NoArgs, func(ctx context.Context, r *cli.Remote, c *client.Client, _ []string) error {
		q := events.ListDefinitions{Kind: events.DefinitionKind(kind), Bare: !r.JSON}
		if kind != "" {
			if err := cli.Choice("--kind", kind, q.Kind.Enum()); err != nil {
				return err
			}
		}
		t := a.table("KIND", "NAME", "VERSION", "CHANGED", "DIGEST")
		row := func(d *events.Definition) {
			t.Row(string(d.Kind), d.Name, strconv.FormatInt(d.Version, 10), cli.Local(d.UpdatedAt), eventtext.Brief(d.Digest, 13))
		}
		return printPages(a, r, limit, t, row, cursor, func(n int64, at string) ([]events.Definition, string, error) {
			q.Limit, q.Cursor = &n, at
			got, err := client.Read(ctx, c, q)
			if err != nil {
				return nil, "", err
			}
			return got.Definitions, got.NextCursor, nil
		})
	})
	f := cmd.Flags()
	f.StringVar(&kind, "kind", "", "only this kind: model, prompt, tool or agent")
	pageFlags(f, &cursor, &limit, 100)
	return cmd
}

func (a *app) definitionGet() *cobra.Command {
	var version int64
	cmd := reading("get KIND NAME", "Show a definition, its current or an earlier version", cobra.ExactArgs(2), func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		q := events.GetDefinition{Kind: events.DefinitionKind(args[0]), Name: args[1]}
		if err := cli.Choice("KIND", args[0], q.Kind.Enum()); err != nil {
			return err
		}
		if version > 0 {
			q.Version = &version
		}
		d, err := client.Read(ctx, c, q)
		if err != nil {
			return err
		}
		if r.JSON {
			return a.PrintJSON(d)
		}
		body := jsontext.Value(d.Definition).Clone()
		if err := body.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "%s %s, version %d of %s\n%s\n", d.Kind, d.Name, d.Version, cli.Local(d.UpdatedAt), eventtext.Printable(string(body), true))
		return err
	})
	cmd.Flags().Int64Var(&version, "version", 0, "its version, such as 3; default the current one")
	return cmd
}

func (a *app) definitionPack() *cobra.Command {
	cmd := reading("pack AGENT...", "Write agents, with the definitions they use, as a file for apply", cobra.MinimumNArgs(1), func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		values, err := PackDefinitions(ctx, c, args)
		if err != nil {
			return err
		}
		for _, v := range values {
			if r.JSON {
				if err := (*jsontext.Value)(&v).Compact(); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintf(a.Out, "%s\n", v); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Long = "Write agents with their models, prompts and tools, and the agents that these call, on standard output.\n" +
		"A tool that is not portable is refused: it depends on the process that it runs in."
	return cmd
}

func (a *app) workerCommand() *cobra.Command {
	return cli.Group("worker", "Show which reactors and tools a process serves now", a.workerList())
}

func (a *app) workerList() *cobra.Command {
	var q events.ListWorkers
	var kind string
	var limit int
	cmd := reading("list", "List who serves agents, models, reactors and tools now", cobra.NoArgs, func(ctx context.Context, r *cli.Remote, c *client.Client, _ []string) error {
		q.Kind = events.ServedKind(kind)
		if kind != "" {
			if err := cli.Choice("--kind", kind, q.Kind.Enum()); err != nil {
				return err
			}
		}
		if len(q.Names) > 0 && kind == "" {
			return cli.WrongUsage("--name: it needs --kind")
		}
		t := a.table("KIND", "NAME", "DEFINED", "SERVED BY")
		row := func(s *events.Serving) {
			defined := "yes"
			if !s.Defined {
				defined = "no"
			}
			t.Row(string(s.Kind), s.Name, defined, cli.OrDash(servedBy(s.Workers)))
		}
		return printPages(a, r, limit, t, row, q.Cursor, func(n int64, at string) ([]events.Serving, string, error) {
			q.Cursor, q.Limit = at, new(min(n, 200))
			got, err := client.Read(ctx, c, q)
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
