package quota

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type request struct{ tenant string }

// While another tenant is active, requests begin at the tenant's rate, in their order,
// and none is lost.
func TestQueue_FairRate(t *testing.T) {
	var begun []string
	var mu sync.Mutex
	var l *Queue[request]
	done := make(chan struct{}, 1000)
	l = NewQueue(Fair{Rate: 100}, func(r request) {
		mu.Lock()
		begun = append(begun, r.tenant)
		mu.Unlock()
		go func() {
			l.Ended(r.tenant)
			done <- struct{}{}
		}()
	}, func(r request) { t.Errorf("a request of %s was refused", r.tenant) })
	start := time.Now()
	l.Add("quiet", request{"quiet"}, start)
	const asked = 40
	for range asked {
		l.Add("hog", request{"hog"}, time.Now())
	}
	for range asked + 1 {
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("some were never begun")
		}
	}
	if took := time.Since(start); took < 250*time.Millisecond { // ten at once, then one every 10 ms
		t.Errorf("%d began within %v", asked, took)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		left := len(l.lanes)
		l.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d lanes are left", left)
		}
	}
}

// A tenant whose requests come one after another has no more than its rate either, and its lane is
// forgotten once it has been calm.
func TestQueue_OneAfterAnother(t *testing.T) {
	var began atomic.Int64
	l := NewQueue(Fair{Rate: 100}, func(request) { began.Add(1) }, nil)
	start := time.Now()
	l.Add("quiet", request{"quiet"}, start)
	for range 40 {
		before := began.Load()
		if l.Add("hog", request{"hog"}, time.Now()); began.Load() > before {
			l.Ended("hog")
		}
	}
	l.mu.Lock()
	if most := 12 + int64(time.Since(start).Seconds()*100); began.Load() > most { // with that of quiet, and a rounded one
		t.Errorf("%d began within %v", began.Load(), time.Since(start))
	}
	l.lanes["hog"].waiting = nil
	l.mu.Unlock()
	for left := 2; left > 1; time.Sleep(time.Millisecond) { // quiet's request runs
		l.mu.Lock()
		left = len(l.lanes)
		l.mu.Unlock()
	}
}

// A tenant that floods while another is active has a fourth of its share in progress, as
// many requests waiting, and further ones refused, until it has been calm. Alone it has
// all.
func TestQueue_FloodingTenantWaitsForLittle(t *testing.T) {
	floods := NewFloods(func(string) {})
	begun, dropped := map[string]int{}, map[string]int{}
	l := NewQueue(Fair{Running: 8, Floods: floods}, func(r request) { begun[r.tenant]++ }, func(r request) { dropped[r.tenant]++ })
	now := time.Now()
	add := func(tenant string, n int) {
		for range n {
			l.Add(tenant, request{tenant}, now)
		}
	}
	flood := func() {
		for range floodOf {
			floods.Note("hog", now)
		}
	}
	want := func(when string, tenant string, wantBegun, wantDropped int) {
		t.Helper()
		if begun[tenant] != wantBegun || dropped[tenant] != wantDropped {
			t.Errorf("%s: of %s %d began and %d were dropped, want %d and %d", when, tenant, begun[tenant], dropped[tenant], wantBegun, wantDropped)
		}
	}
	add("quiet", 1)
	add("hog", 100)
	want("before the flood", "hog", 8, 0)
	flood()
	add("quiet", 20)
	add("hog", 1)
	want("flooding", "hog", 8, 101-8-2)
	want("flooding", "quiet", 8, 0)
	for range 8 {
		l.Ended("hog")
	}
	want("flooding, and those before it have ended", "hog", 8+2, 101-8-2)
	now = now.Add(floodCalm)
	add("quiet", 1)
	add("hog", 100)
	want("calm again", "hog", 8+2+6, 101-8-2)
	flood()
	now = now.Add(queueActive)
	add("hog", 1)
	want("flooding alone", "hog", 201+1-(101-8-2), 101-8-2)
}

