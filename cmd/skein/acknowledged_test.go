package main_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// After a kill -9 under load every list of items has what was acknowledged before the kill, or is
// refused: none is silently short while what the kill took of the read models is folded again.
func TestKilled_ListsHaveWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	const writers, items = 8, 40
	rounds := 2
	if n, err := strconv.Atoi(os.Getenv("SKEIN_KILL_ROUNDS")); err == nil {
		rounds = n
	}
	store := t.TempDir()
	s := start(t, store)
	connect := func() *client.Client {
		c, err := client.Connect(s.NATS, client.Options{Tenant: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	made, err := connect().Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]bool{}
	for round := range rounds {
		c := connect()
		var mu sync.Mutex
		var writing sync.WaitGroup
		full := make(chan struct{})
		round, before := round, len(acknowledged)
		for w := range writers {
			writing.Go(func() {
				for n := 0; ; n++ {
					id := fmt.Sprintf("itm_%d_%d_%d", round, w, n)
					item := events.UserText("hello")
					item.ID = id
					if _, err := c.Send(t.Context(), made.ThreadID, events.CreateItem{Item: item}); err != nil {
						return // it is killed
					}
					mu.Lock()
					if acknowledged[id] = true; len(acknowledged) == before+writers*items {
						close(full)
					}
					mu.Unlock()
				}
			})
		}
		<-full
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		c.Close()
		writing.Wait()
		s = start(t, store)
		reader := connect()
		for begin, lists := time.Now(), 0; lists < 20 && time.Since(begin) < time.Minute; {
			seen, refused := map[string]bool{}, false
			for q := (events.ListItems{ThreadID: made.ThreadID, Limit: new(int64(100))}); ; {
				page, err := client.Read(t.Context(), reader, q)
				if err != nil {
					refused = true
					t.Logf("refused: %v", err)
					break
				}
				for i := range page.Items {
					seen[page.Items[i].ID] = true
				}
				if page.NextCursor == "" {
					break
				}
				q.Cursor = page.NextCursor
			}
			if refused {
				continue
			}
			lists++
			for id := range acknowledged {
				if !seen[id] {
					t.Errorf("round %d, %v after the start: %s is missing among %d of %d", round, time.Since(begin), id, len(seen), len(acknowledged))
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}
