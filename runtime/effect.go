package runtime

import (
	"context"
	"time"

	"github.com/skein-threads/skein/events"
)

// Effect is scheduled work outside the conversation. It must return when ctx ends, and
// be safe for concurrent use. A panic is an error.
//
// Any error is retried, as often as the effect's retries allow, after a pause that
// doubles; a *RetryError may request a longer one. An error with NotMade says that no
// process received the effect. It does not count as an attempt, which is postponed for up to
// a day. The error's text is stored and shown: it must not contain secrets.
type Effect interface {
	Run(ctx context.Context, in *EffectInput) error
}

// EffectFunc is a function that is an effect.
type EffectFunc func(ctx context.Context, in *EffectInput) error

// Run calls the function.
func (f EffectFunc) Run(ctx context.Context, in *EffectInput) error { return f(ctx, in) }

// Effects holds effects by their names.
type Effects map[string]Effect

// Effect returns the effect with a name, and reports whether there is one.
func (e Effects) Effect(name string) (Effect, bool) {
	found, ok := e[name]
	return found, ok
}

// EffectInput is the input of an effect.
type EffectInput struct {
	Tenant   string
	ThreadID string
	EffectID string
	// FlowID is the effect's own flow: its id, and the correlation of its events. It
	// differs from that of the execution that scheduled it.
	FlowID string
	Name   string
	Args   events.JSON // an object
	// Key is the idempotency key: the same for every attempt at this firing, and unique
	// to it.
	Key         string
	Firing      int64          // from 1; above 1 only for a repeated effect
	Attempt     int64          // of this firing, from 1
	ScheduledAt time.Time      // when this attempt was due
	Rights      *events.Rights // of the credential that scheduled it; nil: those of the tenant
	State       ThreadState    // of the thread, without an execution; nil if the worker has none
}
