package documents

import (
	"github.com/skein-threads/skein/events"
)

// effects returns the read model of pending effects: an effect that has ended has no document.
func effects() Projection {
	type T = events.ScheduledEffect
	return Projection{
		Kind: Effects, Name: "effects", Version: 2, Bucket: "thread_effects",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.EffectScheduledType, subject, func(c *change, d events.EffectScheduled) *T {
				args := d.Args
				if args == nil {
					args = events.JSON("{}")
				}
				return &T{
					ID: d.ID, ThreadID: c.commit.Thread, Name: d.Name, Args: args,
					ScheduledAt: micros(d.ScheduledAt), CreatedAt: int64(c.event.Time),
					EveryMs: d.EveryMs, Cron: d.Cron, Retries: d.Retries, Firing: 1,
				}
			}),
			stays(events.EffectCancelledType, func(_ *change, doc *T, _ events.EffectCancelled) bool {
				doc.Ending = true
				return doc.Running
			}),
			stays(events.EffectStartedType, func(_ *change, doc *T, d events.EffectStarted) bool {
				doc.Running, doc.Attempt = true, d.Attempt
				return true
			}),
			stays(events.EffectCompletedType, func(_ *change, doc *T, d events.EffectCompleted) bool {
				doc.ErrorText = ""
				return waits(doc, d.Next, true)
			}),
			stays(events.EffectFailedType, func(_ *change, doc *T, d events.EffectFailed) bool {
				doc.ErrorText = d.ErrorText
				if d.NotMade {
					doc.Attempt--
				}
				return waits(doc, d.Next, d.Final)
			}),
			together(events.LifecycleDeletedType),
		},
	}
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

// stays declares a change after which the document may be removed: fold reports whether it
// stays.
func stays[T, E any](t events.Type, fold func(c *change, doc *T, d E) bool) reaction {
	return reaction{on: t, id: typed(subject[E]), fold: func(c *change, doc any) any {
		d, ok := c.event.Data.(E)
		have, there := doc.(*T)
		if ok && there && have != nil && !fold(c, have, d) {
			return nil
		}
		return doc
	}}
}
