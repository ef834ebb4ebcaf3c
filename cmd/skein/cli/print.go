package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

// Table prints columns for people.
type Table struct{ w *tabwriter.Writer }

// Table returns a table with these columns' names at its top, or without a top.
func (a *App) Table(columns ...string) Table {
	t := Table{tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)}
	if len(columns) > 0 {
		t.Row(columns...)
	}
	return t
}

// Row adds a line. Write errors show when the table is flushed.
func (t Table) Row(cells ...string) {
	_, _ = fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

// Flush prints the table.
func (t Table) Flush() error { return t.w.Flush() }

// Thread adds the line of a thread.
func (t Table) Thread(d *events.Thread) {
	t.Row(d.ID, OrDash(KeyOf(d)), string(d.Status), strconv.FormatInt(d.Version, 10), strconv.FormatInt(d.Items, 10),
		Local(cmp.Or(d.UpdatedAt, d.CreatedAt)), eventtext.Brief(d.Title, 40))
}

// KeyOf returns the key of a thread, safe to print.
func KeyOf(d *events.Thread) string {
	if d.Key == nil {
		return ""
	}
	return eventtext.Printable(*d.Key, false)
}

// OrDash returns a text, or a dash in its place if it is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Count returns a number with its noun, which ends in s if there is not one of it.
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		noun = stem + "ie"
	}
	return fmt.Sprint(n, " ", noun, "s")
}

// Local returns a document's time in the local time zone.
func Local(iso string) string {
	t, err := events.ParseTime(iso)
	if err != nil {
		return OrDash(iso)
	}
	return t.Go().In(time.Local).Format("2006-01-02 15:04:05")
}

// Hint prints a message for people that is not part of the result.
func (a *App) Hint(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Err, format+"\n", args...)
}

// Colour reports whether a stream may have colours.
func (a *App) Colour(stream any) bool {
	none, set := a.Env("NO_COLOR")
	return a.IsTerminal(stream) && !(set && none != "")
}

// PrintSummary prints the totals of an import.
func (a *App) PrintSummary(asJSON bool, s ImportSummary) error {
	if asJSON {
		return a.PrintJSON(s)
	}
	t := a.Table("CONVERSATIONS", "TURNS", "ITEMS", "TOOL CALLS", "EVENTS", "SECONDS")
	t.Row(strconv.Itoa(s.Conversations), strconv.Itoa(s.Turns), strconv.Itoa(s.Items), strconv.Itoa(s.ToolCalls),
		strconv.Itoa(s.Events), strconv.FormatFloat(s.Seconds, 'f', 2, 64))
	if err := t.Flush(); err != nil {
		return err
	}
	if s.Unchanged > 0 {
		_, err := fmt.Fprintf(a.Out, "unchanged: %s\n", Count(s.Unchanged, "conversation"))
		return err
	}
	return nil
}
