package user

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
)

func (a *app) tailCommand() *cobra.Command {
	var o client.SubscribeOptions
	var from string
	follow := true
	cmd := remoteCommand("tail [THREAD]", "Show events as they happen, or from the beginning", cobra.MaximumNArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			o.History = !follow
			var err error
			if o.From, err = parseFrom(from, follow); err != nil {
				return err
			}
			if len(args) == 1 {
				if o.Thread, err = threadID(ctx, c, args[0]); err != nil {
					return err
				}
			}
			return a.tail(ctx, r, c, o)
		})
	cmd.Long = "Show events, each once and in order. --from start shows the whole history and continues live;\n" +
		"a number, or an id of GET /api/events, starts with that commit of the log. Interrupt to stop."
	f := cmd.Flags()
	f.StringSliceVar(&o.Types, "type", nil, "only these events: item.created, or item.* for all of an entity (repeatable)")
	f.StringVar(&from, "from", "", "start, now, a sequence of the log, or an id of GET /api/events (default now; start with --follow=false)")
	f.BoolVar(&follow, "follow", true, "wait for new events; with =false, stop at the end of the log")
	f.BoolVar(&o.Chunks, "chunks", false, "also the chunks that executions stream, live")
	f.BoolVar(&o.Aggregates, "all", false, "also events that belong to no thread: claims of keys, refused commands")
	return cmd
}

// parseFrom parses the position where a tail starts.
func parseFrom(text string, follow bool) (client.Position, error) {
	switch text {
	case "":
		if follow {
			return client.Now(), nil
		}
		return client.Start(), nil
	case "start":
		return client.Start(), nil
	case "now":
		return client.Now(), nil
	}
	p, ok := events.ParsePosition(text)
	if !ok || p.Seq < 1 {
		return client.Position{}, cli.WrongUsage("--from: %q; use start, now, a sequence of the log, or an id of GET /api/events", text)
	}
	return client.At(p), nil
}

// threadID returns the id of a thread that may be named by its key.
func threadID(ctx context.Context, c *client.Client, ref string) (string, error) {
	id, key := events.ThreadRef(ref)
	switch {
	case key == "" && !events.ValidThreadID(id):
		return "", cli.WrongUsage("%.80q is not a thread's id; a thread's key is written key:KEY", ref)
	case key == "":
		return id, nil
	}
	t, err := client.Read(ctx, c, events.GetThread{ThreadID: ref})
	if err != nil {
		return "", err
	}
	return t.ID, nil
}

// tail prints events until the history or the program ends.
func (a *app) tail(ctx context.Context, r *cli.Remote, c *client.Client, o client.SubscribeOptions) error {
	t, err := c.Timeline(ctx, o)
	if events.HasCode(err, events.InvalidRequest) {
		return cli.WrongUsage("%s", events.AsError(err).Message)
	}
	if err != nil {
		return err
	}
	defer t.Close()
	colour := a.Colour(a.Out)
	for {
		e, err := t.Next(ctx)
		var broken *events.BrokenError
		switch {
		case errors.Is(err, client.ErrEnd), ctx.Err() != nil && !o.History: // a history was cut off then
			return nil
		case errors.As(err, &broken):
			a.Hint("skein: %v", err)
			continue
		case err != nil:
			return err
		case r.JSON:
			_, err = a.Out.Write(append(e.Raw(), '\n'))
		default:
			_, err = fmt.Fprintln(a.Out, cli.EventLine(&e.Event, colour))
		}
		if err != nil {
			return err
		}
	}
}
