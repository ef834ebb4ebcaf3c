package main

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
