package documents

import (
	"slices"
	"strconv"

	"github.com/skein-threads/skein/events"
)

// lives returns the read model of lives of key-value states that are not cleared. Their values
// are the content of their contexts.
func lives() Projection {
	type T = events.Life
	return Projection{
		Kind: Lives, Name: "lives", Version: 1, Bucket: "thread_lives",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			puts(events.StateRenewedType, life(func(d events.StateRenewed) int64 { return d.Life }),
				func(c *change, doc *T, d events.StateRenewed) *T {
					if doc == nil {
						doc = &T{ThreadID: c.commit.Thread, ContextID: c.event.Subject, Life: d.Life}
					}
					doc.Until, doc.IdleSecs, doc.Listeners = micros(d.Until), d.IdleSeconds, d.Listeners
					return doc
				}),
			on(events.StateChangedType, life(func(d events.StateChanged) int64 { return d.Life }),
				func(c *change, doc *T, _ events.StateChanged) {
					doc.Until = max(doc.Until, int64(c.event.Time)+doc.IdleSecs*1e6)
				}),
			on(events.LifecycleDestroyedType, life(func(d events.LifecycleDestroyed) int64 { return d.Life }),
				func(c *change, doc *T, _ events.LifecycleDestroyed) {
					doc.Ended, doc.Until = true, int64(c.event.Time)+events.ListenerPatience.Microseconds()
				}),
			on(events.StateReleasedType, life(func(d events.StateReleased) int64 { return d.Life }),
				func(_ *change, doc *T, d events.StateReleased) {
					doc.Listeners = slices.DeleteFunc(slices.Clone(doc.Listeners), func(name string) bool { return name == d.Listener })
				}),
			removes(events.StateClosedType, life(func(d events.StateClosed) int64 { return d.Life })),
			together(events.LifecycleDeletedType),
		},
	}
}

// life returns the id of the document of an event's life.
func life[E any](of func(E) int64) func(*change, E) (string, bool) {
	return func(_ *change, d E) (string, bool) {
		n := of(d)
		return strconv.FormatInt(n, 10), n > 0
	}
}
