package retry_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skein-threads/skein/internal/retry"
)

// bubble runs a test on a clock of its own, which moves only while all wait.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestDelay_DoublesUpToMax(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy retry.Policy
		want   []time.Duration // after 1, 2, 3 ... failures
	}{
		{"zero value", retry.Policy{}, []time.Duration{0, 0, 0}},
		{"no maximum", retry.Policy{First: 5}, []time.Duration{5, 5, 5}},
		{"a maximum below the first", retry.Policy{First: 5, Max: 2}, []time.Duration{2, 2}},
		{"doubled", retry.Policy{First: 5, Max: 18}, []time.Duration{5, 10, 18, 18}},
		{"a maximum that is a power", retry.Policy{First: 5, Max: 20}, []time.Duration{5, 10, 20, 20}},
		{"negative", retry.Policy{First: -5, Max: -1}, []time.Duration{0, 0}},
	} {
		for i, want := range c.want {
			if got := c.policy.Delay(i + 1); got != want {
				t.Errorf("%s: after %d failures: %d, want %d", c.name, i+1, got, want)
			}
		}
	}
}

func TestDelay_NeverOverflows(t *testing.T) {
	p := retry.Policy{First: math.MaxInt64 / 3, Max: math.MaxInt64}
	for _, failures := range []int{1, 2, 3, 100, math.MaxInt} {
		if got := p.Delay(failures); got < p.First {
			t.Errorf("after %d failures: %d, which is less than the first", failures, got)
		}
	}
}

// slept returns how long each of n pauses took.
func slept(t *testing.T, a *retry.Attempts, n int) (out []time.Duration) {
	t.Helper()
	for range n {
		began := time.Now()
		if err := a.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		out = append(out, time.Since(began))
	}
	return out
}

func TestAttempts_PauseAsThePolicySays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := slept(t, retry.Policy{First: time.Second, Max: 3 * time.Second}.Start(), 4)
		if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("pauses %v, want %v", got, want)
		}
	})
}

func TestAttempts_JitterStaysInItsRange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 2000
		low, high := time.Hour, time.Duration(0)
		for _, d := range slept(t, retry.Policy{First: time.Second, Jitter: true}.Start(), n) {
			low, high = min(low, d), max(high, d)
		}
		if low < time.Second/2 || high >= 3*time.Second/2 {
			t.Errorf("pauses from %v to %v, want from 500ms to less than 1.5s", low, high)
		}
		if low > 600*time.Millisecond || high < 1400*time.Millisecond { // 2000 misses in a row: 0.9^2000
			t.Errorf("pauses from %v to %v, want them spread over the whole range", low, high)
		}
	})
}

func TestAttempts_EndWithTheContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		why := errors.New("the caller left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		began := time.Now()
		if err := (retry.Policy{First: time.Hour}).Start().Wait(ctx); !errors.Is(err, why) {
			t.Errorf("the wait ended with %v, want the context's cause", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the wait ended after %v, want 1s", took)
		}
		if err := (retry.Policy{}).Start().Wait(ctx); !errors.Is(err, why) {
			t.Errorf("a wait without a pause ended with %v, want the context's cause", err)
		}
	})
}

func TestAttempts_EndWithTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, began, n := retry.Policy{First: time.Second, Limit: 10 * time.Second}.Start(), time.Now(), 0
		var err error
		for err = a.Wait(t.Context()); err == nil; err = a.Wait(t.Context()) {
			n++
		}
		if !errors.Is(err, retry.ErrExhausted) {
			t.Errorf("the attempts ended with %v, want ErrExhausted", err)
		}
		if took := time.Since(began); took != 11*time.Second || n != 11 { // the last pause begins at the limit
			t.Errorf("%d further attempts within %v, want 11 within 11s", n, took)
		}
	})
}

func TestAttempts_NoPauseForAnAttemptThatIsTooShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		a := retry.Policy{First: 8 * time.Second, Useful: 2 * time.Second}.Start()
		if err := a.Wait(ctx); err != nil {
			t.Fatalf("two seconds are left after the pause, and the wait ended with %v", err)
		}
		if err := a.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing is left after the pause, and the wait ended with %v, want DeadlineExceeded", err)
		}
		if took := time.Since(began); took != 8*time.Second {
			t.Errorf("it took %v, want 8s: the second wait does not pause", took)
		}
	})
}

func TestAttempts_ResetAfterSuccess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := retry.Policy{First: time.Second, Max: time.Minute, Limit: 7 * time.Second}.Start()
		slept(t, a, 3)
		if a.Failures() != 3 {
			t.Errorf("%d failures, want 3", a.Failures())
		}
		a.Reset()
		got := slept(t, a, 3) // also beyond the first limit
		if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}; !slices.Equal(got, want) || a.Failures() != 3 {
			t.Errorf("pauses %v after a reset, want %v", got, want)
		}
	})
}

func TestDo_StopsWhereThePolicyEnds(t *testing.T) {
	passing, final := errors.New("passes"), errors.New("final")
	for _, c := range []struct {
		name  string
		limit time.Duration
		errs  []error // of the attempts; the last one repeats
		want  error
		calls int
	}{
		{"success at once", 0, []error{nil}, nil, 1},
		{"success after failures", 0, []error{passing, passing, nil}, nil, 3},
		{"a failure that does not pass", 0, []error{passing, final}, final, 2},
		{"a limit", 2 * time.Second, []error{passing}, passing, 4},
		{"a limit below zero", -1, []error{passing}, passing, 1},
		{"the end of the context", 0, []error{passing}, passing, 61},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Second/2)
				defer cancel()
				calls := 0
				err := retry.Do(ctx, retry.Policy{First: time.Second, Limit: c.limit}, func() error {
					calls++
					return c.errs[min(calls, len(c.errs))-1]
				}, func(err error) bool { return errors.Is(err, passing) })
				if !errors.Is(err, c.want) || calls != c.calls {
					t.Errorf("%v after %d calls, want %v after %d", err, calls, c.want, c.calls)
				}
			})
		})
	}
}

func TestSleep_ReportsWhetherTheContextStands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		if !retry.Sleep(ctx, time.Second) || time.Since(began) != time.Second {
			t.Error("a pause of 1s was cut short")
		}
		if !retry.Sleep(ctx, -1) {
			t.Error("no pause at all, and the context is said to have ended")
		}
		cancel()
		if retry.Sleep(ctx, time.Second) || retry.Sleep(ctx, 0) || time.Since(began) != time.Second {
			t.Error("a pause went on after the end of its context")
		}
	})
}
