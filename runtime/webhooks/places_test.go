package webhooks_test

import (
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runtime/webhooks"
)

// All webhooks together have a limited number of requests in flight, and a tenant with many of them,
// whose endpoints never answer, leaves a place to another.
func TestHub_TenantsSharePlaces(t *testing.T) {
	w := start(t)
	var inFlight, most atomic.Int64
	begun, release := make(chan struct{}, 100), make(chan struct{})
	slow := receive(t, func(_ delivery, r *http.Request) int {
		most.Store(max(most.Load(), inFlight.Add(1)))
		defer inFlight.Add(-1)
		begun <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return http.StatusOK
	})
	v := receive(t, nil)
	w.deliver(webhooks.Config{Timeout: 4 * time.Minute, Places: quota.NewPool("webhooks", quota.Places{Total: 4}, nil)})
	for n := range 4 {
		w.define(w.c, "slow"+strconv.Itoa(n), slow.URL, ``)
	}
	for range 6 {
		w.thread(w.c, events.CreateThread{})
	}
	for range 3 { // of four places: as many as it leaves others, and one
		<-begun
	}
	other := w.client("globex")
	w.define(other, "good", v.URL, ``)
	thread := w.thread(other, events.CreateThread{})
	v.until(w, "the other tenant's", func(all []delivery) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.Thread == thread })
	})
	if n := most.Load(); n != 3 {
		t.Errorf("%d requests of a tenant were in flight, of 4 places", n)
	}
	close(release)
	slow.until(w, "the slow ones", func(all []delivery) bool {
		threads := map[string]bool{}
		for _, d := range all {
			threads[d.hook+d.Thread] = true
		}
		return len(threads) >= 4*6
	})
}
