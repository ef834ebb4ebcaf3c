package examples_test

import (
	"context"
	"fmt"
	"time"

	"github.com/skein-threads/skein/events"
)

// titles writes while two programs keep the table of titles, and kills them in the middle: the table
// has every thread that there is, with its title.
func (f *followed) titles() {
	want := map[string]string{}
	write := func() {
		for i := range 40 {
			made, err := f.c.Send(f.Context(), "", events.CreateThread{Title: fmt.Sprintf("title %d", i)})
			f.must(err)
			want[made.ThreadID] = fmt.Sprintf("title %d", i)
			switch i % 4 {
			case 0:
				_, err = f.c.Send(f.Context(), made.ThreadID, events.UpdateThread{Title: new("another")})
				want[made.ThreadID] = "another"
			case 1:
				_, err = f.c.Send(f.Context(), made.ThreadID, events.DeleteThread{})
				delete(want, made.ThreadID)
			}
			f.must(err)
		}
	}
	write()
	one := f.start()
	f.awaitTitles(want) // so that one of them makes the tables
	two := f.start()
	write()
	one() // a repeated INSERT of an event would end the other one
	one = f.start()
	write()
	two()
	f.awaitTitles(want)
	one()
}

// awaitTitles waits until the table has these titles.
func (f *followed) awaitTitles(want map[string]string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 5*time.Minute)
	defer cancel()
	for {
		got := map[string]string{}
		rows, err := f.db.Query(ctx, `SELECT thread, title FROM titles`)
		if err == nil {
			for rows.Next() {
				var thread, title string
				f.must(rows.Scan(&thread, &title))
				got[thread] = title
			}
			err = rows.Err()
		}
		if err == nil && fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
		select {
		case <-ctx.Done():
			f.Fatalf("%d titles, want %d; %v", len(got), len(want), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
