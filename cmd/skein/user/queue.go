package user

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) queueCommand() *cobra.Command {
	return cli.Group("queue", "Show and change what waits for a thread's agent", a.queueList(), a.queueRemove(), a.queueEdit(), a.queueMove())
}

func (a *app) queueList() *cobra.Command {
	cmd := remoteCommand("list THREAD", "List what waits for a thread's agent, the next one first", cobra.ExactArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			list, err := c.ListQueue(ctx, events.ListQueue{ThreadID: args[0]})
			if err != nil {
				return err
			}
			t := a.table()
			for i := range list.Queued {
				q := &list.Queued[i]
				if r.JSON {
					if err := a.PrintJSON(q); err != nil {
						return err
					}
					continue
				}
				var item events.NewItem
				if err := json.Unmarshal(q.Item, &item); err != nil {
					return err
				}
				t.Row(q.ID, cli.OrDash(q.ExecutionID), eventtext.Brief(eventtext.Said(item.Type, item.Content), eventtext.Width))
			}
			return t.Flush()
		})
	return cmd
}

func (a *app) queueRemove() *cobra.Command {
	return a.sending("rm THREAD QUEUED", "Remove a message, or a call of a tool, from the queue", cobra.ExactArgs(2), func(args []string) (any, error) {
		return events.RemoveQueued{QueuedID: args[1]}, nil
	})
}

func (a *app) queueEdit() *cobra.Command {
	return a.sending("edit THREAD QUEUED TEXT", "Replace a waiting message of a user; it keeps its place", cobra.ExactArgs(3), func(args []string) (any, error) {
		content, err := json.Marshal([]map[string]string{{"type": "input_text", "text": args[2]}})
		if err != nil {
			return nil, err
		}
		return events.EditQueued{
			QueuedID: args[1], Item: events.NewItem{Type: events.Message, Role: events.User, Content: content},
		}, nil
	})
}

func (a *app) queueMove() *cobra.Command {
	var d events.MoveQueued
	cmd := a.sending("move THREAD QUEUED", "Move a message, or a call of a tool, within the queue", cobra.ExactArgs(2), func(args []string) (any, error) {
		d.QueuedID = args[1]
		return d, nil
	})
	cmd.Flags().StringVar(&d.Before, "before", "", "the queued id to move it before; default the end of the queue")
	return cmd
}
