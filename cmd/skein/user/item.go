package user

import (
	"context"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
)

func (a *app) itemCommand() *cobra.Command {
	return cli.Group("item", "Add and show the items of threads", a.itemAdd(), a.itemGet(), a.itemList())
}

func (a *app) itemAdd() *cobra.Command {
	var d events.CreateItem
	var kind, role, status, channel, commandID string
	var content, metadata jsonFlag
	cmd := remoteCommand("add THREAD [TEXT]", "Add an item to a thread", cobra.RangeArgs(1, 2),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			d.Item.Type, d.Item.Role, d.Item.Status = events.ItemType(kind), events.Role(role), events.ItemStatus(status)
			d.Item.Channel, d.Item.Metadata, d.Item.Content = events.Channel(channel), metadata.value(), content.value()
			if err := a.fillItem(&d.Item, args[1:]); err != nil {
				return err
			}
			reply, err := c.Send(ctx, args[0], d, client.CommandID(commandID))
			return a.printReply(r, reply, err)
		})
	cmd.Long = "Add an item to a thread. TEXT is the text of a message; - reads it from standard input.\n" +
		"Other items have --content."
	f := cmd.Flags()
	f.StringVar(&d.Item.ID, "id", "", "the id; default generated")
	f.StringVar(&d.ContextID, "context", "", "the context; default the thread's default context")
	f.StringVar(&kind, "type", string(events.Message), "message, action_execute, action_result or item_reference")
	f.StringVar(&role, "role", "", "the role: user (default), assistant, system or developer")
	f.StringVar(&status, "status", "", "the initial status: stored (default), pending or completed")
	f.StringVar(&channel, "channel", "", "the channel: web, whatsapp or email")
	f.StringVar(&d.Item.ParentItemID, "parent", "", "the parent item")
	f.Var(&content, "content", "the content as JSON, instead of TEXT")
	f.Var(&metadata, "metadata", "your own fields: a JSON object")
	f.StringVar(&commandID, "command-id", "", "makes retries safe: within 24 hours a repeated id returns the first reply")
	return cmd
}

// fillItem sets the role and content of an item from the arguments.
func (a *app) fillItem(item *events.NewItem, text []string) error {
	if err := choices(
		choiceOf{"--type", string(item.Type), item.Type.Enum()}, choiceOf{"--role", string(item.Role), item.Role.Enum()},
		choiceOf{"--status", string(item.Status), item.Status.Enum()}, choiceOf{"--channel", string(item.Channel), item.Channel.Enum()},
	); err != nil {
		return err
	}
	if item.Type == events.Message && item.Role == "" {
		item.Role = events.User
	}
	switch {
	case len(text) == 0 && item.Content == nil:
		return cli.WrongUsage("an item needs TEXT or --content")
	case len(text) == 0:
		return nil
	case item.Content != nil:
		return cli.WrongUsage("use TEXT or --content, not both")
	case item.Type != events.Message:
		return cli.WrongUsage("TEXT is for messages; use --content")
	}
	said, err := a.text(text[0])
	if err != nil {
		return err
	}
	kind := events.InputText
	if item.Role == events.Assistant {
		kind = events.OutputText
	}
	part := struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{kind, said}
	raw, err := json.Marshal([]any{part})
	if err != nil {
		return cli.WrongUsage("TEXT: %v", err)
	}
	item.Content = events.JSON(raw)
	return nil
}

// text returns the text of an argument; - reads standard input.
func (a *app) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	raw, err := io.ReadAll(io.LimitReader(a.In, events.MaxPayload))
	return strings.TrimSuffix(string(raw), "\n"), err
}

func (a *app) itemGet() *cobra.Command {
	var at string
	cmd := reading("get [THREAD] ITEM", "Show an item, now or at an earlier point", cobra.RangeArgs(1, 2), func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		q := events.GetItem{ItemID: args[len(args)-1]}
		if len(args) == 2 {
			q.ThreadID = args[0]
		}
		var err error
		if q.At, err = parseAt(at); err != nil {
			return err
		}
		item, err := client.Read(ctx, c, q)
		if err != nil {
			return err
		}
		if r.JSON {
			return a.PrintJSON(item)
		}
		return a.printItem(item)
	})
	cmd.Flags().StringVar(&at, "at", "", "at this version or time of THREAD")
	return cmd
}

func (a *app) itemList() *cobra.Command {
	var q events.ListItems
	var kind, order, at string
	var limit int
	cmd := reading("list THREAD", "List the items of a thread", cobra.ExactArgs(1), func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		q.ThreadID, q.Type, q.Order = args[0], events.ItemType(kind), events.Order(order)
		if kind != "" {
			if err := cli.Choice("--type", kind, q.Type.Enum()); err != nil {
				return err
			}
		}
		if err := cli.Choice("--order", order, q.Order.Enum()); err != nil {
			return err
		}
		var err error
		if q.At, err = parseAt(at); err != nil {
			return err
		}
		return a.listItems(ctx, r, c, q, limit)
	})
	f := cmd.Flags()
	f.StringVar(&q.ContextID, "context", "", "only this context")
	f.StringVar(&kind, "type", "", "only this type")
	f.StringVar(&order, "order", "asc", "asc (oldest first) or desc")
	f.StringVar(&at, "at", "", "at this version or time of the thread")
	pageFlags(f, &q.Cursor, &limit, 0)
	return cmd
}

// listItems prints pages of items up to a limit.
func (a *app) listItems(ctx context.Context, r *cli.Remote, c *client.Client, q events.ListItems, limit int) error {
	t := a.table("INDEX", "ITEM", "WHO", "STATUS", "WHAT")
	return printPages(a, r, limit, t, t.item, q.Cursor, func(n int64, cursor string) ([]events.Item, string, error) {
		q.Limit, q.Cursor = &n, cursor
		got, err := client.Read(ctx, c, q)
		if err != nil {
			return nil, "", err
		}
		return got.Items, got.NextCursor, nil
	})
}
