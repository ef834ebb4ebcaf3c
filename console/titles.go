package console

import (
	"cmp"
	"sync"

	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// titlesAtOnce is how many threads are asked for their titles at once.
const titlesAtOnce = 8

// titles returns what people call threads, by their ids: the title, or else the key. One that
// cannot be read, or has neither, is missing.
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
			t, err := a.Client.GetThread(a.Context(), events.GetThread{ThreadID: id})
			if err != nil { // the list is whole without it
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
