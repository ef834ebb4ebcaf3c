package agents

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// looker counts looks for servers, each of which takes a while.
type looker struct {
	mu      sync.Mutex
	takes   time.Duration
	up      map[string]bool // by tenant
	looks   map[string]int
	running map[string]int
	most    map[string]int // looks of a tenant at the same time
}

func (l *looker) down(ctx context.Context, tenant, _ string) bool {
	l.mu.Lock()
	l.looks[tenant]++
	l.running[tenant]++
	l.most[tenant] = max(l.most[tenant], l.running[tenant])
	l.mu.Unlock()
	select {
	case <-time.After(l.takes):
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[tenant]--
	return !l.up[tenant]
}

func newLooker(takes time.Duration) *looker {
	return &looker{takes: takes, up: map[string]bool{}, looks: map[string]int{}, running: map[string]int{}, most: map[string]int{}}
}

// of returns how many looks for a tenant's servers were begun, and how many at the same time.
func (l *looker) of(tenant string) (looks, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks[tenant], l.most[tenant]
}

// bring says that a tenant's servers are back.
func (l *looker) bring(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up[tenant] = true
}

// One look a server, however many runs ask; pauses between looks grow; and the next that asks is told
// once that a server is back.
func TestWatch_OneLookForAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLooker(100 * time.Millisecond)
		w := newWatch(l.down)
		defer w.stop()
		for range 120 { // two minutes
			for range 50 {
				if w.back("acme", "shop") {
					t.Fatal("it is back")
				}
			}
			time.Sleep(time.Second)
		}
		if got, _ := l.of("acme"); got < 5 || got > 12 { // after pauses of 1, 2, 4, 8, 16, 30 ... s, spread
			t.Errorf("%d looks in two minutes", got)
		}
		l.bring("acme")
		found := 0
		for range 60 {
			if w.back("acme", "shop") {
				found++
			}
			time.Sleep(time.Second)
		}
		if found == 0 || found > 3 { // a run that it wakes may find it down again
			t.Errorf("it was found %d times in a minute", found)
		}
	})
}

// A tenant with more servers that do not answer than are watched has few looks at the same time, and
// another tenant's server is found as soon as it is back.
func TestWatch_ManyDeadServersOfATenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLooker(lookFor)
		w := newWatch(l.down)
		defer w.stop()
		round := func() (found bool) {
			for i := range 2 * maxWatched {
				w.back("hostile", fmt.Sprint("dead", i))
			}
			if len(w.known["hostile"]) > maxWatched {
				t.Fatalf("%d servers of the hostile tenant are watched", len(w.known["hostile"]))
			}
			return w.back("acme", "shop")
		}
		for range 60 {
			round()
			time.Sleep(time.Second)
		}
		looks, most := l.of("hostile")
		l.bring("acme")
		if most > looksTenant || looks > 60*looksTenant/int(lookFor/time.Second)+looksTenant {
			t.Errorf("%d looks of the hostile tenant in a minute, %d at the same time", looks, most)
		}
		back := false
		for range 2 * int(lookLast/time.Second) {
			if back = round(); back {
				break
			}
			time.Sleep(time.Second)
		}
		if !back {
			t.Error("the other tenant's server is not found")
		}
	})
}

// Looks that fail at once are few, too, and servers that nobody asks about any more are forgotten.
func TestWatch_LooksArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLooker(0)
		w := newWatch(l.down)
		defer w.stop()
		for range 10 * 10 { // ten seconds
			for i := range 1000 {
				w.back("hostile", fmt.Sprint("dead", i))
			}
			time.Sleep(100 * time.Millisecond)
		}
		const most = looksTenant * 10 * int(time.Second/lookPause)
		if got, _ := l.of("hostile"); got > most+looksTenant {
			t.Errorf("%d looks in ten seconds, and not %d", got, most)
		}
		time.Sleep(2 * watchedFor)
		w.back("acme", "shop")
		if len(w.known) != 1 || len(w.known["acme"]) != 1 {
			t.Errorf("servers of %d tenants are watched", len(w.known))
		}
	})
}
