package service

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// While another tenant is active, a tenant has its share of requests in progress; alone
// it has all. Requests that wait are answered in the end.
func TestService_FairWhileOthersAreActive(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	var mu sync.Mutex
	running, most := 0, 0
	hold := make(chan struct{}, 1000)
	s, err := Serve(nc, events.DefaultNames(), Endpoint{
		Name: "skein-test", Description: "A test.", Kind: "cmd", Version: "1.0.0", InFlight: 100, Fair: Fair{Running: 3},
	}, func(_ context.Context, tenant, _ string, _ []byte, _ Meta) (any, error) {
		if tenant != "hog" {
			return struct{}{}, nil
		}
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-hold
		mu.Lock()
		running--
		mu.Unlock()
		return struct{}{}, nil
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	now := func() (int, int) {
		mu.Lock()
		defer mu.Unlock()
		return running, most
	}
	quiet := func() {
		t.Helper()
		if m, err := nc.Request("skein.cmd.quiet.thread.create", nil, time.Minute); err != nil || m.Header.Get(events.HeaderErrorCode) != "" {
			t.Fatalf("the quiet tenant: %v %v", err, m)
		}
	}
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	quiet()
	const asked = 20
	for range asked {
		if err := nc.PublishRequest("skein.cmd.hog.thread.create", inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n, _ := now(); n < 3; n, _ = now() { // its share of them begins
		quiet()
	}
	for range asked {
		quiet()
		hold <- struct{}{}
		if m, err := answers.NextMsg(time.Minute); err != nil || m.Header.Get(events.HeaderErrorCode) != "" {
			t.Fatalf("%v %v", err, m)
		}
	}
	if _, most := now(); most != 3 {
		t.Errorf("%d at the same time, want 3", most)
	}
	for range asked { // alone, once the other has been away for a while
		if err := nc.PublishRequest("skein.cmd.hog.thread.create", inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(time.Minute)
	for n, _ := now(); n < asked && time.Now().Before(deadline); n, _ = now() {
		hold <- struct{}{} // when one ends, others begin
		if err := nc.PublishRequest("skein.cmd.hog.thread.create", inbox, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n, _ := now(); n < asked {
		t.Errorf("alone, %d run at the same time, want %d", n, asked)
	}
	close(hold)
}

// While another tenant is active, requests begin at the tenant's rate, in their order,
// and none is lost.
func TestService_FairRate(t *testing.T) {
	var begun []string
	var mu sync.Mutex
	var l *lanes
	done := make(chan struct{}, 1000)
	l = newLanes(Fair{Rate: 100}, nil, nil, func(r request) {
		mu.Lock()
		begun = append(begun, r.tenant)
		mu.Unlock()
		go func() {
			l.requestEnded(r.tenant)
			done <- struct{}{}
		}()
	}, func(r request) { t.Errorf("a request of %s was refused", r.tenant) })
	start := time.Now()
	l.add(request{tenant: "quiet"}, start)
	const asked = 40
	for range asked {
		l.add(request{tenant: "hog"}, time.Now())
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
		left := len(l.tenant)
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
func TestLanes_OneAfterAnother(t *testing.T) {
	var began atomic.Int64
	l := newLanes(Fair{Rate: 100}, nil, nil, func(request) { began.Add(1) }, nil)
	start := time.Now()
	l.add(request{tenant: "quiet"}, start)
	for range 40 {
		before := began.Load()
		if l.add(request{tenant: "hog"}, time.Now()); began.Load() > before {
			l.requestEnded("hog")
		}
	}
	l.mu.Lock()
	if most := 12 + int64(time.Since(start).Seconds()*100); began.Load() > most { // with that of quiet, and a rounded one
		t.Errorf("%d began within %v", began.Load(), time.Since(start))
	}
	l.tenant["hog"].waiting = nil
	l.mu.Unlock()
	for left := 2; left > 1; time.Sleep(time.Millisecond) { // quiet's request runs
		l.mu.Lock()
		left = len(l.tenant)
		l.mu.Unlock()
	}
}

// A tenant that floods while another is active has a fourth of its share in progress, as
// many requests waiting, and further ones refused, until it has been calm. Alone it has
// all.
func TestLanes_FloodingTenantWaitsForLittle(t *testing.T) {
	floods := NewFloods(func(string) {})
	begun, dropped := map[string]int{}, map[string]int{}
	l := newLanes(Fair{Running: 8}, nil, floods, func(r request) { begun[r.tenant]++ }, func(r request) { dropped[r.tenant]++ })
	now := time.Now()
	add := func(tenant string, n int) {
		for range n {
			l.add(request{tenant: tenant}, now)
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
		l.requestEnded("hog")
	}
	want("flooding, and those before it have ended", "hog", 8+2, 101-8-2)
	now = now.Add(floodCalm)
	add("quiet", 1)
	add("hog", 100)
	want("calm again", "hog", 8+2+6, 101-8-2)
	flood()
	now = now.Add(activeFor)
	add("hog", 1)
	want("flooding alone", "hog", 201+1-(101-8-2), 101-8-2)
}

// A tenant has its share, and a fourth of that when it floods; alone it has all.
func TestFair_Share(t *testing.T) {
	floods, activity, fair := NewFloods(func(string) {}), &Activity{}, Fair{Running: 8}
	want := func(when string, most int) {
		t.Helper()
		if got := fair.Share("hog", activity, floods); got != most {
			t.Errorf("%s: %d at the same time, want %d", when, got, most)
		}
	}
	want("alone", 0)
	activity.shared("quiet", time.Now())
	want("with another tenant", 8)
	for range floodOf {
		floods.Note("hog", time.Now())
	}
	activity.shared("quiet", time.Now())
	want("flooding", 2)
}

// Neither a client that does not read its refusals, nor a connection for refusals that takes no
// more, while a flood brings more of them than may wait, delays a reply to another tenant.
func TestService_FloodOfRefusalsDelaysNoOther(t *testing.T) {
	server := natstest.Start(t)
	unable := newStalling()
	refusals := natstest.Dial(t, server.URL(), nats.SetCustomDialer(unable.dialer()))
	nc, answers, flood, quiet := natstest.Connect(t, server), natstest.Connect(t, server), natstest.Connect(t, server), natstest.Connect(t, server)
	var refused atomic.Int64
	// The flood sends as fast as its requests are admitted, and always has so many ahead of
	// those of the quiet tenant: fewer than the service drops.
	ahead := make(chan struct{}, pendingRequests/8)
	s, err := Serve(nc, events.DefaultNames(), Endpoint{
		Name: "skein-test", Description: "A test.", Kind: "cmd", Version: "1.0.0", InFlight: 1000, Tenants: Limits{Rate: 10, Burst: 20},
		Metrics: limitedFunc(func() { refused.Add(1); <-ahead }), Answers: answers, Refusals: refusals,
	}, func(_ context.Context, tenant, _ string, _ []byte, _ Meta) (any, error) {
		if tenant == "hog" {
			<-ahead
		}
		return struct{}{}, nil
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var flooding sync.WaitGroup
	defer func() {
		close(stop)
		flooding.Wait()
		close(unable.release)
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if _, err := flood.SubscribeSync("flooded.>"); err != nil {
		t.Fatal(err)
	}
	flooding.Go(func() {
		for {
			select {
			case <-stop:
				return
			case ahead <- struct{}{}:
				if err := flood.PublishRequest("skein.cmd.hog.thread.create", "flooded.x", nil); err != nil {
					t.Errorf("the flood: %v", err)
					return
				}
			}
		}
	})
	ask := func(when string) {
		t.Helper()
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			m, err := quiet.RequestWithContext(ctx, "skein.cmd.quiet.thread.create", nil)
			cancel()
			if err != nil {
				t.Fatalf("the quiet tenant, %s: %v", when, err)
			}
			if code := m.Header.Get(events.HeaderErrorCode); code != "" {
				t.Fatalf("the quiet tenant, %s: %s %s", when, code, m.Data)
			}
		}
	}
	reach := func(n int64) {
		t.Helper()
		for end := time.Now().Add(natstest.Patience); refused.Load() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d requests were refused, want %d", refused.Load(), n)
			}
		}
	}
	reach(1)
	ask("while refusals are not read")
	close(unable.stall)
	reach(refused.Load() + 4*refusalsAhead)
	ask("while no refusal can be sent")
}

// limitedFunc is called for each refusal.
type limitedFunc func()

func (f limitedFunc) Limited(string, string) { f() }

// While others are active, what a request does counts as many requests: the tenant waits for it, and
// so do its later requests, but no other tenant.
func TestLanes_WorkCountsAsRequests(t *testing.T) {
	var started []string
	l := newLanes(Fair{Rate: 1000}, nil, nil, func(r request) { started = append(started, r.tenant) }, nil)
	now := time.Now().Add(time.Hour) // so that no timer fires meanwhile
	if d := l.spend("loud", 5000, now); d != 0 {
		t.Errorf("alone it waits %v", d)
	}
	l.add(request{tenant: "quiet"}, now)
	if d := l.spend("loud", 100, now); d != 0 {
		t.Errorf("within what may start at once it waits %v", d)
	}
	if d := l.spend("loud", 2000, now); d != 2*time.Second+time.Millisecond {
		t.Errorf("for 2,000 requests' worth it waits %v", d)
	}
	l.add(request{tenant: "loud"}, now)
	l.add(request{tenant: "quiet"}, now)
	if want := []string{"quiet", "quiet"}; !slices.Equal(started, want) {
		t.Errorf("%v started, want %v", started, want)
	}
	if d := l.spend("quiet", 90, now); d != 0 {
		t.Errorf("another tenant waits %v", d)
	}
	if d := l.spend("loud", 1000, now.Add(3*time.Second/2)); d != 3*time.Second/2+time.Millisecond {
		t.Errorf("later it waits %v", d)
	}
}
