package quota

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Pace delays work of each tenant to a steady rate while other tenants are active, so that none of
// them takes the processor from all others. Alone a tenant waits for nothing. It is for callers
// that wait in a goroutine of their own; see [Queue] for others. It is safe for concurrent use.
type Pace struct {
	activity *Activity
	within   time.Duration

	mu      sync.Mutex // guards buckets
	buckets buckets
}

// BehindError says that a tenant's work would have to wait for too long.
type BehindError struct {
	Tenant string
	After  time.Duration // how long it would be
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("the tenant %q is %v ahead of its pace while other tenants are active; try again after that", e.Tenant, e.After)
}

// NewPace returns a pace of perSecond requests a second; 0 is any number. A tenant that sent nothing
// for the time burst may send what is due in it at once. Others count as active for the time within
// after what they did last, which activity records; nil: it is known to this pace alone.
func NewPace(perSecond float64, burst, within time.Duration, activity *Activity) *Pace {
	if activity == nil {
		activity = &Activity{}
	}
	return &Pace{activity: activity, within: within, buckets: newBuckets(perSecond, perSecond*burst.Seconds())}
}

// Charge counts work of a tenant that is like n requests, and returns how long it must wait for it.
func (p *Pace) Charge(tenant string, n float64, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.charge(tenant, n, now)
}

// charge is Charge. Hold p.mu.
func (p *Pace) charge(tenant string, n float64, now time.Time) time.Duration {
	if !p.activity.shared(tenant, now, p.within) {
		p.buckets.chargeAtMost(tenant, n, now)
		return 0
	}
	p.buckets.charge(tenant, n, now)
	return p.buckets.until(tenant, 0, now)
}

// Behind returns how long work of a tenant must wait for what was charged.
func (p *Pace) Behind(tenant string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buckets.until(tenant, 0, now)
}

// Wait charges work of a tenant that is like n requests, and blocks until it may be done. It returns
// how long that takes; the error is the cause of ctx.
func (p *Pace) Wait(ctx context.Context, tenant string, n float64) (time.Duration, error) {
	wait := p.Charge(tenant, n, time.Now())
	return wait, pause(ctx, wait)
}

// Begin is Wait for work that has not begun. A tenant that is behind by more than most is charged
// nothing: its work waits for so long, and the error is then a *BehindError.
func (p *Pace) Begin(ctx context.Context, tenant string, n float64, most time.Duration) error {
	now := time.Now()
	p.mu.Lock()
	wait, behind := most, p.buckets.until(tenant, 0, now)
	if behind <= most {
		wait = p.charge(tenant, n, now)
	}
	p.mu.Unlock()
	if err := pause(ctx, wait); err != nil || behind <= most {
		return err
	}
	return &BehindError{Tenant: tenant, After: behind}
}

// pause blocks for a time. The error is the cause of ctx, if it ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
