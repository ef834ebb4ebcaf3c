package user

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
)

func (a *app) kvCommand() *cobra.Command {
	return cli.Group("kv", "Show and change key-value pairs of the tenant", a.kvGet(), a.kvSet(), a.kvRemove(), a.kvList())
}

func (a *app) kvGet() *cobra.Command {
	return remoteCommand("get BUCKET KEY", "Print the value of a key, which is JSON", cobra.ExactArgs(2),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			got, err := client.Read(ctx, c, events.GetKV{Bucket: args[0], Key: args[1]})
			switch {
			case err != nil:
				return err
			case r.JSON:
				return a.PrintJSON(got)
			case !got.Exists:
				return events.Missing("key", args[1])
			}
			_, err = fmt.Fprintln(a.Out, string(got.Value))
			return err
		})
}

func (a *app) kvSet() *cobra.Command {
	var ttl time.Duration
	cmd := remoteCommand("set BUCKET KEY JSON", "Set the value of a key", cobra.ExactArgs(3),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			value := events.JSON(args[2])
			switch {
			case !jsontext.Value(value).IsValid():
				return cli.WrongUsage("%.40q is not JSON; a text has quotes: '\"text\"'", args[2])
			case ttl%time.Second != 0:
				return cli.WrongUsage("--ttl: %v; use whole seconds, such as 90s or 24h", ttl)
			}
			reply, err := c.Send(ctx, "", events.SetKV{Bucket: args[0], Key: args[1], Value: value, TTLSeconds: int64(ttl / time.Second)})
			return a.printKV(r, reply, err)
		})
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long the key lives, in whole seconds; 0: until it is deleted")
	return cmd
}

func (a *app) kvRemove() *cobra.Command {
	var d events.DeleteKV
	var prefix string
	cmd := remoteCommand("rm BUCKET [KEY]", "Delete a key, or with --prefix the keys that begin with it", cobra.RangeArgs(1, 2),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			d.Bucket = args[0]
			if len(args) == 2 {
				d.Key = args[1]
			}
			reply, err := c.Send(ctx, "", d)
			return a.printKV(r, reply, err)
		})
	f := cmd.Flags()
	f.StringVar(&prefix, "prefix", "", "delete every key that begins with it; an empty text: every key of the bucket")
	f.BoolVar(&d.Erase, "erase", false, "also overwrite what is deleted on the disk")
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if f.Changed("prefix") {
			d.Prefix = &prefix
		}
		if (len(args) == 2) == (d.Prefix != nil) {
			return cli.WrongUsage("name a key or set --prefix, not both")
		}
		return nil
	}
	return cmd
}

// printKV prints the reply to a command of key-value pairs.
func (a *app) printKV(r *cli.Remote, reply *events.Reply, err error) error {
	switch {
	case err != nil:
		return err
	case r.JSON:
		return a.PrintJSON(reply)
	case reply.Version == 0:
		_, err = fmt.Fprintln(a.Out, "nothing to delete")
	case reply.Result != nil:
		_, err = fmt.Fprintf(a.Out, "deleted %d\n", reply.Result.Deleted)
	default:
		_, err = fmt.Fprintln(a.Out, "set")
	}
	return err
}

func (a *app) kvList() *cobra.Command {
	var q events.ListKV
	var limit int64
	var order string
	cmd := remoteCommand("list BUCKET", "List the keys of a bucket, in the order of their bytes", cobra.ExactArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			q.Bucket, q.Order = args[0], events.Order(order)
			if err := cli.Choice("--order", order, q.Order.Enum()); err != nil {
				return err
			}
			for left := cmp.Or(limit, -1); left != 0; {
				q.Limit = new(int64(1000))
				if left > 0 {
					q.Limit = new(min(left, 1000))
				}
				page, err := client.Read(ctx, c, q)
				if err != nil {
					return err
				}
				if err := a.printPairs(r.JSON, page); err != nil {
					return err
				}
				if q.Cursor = page.NextCursor; q.Cursor == "" {
					return nil
				}
				if left > 0 {
					left -= int64(len(page.Keys))
				}
			}
			return nil
		})
	f := cmd.Flags()
	f.StringVar(&q.Prefix, "prefix", "", "only the keys that begin with it")
	f.StringVar(&order, "order", "asc", "asc or desc")
	f.BoolVar(&q.Values, "values", false, "also print the value of each key, after a tab")
	f.Int64Var(&limit, "limit", 0, "at most so many; 0: all")
	return cmd
}

// pair is a line of kv list --values --json.
type pair struct {
	Key   string      `json:"key"`
	Value events.JSON `json:"value"`
}

// printPairs prints a page, a line for each key.
func (a *app) printPairs(asJSON bool, page *events.KVList) error {
	for i, key := range page.Keys {
		var err error
		switch values := page.Values != nil; {
		case asJSON && values:
			err = a.PrintJSON(pair{key, page.Values[i]})
		case asJSON:
			err = a.PrintJSON(key)
		case values:
			_, err = fmt.Fprintf(a.Out, "%s\t%s\n", key, page.Values[i])
		default:
			_, err = fmt.Fprintln(a.Out, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
