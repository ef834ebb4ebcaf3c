package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// ErrExhausted says that a policy allows no further attempt, although the context has
// not ended.
var ErrExhausted = errors.New("no further attempt is allowed")

// Policy says how long the pauses between attempts are, and for how long there are
// attempts. The zero value does not pause, and is bounded by the context alone.
type Policy struct {
	First  time.Duration // the pause after the first failure; it doubles with each further one
	Max    time.Duration // the longest pause; 0: every pause is First
	Limit  time.Duration // no pause begins later than this after the start; 0: only the context ends the attempts; below 0: one attempt
	Useful time.Duration // what an attempt needs at least: where the context's deadline leaves less after the pause, there is none
	Jitter bool          // each pause is random, from half of its length to one and a half, so that many who failed together do not return together
}

// Delay returns the pause after a number of failures in a row, from 1, without jitter.
func (p Policy) Delay(failures int) time.Duration {
	d, longest := p.First, p.Max
	if longest == 0 {
		longest = p.First
	}
	for ; failures > 1 && d > 0 && d < longest; failures-- {
		if d > longest/2 {
			return longest
		}
		d *= 2
	}
	return max(min(d, longest), 0)
}

// Attempts is a series of attempts that fail. It belongs to one goroutine.
type Attempts struct {
	policy   Policy
	began    time.Time
	failures int
}

// Start begins a series of attempts.
func (p Policy) Start() *Attempts { return &Attempts{policy: p, began: time.Now()} }

// Wait counts a failure and pauses before the next attempt. It returns the context's
// cause if ctx ends before, context.DeadlineExceeded at once if the deadline of ctx leaves
// no useful attempt, and ErrExhausted if the limit has passed.
func (a *Attempts) Wait(ctx context.Context) error {
	d, err := a.Next()
	if err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok && a.policy.Useful > 0 && time.Until(end) < d+a.policy.Useful {
		return context.DeadlineExceeded
	}
	if !Sleep(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

// Next counts a failure and returns the pause that follows it, for a caller that also
// waits for something else. It returns ErrExhausted if the limit has passed.
func (a *Attempts) Next() (time.Duration, error) {
	a.failures++
	if a.policy.Limit != 0 && time.Since(a.began) > a.policy.Limit {
		return 0, ErrExhausted
	}
	d := a.policy.Delay(a.failures)
	if a.policy.Jitter && d > 0 {
		d = d/2 + rand.N(d)
	}
	return d, nil
}

// Failures returns how many attempts have failed since the start, or since [Attempts.Reset].
func (a *Attempts) Failures() int { return a.failures }

// Reset begins the series again, after a success: pauses are short again, and the limit
// counts from now.
func (a *Attempts) Reset() { a.failures, a.began = 0, time.Now() }

// Do calls do until it succeeds, fails in a way that does not pass, or the policy or ctx
// allows no further attempt. It returns the last error of do.
func Do(ctx context.Context, p Policy, do func() error, passes func(error) bool) error {
	for attempts := p.Start(); ; {
		err := do()
		if err == nil || !passes(err) || attempts.Wait(ctx) != nil {
			return err
		}
	}
}

// Sleep pauses for d, and reports whether ctx has not ended meanwhile.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
