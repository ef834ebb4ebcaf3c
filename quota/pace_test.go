package quota

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A tenant alone never waits. While another one is active it waits once it is ahead of its
// rate, a body like as many requests as it has pieces of 8 KiB, and the other one does not.
func TestPace_WhileOthersAreActive(t *testing.T) {
	p, now := NewPace(1000, 250*time.Millisecond, 5*time.Second, nil), time.Unix(1000, 0)
	for range 5000 {
		if d := p.Charge("loud", 1, now); d > 0 {
			t.Fatalf("alone it waits %v", d)
		}
	}
	if d := p.Charge("quiet", 1, now); d > 0 {
		t.Errorf("the other one waits %v", d)
	}
	for n := range 500 { // what it did alone has used its burst, and no more
		if d, want := p.Charge("loud", 1, now), time.Duration(n+1)*time.Millisecond; d != want {
			t.Fatalf("request %d waits %v, want %v", n, d, want)
		}
	}
	if d := p.Charge("quiet", 1, now); d > 0 {
		t.Errorf("the other one waits %v, too", d)
	}
	now = now.Add(time.Second)
	if d := p.Charge("loud", 200, now); d != 0 {
		t.Errorf("after a second it waits %v, and not a burst later", d)
	}
	if d := p.Charge("loud", 150, now); d != 100*time.Millisecond {
		t.Errorf("a request like 150 waits %v", d)
	}
	p.Charge("quiet", 1, now)
	now = now.Add(5 * time.Second)
	if d := p.Charge("loud", 5000, now); d > 0 {
		t.Errorf("when the other one has gone it waits %v", d)
	}
	for range 5 {
		p.Charge(Anonymous, 1, now)
	}
	if d := p.Charge("loud", 100, now); d > 0 {
		t.Errorf("requests that anonymous makes delay it by %v", d)
	}
	for range 1000 {
		p.Charge(Anonymous, 1, now)
	}
	if d := p.Charge(Anonymous, 1, now); d < 500*time.Millisecond {
		t.Errorf("requests that anonymous makes wait %v", d)
	}
}

// Tenants that all do as much as they can, of different weights, get the same, and one that does
// less than that never waits, wherever the others are active: on the same pace, or another one of
// the process.
func TestPace_SharesAreFair(t *testing.T) {
	const rate, lasts = 100.0, 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		activity := &Activity{}
		p, other := NewPace(rate, 250*time.Millisecond, 5*time.Second, activity), NewPace(rate, 250*time.Millisecond, 5*time.Second, activity)
		activity.Note("calm", time.Now())
		activity.Note("a", time.Now()) // none is ever alone
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		done := make([]float64, 4)
		for i, weight := range []float64{0.01, 1, 3.7, 60} {
			on := []*Pace{p, other}[i%2]
			go func() {
				for {
					if _, err := on.Wait(ctx, string(rune('a'+i)), weight); err != nil {
						return
					}
					done[i] += weight
				}
			}()
		}
		begun := time.Now()
		for waited := time.Duration(0); ctx.Err() == nil; waited = p.Charge("calm", 1, time.Now()) {
			if waited > 0 {
				t.Fatalf("a tenant within its rate waits %v", waited)
			}
			time.Sleep(time.Second / rate)
		}
		synctest.Wait()
		for i, n := range done {
			if want := rate * lasts.Seconds(); n < 0.95*want || n > 1.05*want {
				t.Errorf("tenant %d did %g in %v, want %g", i, n, time.Since(begun), want)
			}
		}
	})
}

// Work that has not begun waits for so long at most, and is charged only if it may begin.
func TestPace_BeginIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPace(10, 250*time.Millisecond, 5*time.Second, nil)
		p.Charge("quiet", 1, time.Now())
		p.Charge("loud", 40, time.Now())
		begun, behind := time.Now(), p.Behind("loud", time.Now())
		err := p.Begin(t.Context(), "loud", 1, time.Second)
		var late *BehindError
		if !errors.As(err, &late) || late.After != behind || time.Since(begun) != time.Second || p.Behind("loud", time.Now()) != behind-time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		ended, end := context.WithCancelCause(t.Context())
		reason := errors.New("enough")
		end(reason)
		if err := p.Begin(ended, "loud", 1, time.Minute); !errors.Is(err, reason) {
			t.Errorf("as its caller ends: %v", err)
		}
	})
}
