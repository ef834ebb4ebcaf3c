package quota

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"
)

// takeAll takes places for a tenant until it gets no more.
func takeAll(t *testing.T, p *Pool, tenant string) []func() {
	t.Helper()
	var list []func()
	for {
		leave, err := p.Try(tenant)
		if err != nil {
			if full := (*FullError)(nil); !errors.As(err, &full) {
				t.Fatal(err)
			}
			return list
		}
		list = append(list, leave)
	}
}

// Whatever a tenant takes, the next one finds places, and tenants that all take
// what they can get get nearly the same.
func TestPool_ShareOfEachTenant(t *testing.T) {
	for _, c := range []struct {
		limit Places
		want  []int // by tenant, in the order in which they take all they can
	}{
		{Places{Total: 256}, []int{129, 64, 32, 16}},
		{Places{Total: 64}, []int{33, 16, 8}},
		{Places{Total: 4}, []int{3, 1, 0}},
		{Places{Total: 2}, []int{2, 0}},
		{Places{Total: 1}, []int{1, 0}},
		{Places{Total: 64, Tenant: 10}, []int{10, 10, 10}},
		{Places{Total: 8, Tenant: -1}, []int{8, 0}},
	} {
		p := NewPool("x", c.limit, nil)
		for i, want := range c.want {
			if got := len(takeAll(t, p, strconv.Itoa(i))); got != want {
				t.Errorf("%+v: tenant %d gets %d places, want %d", c.limit, i, got, want)
			}
		}
	}
}

// Of those that wait the tenant with the fewest places is next, and one that gave
// up takes none.
func TestPool_FewestIsNext(t *testing.T) {
	p := NewPool("x", Places{Total: 4}, nil)
	hog := takeAll(t, p, "hog")
	other := takeAll(t, p, "other")
	type got struct {
		who   string
		leave func()
	}
	given := make(chan got, 8)
	waitFor := func(ctx context.Context, who string) {
		before := p.waiters()
		go func() {
			leave, err := p.Wait(ctx, who)
			if err == nil {
				given <- got{who, leave}
			}
		}()
		for p.waiters() == before {
			time.Sleep(time.Millisecond)
		}
	}
	gone, giveUp := context.WithCancel(t.Context())
	waitFor(gone, "late")
	waitFor(t.Context(), "hog")
	waitFor(t.Context(), "other")
	waitFor(t.Context(), "third")
	giveUp()
	for p.waiters() == 4 {
		time.Sleep(time.Millisecond)
	}
	hog[0]()
	hog[0]() // does nothing
	if g := <-given; g.who != "third" {
		t.Errorf("%s is next, want third", g.who)
	}
	other[0]()
	if g := <-given; g.who != "other" {
		t.Errorf("%s is next, want other", g.who)
	}
}

func (p *Pool) waiters() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// A tenant cannot fill the line of those that wait.
func TestPool_WaitingIsBounded(t *testing.T) {
	p := NewPool("x", Places{Total: 1}, nil)
	takeAll(t, p, "a")
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range mostWaiting {
		waiting.Go(func() { _, _ = p.Wait(ctx, "a") })
	}
	for p.waiters() < mostWaiting {
		time.Sleep(time.Millisecond)
	}
	var full *FullError
	ended, end := context.WithCancel(t.Context())
	end() // one that waited would be told that, and not that there are too many
	if _, err := p.Wait(ended, "a"); !errors.As(err, &full) || full.Why != WhyWaiting {
		t.Errorf("%v", err)
	}
	cancel()
	waiting.Wait()
}

// Whatever happens at the same time, no more places are taken than there are, and
// in the end all are free.
func TestPool_NeverMoreThanThereAre(t *testing.T) {
	p := NewPool("x", Places{Total: 5}, nil)
	var mu sync.Mutex
	now, most := 0, 0
	var working sync.WaitGroup
	for i := range 40 {
		working.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(300))*time.Microsecond)
				leave, err := p.Wait(ctx, strconv.Itoa(i%7))
				if err == nil {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					mu.Lock()
					now--
					mu.Unlock()
					leave()
				}
				cancel()
			}
		})
	}
	working.Wait()
	if most > 5 || p.taken != 0 || len(p.held) != 0 || len(p.waiting) != 0 || len(p.waits) != 0 {
		t.Errorf("at most %d at once; left: %d, %v, %d, %v", most, p.taken, p.held, len(p.waiting), p.waits)
	}
}

// meanwhile is a context that ends as soon as it is waited for, when something happens.
type meanwhile struct {
	context.Context
	happens func()
}

func (m meanwhile) Done() <-chan struct{} {
	m.happens()
	done := make(chan struct{})
	close(done)
	return done
}

func (meanwhile) Err() error { return context.Canceled }

// A place that becomes free in the moment in which the request that waits for it ends is taken
// by it or stays free, and is not lost.
func TestPool_PlaceIsGivenAsTheWaitEnds(t *testing.T) {
	p := NewPool("x", Places{Total: 1}, nil)
	for range 64 { // each time either may come first
		first, err := p.Try("a")
		if err != nil {
			t.Fatal("the place is lost:", err)
		}
		if leave, err := p.Wait(meanwhile{t.Context(), first}, "b"); err == nil {
			leave()
		}
		if p.taken != 0 || len(p.held) != 0 || len(p.waiting) != 0 {
			t.Fatalf("left: %d, %v, %d", p.taken, p.held, len(p.waiting))
		}
	}
}
