package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/happened"
)

// table prints columns for people.
type table struct{ w *tabwriter.Writer }

func (a *app) table(columns ...string) table {
	t := table{tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)}
	t.row(columns...)
	return t
}

// row adds a line. Write errors show when the table is flushed.
func (t table) row(cells ...string) {
	_, _ = fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

func (t table) flush() error { return t.w.Flush() }

func (t table) thread(d *events.Thread) {
	t.row(d.ID, orDash(keyOf(d)), string(d.Status), strconv.FormatInt(d.Version, 10), strconv.FormatInt(d.Items, 10),
		local(changed(d.UpdatedAt, d.CreatedAt)), happened.Brief(d.Title, 40))
}

func (t table) item(d *events.Item) {
	t.row(strconv.FormatInt(d.Index, 10), d.ID, happened.Who(d.Type, d.Role), string(d.Status), happened.Brief(happened.Said(d.Type, d.Content), 80))
}

// printThread prints one thread.
func (a *app) printThread(d *events.Thread) error {
	t := table{tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)}
	t.row("thread", d.ID)
	t.row("key", orDash(keyOf(d)))
	t.row("status", string(d.Status))
	t.row("version", strconv.FormatInt(d.Version, 10))
	t.row("items", strconv.FormatInt(d.Items, 10))
	t.row("context", d.ContextID)
	t.row("created", local(d.CreatedAt))
	t.row("changed", local(changed(d.UpdatedAt, d.CreatedAt)))
	for _, f := range []struct{ name, value string }{
		{"title", d.Title}, {"agent", d.AgentID}, {"user", d.UserID}, {"mode", d.AgentMode}, {"draft", d.Draft},
		{"metadata", string(d.Metadata)}, {"env", string(d.Env)},
	} {
		if f.value != "" {
			t.row(f.name, happened.Brief(f.value, 200))
		}
	}
	if d.Archived {
		t.row("archived", "yes")
	}
	return t.flush()
}

// printItem prints one item, with its whole text.
func (a *app) printItem(d *events.Item) error {
	t := table{tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)}
	t.row("item", d.ID)
	t.row("thread", d.ThreadID)
	t.row("place", strconv.FormatInt(d.Index, 10))
	t.row("who", happened.Who(d.Type, d.Role))
	t.row("status", string(d.Status))
	t.row("created", local(d.CreatedAt))
	if err := t.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "\n%s\n", happened.Printable(happened.Said(d.Type, d.Content), true))
	return err
}

func keyOf(d *events.Thread) string {
	if d.Key == nil {
		return ""
	}
	return happened.Printable(*d.Key, false)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func changed(updated, created string) string {
	if updated == "" {
		return created
	}
	return updated
}

// count returns a number with its noun, which ends in s if there is not one of it.
func count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		noun = stem + "ie"
	}
	return fmt.Sprint(n, " ", noun, "s")
}

// local returns a document's time in the local time zone.
func local(iso string) string {
	t, err := events.ParseTime(iso)
	if err != nil {
		return orDash(iso)
	}
	return t.Go().In(time.Local).Format("2006-01-02 15:04:05")
}

// hint prints a message for people that is not part of the result.
func (a *app) hint(format string, args ...any) {
	_, _ = fmt.Fprintf(a.err, format+"\n", args...)
}

// colour reports whether a stream may have colours.
func (a *app) colour(stream any) bool {
	none, set := a.env("NO_COLOR")
	return a.isTerminal(stream) && !(set && none != "")
}

// printPages requests pages up to a limit (0: all) or the end, and prints them: one
// line of JSON for each entry, or the rows of a table. If there are more, it prints the
// cursor.
func printPages[T any](a *app, r *remote, limit int, t table, row func(*T), cursor string, next func(n int64, cursor string) ([]T, string, error)) error {
	if limit < 0 {
		return wrongUsage("--limit: %d; use a positive number, or 0 for all", limit)
	}
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
			if r.json {
				if err := a.printJSON(&got[i]); err != nil {
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
	if !r.json {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if cursor != "" {
		a.hint("there are more: --cursor %s", cursor)
	}
	return nil
}
