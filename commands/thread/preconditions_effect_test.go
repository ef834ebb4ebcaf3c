package thread

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

func TestHolds_Effects(t *testing.T) {
	k := begun(t)
	const other, cron, tenYears = "0195e5d0-3c1a-4b2e-9f44-1d2e3f405169", "0 6 * * *", events.MaxEffectDelayMs * 1000
	now := k.now + 1000
	scheduled := func(d events.EffectScheduled) events.Event {
		d.ID, d.Name = effectID, "remind"
		return k.after(events.EffectScheduledType, effectID, effectID, d)
	}
	at := func(when events.Time) func(*events.EffectScheduled) {
		return func(d *events.EffectScheduled) { d.ScheduledAt = when.String() }
	}
	holdsBut(t, k, scheduled(events.EffectScheduled{ScheduledAt: now.String()}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("no time", "invalid time", func(d *events.EffectScheduled) { d.ScheduledAt = "soon" }),
		the("a time that has passed", "before it was scheduled", at(now-1)),
		the("a time too far ahead", "ten years", at(now+tenYears+1)),
		the("two plans", "in two ways", func(d *events.EffectScheduled) { d.EveryMs, d.Cron = 1000, cron }))
	holdsBut(t, k, scheduled(events.EffectScheduled{ScheduledAt: (now + tenYears).String()}))
	holdsBut(t, k, scheduled(events.EffectScheduled{ScheduledAt: (now + 1e6).String(), EveryMs: 1000}),
		the("another first time", "not after 1000 ms", at(now+2e6)),
		the("too often", "not after 999 ms", func(d *events.EffectScheduled) { d.EveryMs, d.ScheduledAt = 999, (now + 999e3).String() }))
	sixth := dawn + 18*3600e6
	holdsBut(t, k, scheduled(events.EffectScheduled{ScheduledAt: sixth.String(), Cron: cron}),
		the("another first time", "not by its plan", at(sixth+day)),
		the("no plan", "no cron expression", func(d *events.EffectScheduled) { d.Cron = "often" }))

	started := func(d events.EffectStarted) events.Event {
		return k.after(events.EffectStartedType, effectID, effectID, d)
	}
	one := events.EffectStarted{Firing: 1, Attempt: 1, Claim: claim}
	refused := func(name, says string, e events.Event) {
		t.Helper()
		if err := held(k, forged{e.Type, e.Subject, e.Correlation, e.Data, says}); err == nil || !contains(err, says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	k.do(events.ScheduleEffect{ID: effectID, Name: "remind", EveryMs: to(int64(1000)), Retries: to(int64(1))})
	k.do(events.ScheduleEffect{ID: other, Name: "remind", DelayMs: to(int64(1))})
	refused("one that is taken", "exists already", scheduled(events.EffectScheduled{ScheduledAt: (k.now + 1000).String()}))
	refused("one that is not due", "not due", started(one))
	cancelled := func() events.Event {
		return k.after(events.EffectCancelledType, effectID, effectID, events.EffectCancelled{})
	}
	holdsBut(t, k, cancelled(), anotherCorrelation("its correlation should be"), anotherSubject("its correlation should be"),
		forgery{"an unknown effect", func(e *events.Event) { e.Subject, e.Correlation = "else", "else" }, "not in the thread"})
	k.now += 1e6 - 3000 // due with the next event but one
	refused("one that is not due", "not due", started(one))
	k.now += 1000
	holdsBut(t, k, started(one),
		anotherCorrelation("its correlation should be"),
		the("another firing", "after attempt 0 at 1", func(d *events.EffectStarted) { d.Firing = 2 }),
		the("another attempt", "after attempt 0 at 1", func(d *events.EffectStarted) { d.Attempt = 2 }),
		the("nobody", "no worker", func(d *events.EffectStarted) { d.Claim = 0 }))
	completed := func(next string) events.Event {
		return k.after(events.EffectCompletedType, effectID, effectID, events.EffectCompleted{Firing: 1, Attempt: 1, Next: next})
	}
	refused("an end of what does not run", "not in progress", completed(""))
	k.mustStart(t, 1, 1)
	refused("a second start", "runs already", started(events.EffectStarted{Firing: 1, Attempt: 2, Claim: 9}))
	e, _ := k.state.effect(effectID)
	next := e.again(k.now + 1000)
	holdsBut(t, k, completed(next),
		anotherCorrelation("its correlation should be"),
		the("another firing", "not in progress", func(d *events.EffectCompleted) { d.Firing = 2 }),
		the("another attempt", "not in progress", func(d *events.EffectCompleted) { d.Attempt = 2 }),
		the("no next time", "runs next at", func(d *events.EffectCompleted) { d.Next = "" }))
	fail := events.EffectFailed{Firing: 1, Attempt: 1, ErrorText: "no", Next: (k.now + 5e6).String()}
	holdsBut(t, k, k.after(events.EffectFailedType, effectID, effectID, fail),
		anotherCorrelation("its correlation should be"),
		the("another attempt", "not in progress", func(d *events.EffectFailed) { d.Attempt = 2 }),
		the("no next attempt", "runs next at", func(d *events.EffectFailed) { d.Next = "" }),
		the("the last attempt", "is final, or not", func(d *events.EffectFailed) { d.Final = true }))
	holdsBut(t, k, cancelled()) // it is repeated
	k.do(events.CancelEffect{EffectID: effectID})
	refused("a second cancellation", "nothing of effect", cancelled())
	holdsBut(t, k, completed(""), the("a next time", "runs next at", func(d *events.EffectCompleted) { d.Next = next }))
	last := events.EffectFailed{Firing: 1, Attempt: 1, ErrorText: "no", Final: true}
	holdsBut(t, k, k.after(events.EffectFailedType, effectID, effectID, last),
		the("another attempt to come", "is final, or not", func(d *events.EffectFailed) { d.Final = false }),
		the("a next time", "runs next at", func(d *events.EffectFailed) { d.Next = next }))
	put := events.EffectFailed{Firing: 1, Attempt: 1, ErrorText: "no", NotMade: true, Next: next}
	holdsBut(t, k, k.after(events.EffectFailedType, effectID, effectID, put),
		the("no next time", "runs next at", func(d *events.EffectFailed) { d.Next = "" }))

	k.do(StartEffect{ID: other, Firing: 1, Attempt: 1, Claim: 7})
	refused("a cancellation of what runs once", "nothing of effect", k.after(events.EffectCancelledType, other, other, events.EffectCancelled{}))
	s := mustDecode(t, encoded(t, k.state))
	s.Effects = events.MaxEffects - 1
	free := events.EffectScheduled{ID: "one-more", Name: "x", ScheduledAt: (k.now + 1000).String()}
	if err := holds(s, []events.Event{k.after(events.EffectScheduledType, free.ID, free.ID, free)}); err != nil {
		t.Error(err)
	}
	s.Effects++
	if err := holds(s, []events.Event{k.after(events.EffectScheduledType, free.ID, free.ID, free)}); err == nil || !contains(err, "1000 effects") {
		t.Errorf("one too many: %v", err)
	}
}

// How far an effect has come with its attempts decides whether a failure is its last.
func TestHolds_LastAttempt(t *testing.T) {
	k := begun(t)
	k.do(events.ScheduleEffect{ID: effectID, Name: "remind", Retries: to(int64(1)), BackoffMs: to(int64(0))})
	for attempt := int64(1); attempt <= 2; attempt++ {
		k.mustStart(t, 1, attempt)
		last := attempt == 2
		d := events.EffectFailed{Firing: 1, Attempt: attempt, ErrorText: "no", Final: last}
		if !last {
			d.Next = k.now.String()
		}
		holdsBut(t, k, k.after(events.EffectFailedType, effectID, effectID, d),
			the("the opposite", "is final, or not", func(d *events.EffectFailed) { d.Final = !d.Final }))
		k.do(FailEffect{ID: effectID, Firing: 1, Attempt: attempt, ErrorText: "no"})
	}
}