// A tenant has its share, and a fourth of that when it floods; alone it has all.
func TestFair_Share(t *testing.T) {
	floods, activity := NewFloods(func(string) {}), &Activity{}
	fair := Fair{Running: 8, Activity: activity, Floods: floods}
	want := func(when string, most int) {
		t.Helper()
		if got := fair.Share("hog"); got != most {
			t.Errorf("%s: %d at the same time, want %d", when, got, most)
		}
	}
	want("alone", 0)
	activity.Note("quiet", time.Now())
	want("with another tenant", 8)
	for range floodOf {
		floods.Note("hog", time.Now())
	}
	activity.Note("quiet", time.Now())
	want("flooding", 2)
}

// While others are active, what a request does counts as many requests: the tenant waits for it, and
// so do its later requests, but no other tenant.
func TestQueue_WorkCountsAsRequests(t *testing.T) {
	var started []string
	l := NewQueue(Fair{Rate: 1000}, func(r request) { started = append(started, r.tenant) }, nil)
	now := time.Now().Add(time.Hour) // so that no timer fires meanwhile
	if d := l.Spend("loud", 5000, now); d != 0 {
		t.Errorf("alone it waits %v", d)
	}
	l.Add("quiet", request{"quiet"}, now)
	if d := l.Spend("loud", 100, now); d != 0 {
		t.Errorf("within what may start at once it waits %v", d)
	}
	if d := l.Spend("loud", 2000, now); d != 2*time.Second+time.Millisecond {
		t.Errorf("for 2,000 requests' worth it waits %v", d)
	}
	l.Add("loud", request{"loud"}, now)
	l.Add("quiet", request{"quiet"}, now)
	if want := []string{"quiet", "quiet"}; !slices.Equal(started, want) {
		t.Errorf("%v started, want %v", started, want)
	}
	if d := l.Spend("quiet", 90, now); d != 0 {
		t.Errorf("another tenant waits %v", d)
	}
	if d := l.Spend("loud", 1000, now.Add(3*time.Second/2)); d != 3*time.Second/2+time.Millisecond {
		t.Errorf("later it waits %v", d)
	}
}

// While others are active, a request that has waited for its tenant's rate elsewhere starts at once. It
// uses the rate all the same: one that arrives here waits.
func TestQueue_Turn(t *testing.T) {
	var begun []string
	q := NewQueue(Fair{Rate: 0.001}, func(r request) { begun = append(begun, r.tenant) }, nil)
	now := time.Now()
	q.Add("quiet", request{"quiet"}, now)
	q.AddWithTurn("hog", request{"hog 1"}, now)
	q.AddWithTurn("hog", request{"hog 2"}, now)
	q.Add("hog", request{"hog 3"}, now)         // waits for a quarter of an hour
	q.AddWithTurn("hog", request{"hog 4"}, now) // after what came before
	if want := []string{"quiet", "hog 1", "hog 2"}; !slices.Equal(begun, want) {
		t.Errorf("%q began, want %q", begun, want)
	}
}

// What a tenant owes for its work stays owed when a request with a turn starts.
func TestQueue_TurnForgivesNothing(t *testing.T) {
	q := NewQueue(Fair{Rate: 1000}, func(request) {}, nil)
	now := time.Now()
	q.Add("quiet", request{"quiet"}, now)
	q.Add("hog", request{"hog"}, now)
	q.rate.charge("hog", 10_000, now)
	owed := q.rate.until("hog", 1, now)
	q.AddWithTurn("hog", request{"hog"}, now)
	if got := q.rate.until("hog", 1, now); owed < time.Second || got < owed {
		t.Errorf("the next request waits %v, and %v before", got, owed)
	}
}

// A turn is for one request of the tenant that it was granted to.
func TestTurn(t *testing.T) {
	ctx, turn := WithTurn(t.Context())
	if TakeTurn(ctx, "") || TakeTurn(ctx, "acme") || TakeTurn(t.Context(), "acme") {
		t.Error("a turn that was not granted was taken")
	}
	turn.Grant("acme")
	if got := []bool{TakeTurn(ctx, "globex"), TakeTurn(ctx, "acme"), TakeTurn(ctx, "acme")}; !slices.Equal(got, []bool{false, true, false}) {
		t.Errorf("taken: %v", got)
	}
}
