package documents

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// effects returns the read model of pending effects: an effect that has ended has no document.
func effects() Projection {
	type T = events.ScheduledEffect
	return Projection{
		Kind: Effects, Name: "effects", Version: 2, Bucket: "thread_effects",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: slices.Concat(
			[]reaction{makes(events.EffectScheduledType, subject, effectOf)},
			effectChanges(func(c *change) string { return c.event.Subject }, func(_ *change, doc *T, fold func(*T) bool) bool { return fold(doc) }),
			[]reaction{together(events.LifecycleDeletedType)},
		),
	}
}

// effectOf returns an effect as it is scheduled.
func effectOf(c *change, d events.EffectScheduled) *events.ScheduledEffect {
	args := d.Args
	if args == nil {
		args = events.JSON("{}")
	}
	return &events.ScheduledEffect{
		ID: d.ID, ThreadID: c.commit.Thread, Name: d.Name, Args: args,
		ScheduledAt: micros(d.ScheduledAt), CreatedAt: int64(c.event.Time),
		EveryMs: d.EveryMs, Cron: d.Cron, Retries: d.Retries, Firing: 1,
	}
}

// effectChanges declares what happens to effects, for a read model whose document of that id has the
// effect. change is to fold it, which reports whether the effect stays, and reports whether the
// document does.
func effectChanges[T any](id func(*change) string, change func(c *change, doc *T, fold func(*events.ScheduledEffect) bool) bool) []reaction {
	return []reaction{
		effectChange(events.EffectCancelledType, id, change, func(e *events.ScheduledEffect, _ events.EffectCancelled) bool {
			e.Ending = true
			return e.Running
		}),
		effectChange(events.EffectStartedType, id, change, func(e *events.ScheduledEffect, d events.EffectStarted) bool {
			e.Running, e.Attempt = true, d.Attempt
			return true
		}),
		effectChange(events.EffectCompletedType, id, change, func(e *events.ScheduledEffect, d events.EffectCompleted) bool {
			e.ErrorText = ""
			return waits(e, d.Next, true)
		}),
		effectChange(events.EffectFailedType, id, change, func(e *events.ScheduledEffect, d events.EffectFailed) bool {
			e.ErrorText = d.ErrorText
			if d.NotMade {
				e.Attempt--
			}
			return waits(e, d.Next, d.Final)
		}),
	}
}

func effectChange[T, E any](
	t events.Type, id func(*change) string, doc func(*change, *T, func(*events.ScheduledEffect) bool) bool, fold func(*events.ScheduledEffect, E) bool,
) reaction {
	return keeps(t, func(c *change, _ E) (string, bool) { return id(c), true }, func(c *change, have *T, d E) bool {
		return doc(c, have, func(e *events.ScheduledEffect) bool { return fold(e, d) })
	})
}

// waits ends an attempt, and reports whether another one follows; with over it is one of the
// next firing.
func waits(doc *events.ScheduledEffect, next string, over bool) bool {
	doc.Running = false
	if next == "" {
		return false
	}
	doc.ScheduledAt = micros(next)
	if over {
		doc.Firing, doc.Attempt = doc.Firing+1, 0
	}
	return true
}

// micros parses a time of the log. A malformed one is 0, which is past.
func micros(text string) int64 {
	at, err := events.ParseTime(text)
	if err != nil {
		return 0
	}
	return int64(at)
}
