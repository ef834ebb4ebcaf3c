package console

import (
	"cmp"
	"sync"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// runs is the page with the runs of all threads.
func runs() page.Page {
	return page.Page{
		Path: "/runs", Name: "Runs", In: page.Navigation, Template: "tenant-runs", JSON: "/api/runs{query}", CLI: "skein run list",
		Query: []string{"status", "agentId", "cursor"},
		Load: func(a *page.Ask) (any, error) {
			return choices{a.Query("status"), events.ExecutionStatus("").Enum()}, nil
		},
		Panels: []page.Panel{{ID: "run-list", On: []string{"execution.*", "run.*", "approval.*", "step.created", "lifecycle.*"}, Load: listRuns}},
	}
}

// runList is a page of runs.
type runList struct {
	Runs     []events.Run
	Titles   map[string]string // of the runs' threads
	Next     string
	MayWrite bool
}

func listRuns(a *page.Ask) (any, error) {
	runs, next, err := firstRows(a.Query("cursor"), func(cursor string) ([]events.Run, string, error) {
		list, err := client.Read(a.Context(), a.Client, events.ListRuns{Status: events.ExecutionStatus(a.Query("status")), AgentID: a.Query("agentId"), Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return list.Runs, list.NextCursor, nil
	})
	if err != nil {
		return nil, err
	}
	p := &runList{Runs: runs, Titles: titles(a, runs, func(r *events.Run) string { return r.ThreadID }), MayWrite: a.May(edge.Write)}
	if next != "" {
		p.Next = a.With("cursor", next)
	}
	return p, nil
}

// pagesSearched is how many pages of a query are read for one page of rows.
const pagesSearched = 10

// firstRows returns the first page of a query that has rows, and the cursor of the next one. A
// query examines a limited number of threads, and its page is empty if none of them has a row.
// After pagesSearched empty pages firstRows returns no rows and a cursor.
func firstRows[T any](cursor string, read func(cursor string) (rows []T, next string, err error)) ([]T, string, error) {
	for n := 1; ; n++ {
		rows, next, err := read(cursor)
		if err != nil || len(rows) > 0 || next == "" || n == pagesSearched {
			return rows, next, err
		}
		cursor = next
	}
}

// titlesAtOnce is how many titles are read at once.
const titlesAtOnce = 8

// titles returns the display names of threads, by their ids: the title, or else the key. Threads
// that cannot be read, or have neither, are missing.
func titles[T any](a *page.Ask, list []T, thread func(*T) string) map[string]string {
	wanted := map[string]bool{}
	for i := range list {
		wanted[thread(&list[i])] = true
	}
	var asking sync.WaitGroup
	var mu sync.Mutex // guards names
	names, places := map[string]string{}, make(chan struct{}, titlesAtOnce)
	for id := range wanted {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			t, err := client.Read(a.Context(), a.Client, events.GetThread{ThreadID: id})
			if err != nil { // the list can be shown without it
				return
			}
			key := ""
			if t.Key != nil {
				key = *t.Key
			}
			if name := cmp.Or(t.Title, key); name != "" {
				mu.Lock()
				defer mu.Unlock()
				names[id] = name
			}
		})
	}
	asking.Wait()
	return names
}
