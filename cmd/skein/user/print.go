package user

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

// table is a [cli.Table] with the documents of threads.
type table struct{ cli.Table }

func (a *app) table(columns ...string) table { return table{a.Table(columns...)} }

// item adds the line of an item.
func (t table) item(d *events.Item) {
	t.Row(strconv.FormatInt(d.Index, 10), d.ID, eventtext.Who(d.Type, d.Role), string(d.Status), eventtext.Brief(eventtext.Said(d.Type, d.Content), 80))
}

// printThread prints one thread.
func (a *app) printThread(d *events.Thread) error {
	t := a.table()
	t.Row("thread", d.ID)
	t.Row("key", cli.OrDash(cli.KeyOf(d)))
	t.Row("status", string(d.Status))
	t.Row("version", strconv.FormatInt(d.Version, 10))
	t.Row("items", strconv.FormatInt(d.Items, 10))
	t.Row("context", d.ContextID)
	t.Row("created", cli.Local(d.CreatedAt))
	t.Row("changed", cli.Local(cmp.Or(d.UpdatedAt, d.CreatedAt)))
	for _, f := range []struct{ name, value string }{
		{"title", d.Title}, {"agent", d.AgentID}, {"user", d.UserID}, {"mode", d.AgentMode}, {"draft", d.Draft},
		{"metadata", string(d.Metadata)}, {"env", string(d.Env)},
	} {
		if f.value != "" {
			t.Row(f.name, eventtext.Brief(f.value, 200))
		}
	}
	if d.Archived {
		t.Row("archived", "yes")
	}
	return t.Flush()
}

// printItem prints one item, with its whole text.
func (a *app) printItem(d *events.Item) error {
	t := a.table()
	t.Row("item", d.ID)
	t.Row("thread", d.ThreadID)
	t.Row("place", strconv.FormatInt(d.Index, 10))
	t.Row("who", eventtext.Who(d.Type, d.Role))
	t.Row("status", string(d.Status))
	t.Row("created", cli.Local(d.CreatedAt))
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "\n%s\n", eventtext.Printable(eventtext.Said(d.Type, d.Content), true))
	return err
}

// printReply prints the reply to a command.
func (a *app) printReply(r *cli.Remote, reply *events.Reply, err error) error {
	if err != nil {
		return err
	}
	if r.JSON {
		return a.PrintJSON(reply)
	}
	made := ""
	if reply.Result != nil && reply.Result.ItemID != "" {
		made = " " + reply.Result.ItemID
	}
	_, err = fmt.Fprintf(a.Out, "%s%s version %d\n", reply.ThreadID, made, reply.Version)
	return err
}

// pageFlags adds the flags of a command that prints pages: where to begin, and how many.
func pageFlags(f *pflag.FlagSet, cursor *string, limit *int, usual int) {
	f.StringVar(cursor, "cursor", "", "cursor of the previous page")
	f.IntVar(limit, "limit", usual, "maximum number; 0 for all")
	cli.MayBeZero(f, "limit")
}

// page is the maximum size of a page of a query.
const page = 1000

// printPages requests pages up to a limit (0: all) or the end, and prints them: one
// line of JSON for each entry, or the rows of a table. If there are more, it prints the
// cursor.
func printPages[T any](a *app, r *cli.Remote, limit int, t table, row func(*T), cursor string, next func(n int64, cursor string) ([]T, string, error)) error {
	for shown := 0; limit == 0 || shown < limit; {
		want := int64(page)
		if limit > 0 {
			want = int64(min(page, limit-shown))
		}
		got, more, err := next(want, cursor)
		if err != nil {
			return err
		}
		for i := range got {
			if r.JSON {
				if err := a.PrintJSON(&got[i]); err != nil {
					return err
				}
				continue
			}
			row(&got[i])
		}
		shown += len(got)
		if cursor = more; cursor == "" {
			break
		}
	}
	if !r.JSON {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if cursor != "" {
		a.Hint("there are more: --cursor %s", cursor)
	}
	return nil
}
