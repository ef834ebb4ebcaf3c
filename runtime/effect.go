package runtime

import (
	"context"
	"time"

	"github.com/skein-threads/skein/events"
)

// Effect is work that was scheduled, and runs outside the conversation.
// It must return when ctx ends, and is safe for concurrent use. A panic is an
// error.
//
// Any error is tried again, as often as the effect's retries say, after a pause
// that doubles; a *RetryError may ask for a longer one. One that says NotMade, since
// nobody was there to take the effect, does not count: it is put off, for a day at
// most. The error's text is stored
// and shown: it must hold no secret.
type Effect interface {
	Run(ctx context.Context, in *EffectInput) error
}

// EffectFunc is a function that is an effect.
type EffectFunc func(ctx context.Context, in *EffectInput) error

// Run calls the function.
func (f EffectFunc) Run(ctx context.Context, in *EffectInput) error { return f(ctx, in) }

// Effects holds effects by their names.
type Effects map[string]Effect

// Effect finds an effect by its name.
func (e Effects) Effect(name string) (Effect, bool) {
	found, ok := e[name]
	return found, ok
}

// EffectInput is what an effect is told.
type EffectInput struct {
	Tenant   string
	ThreadID string
	EffectID string
	// FlowID is the effect's own flow: its id, and the correlation of its events.
	// It is not that of the execution that scheduled it.
	FlowID string
	Name   string
	Args   events.JSON // an object
	// Key is the same for every attempt at this firing, and no other's: what the
	// effect does for it once it need not do again.
	Key         string
	Firing      int64       // from 1; more only of a repeated effect
	Attempt     int64       // at this firing, from 1
	ScheduledAt time.Time   // when this attempt was due
	State       ThreadState // of the thread, apart from any execution's; nil if the worker has none
}

// dueEffect is what a timer of an effect holds: enough to begin it.
type dueEffect struct {
	Name    string      `json:"name"`
	Args    events.JSON `json:"args"`
	At      events.Time `json:"at"` // in microseconds
	Firing  int64       `json:"firing"`
	Attempt int64       `json:"attempt"` // that is to be made
}
