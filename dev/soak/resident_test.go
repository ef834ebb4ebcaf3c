package soak

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// residents is how many threads fill Skein's caches: two commits each are as many as it
// keeps, and their documents and states exceed the bounds.
const residents = 4096

// fill creates the threads that stay, so that Skein's caches are full, as after a day,
// and cannot grow.
func fill(t *testing.T, url string) {
	t.Helper()
	c, err := client.Connect(url, client.Options{Tenant: "soak-residents", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := strings.Repeat("something that was said. ", 160)
	var next atomic.Int64
	var working sync.WaitGroup
	for range 64 {
		working.Go(func() {
			for next.Add(1) <= residents && !t.Failed() {
				made, err := c.Send(t.Context(), "", events.CreateThread{Title: "a resident"})
				if err == nil {
					_, err = c.Send(t.Context(), made.ThreadID, events.AddMessage{Role: events.FromUser, Content: &text})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
