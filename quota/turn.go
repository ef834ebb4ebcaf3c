package quota

import (
	"context"
	"sync/atomic"
)

// Turn lets one request to a [Queue] start without delay, since it has waited at a [Pace] of the same
// tenant: a request over HTTP whose work is done in this process waits once for the tenant's rate.
// What it does beyond its first request waits in the queue like that of others.
type Turn struct {
	tenant string
	left   atomic.Bool
}

type turnKey struct{}

// WithTurn returns a context with a turn, which is not granted yet.
func WithTurn(ctx context.Context) (context.Context, *Turn) {
	t := &Turn{}
	return context.WithValue(ctx, turnKey{}, t), t
}

// Grant grants the turn to a tenant whose request has waited. Call it once, before the context is used
// for requests.
func (t *Turn) Grant(tenant string) {
	t.tenant = tenant
	t.left.Store(true)
}

// TakeTurn reports whether a request of a tenant has a turn in ctx, and takes it: the next one has none.
func TakeTurn(ctx context.Context, tenant string) bool {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t != nil && t.tenant == tenant && t.left.CompareAndSwap(true, false)
}
