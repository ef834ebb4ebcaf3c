package thread

import (
	"fmt"

	"github.com/skein-threads/skein/events"
)

func (r rules) EffectScheduled(e *events.Event, d events.EffectScheduled) error {
	_, taken := r.state.effect(d.ID)
	at, err := events.ParseTime(d.ScheduledAt)
	if err != nil {
		return fmt.Errorf("invalid time: %w", err)
	}
	faults := []error{
		about(e, d.ID, d.ID), isNew(taken, "effect", d.ID),
		unless(r.state.Effects < events.MaxEffects, "%d effects are pending already", r.state.Effects),
		unless(at >= e.Time, "it is due at %s, before it was scheduled", d.ScheduledAt),
		unless(d.EveryMs == 0 || d.Cron == "", "it is repeated in two ways"),
		unless(d.EveryMs == 0 || d.EveryMs >= events.MinEffectEveryMs && at == e.Time+events.Time(d.EveryMs)*1000, "it is first due at %s, and not after %d ms", d.ScheduledAt, d.EveryMs),
		unless(d.Cron != "" || at <= e.Time+events.MaxEffectDelayMs*1000, "it is due at %s, more than ten years ahead", d.ScheduledAt),
	}
	if d.Cron != "" {
		plan, err := parseCron(d.Cron)
		if err != nil {
			return fmt.Errorf("%.80q is no cron expression: %w", d.Cron, err)
		}
		faults = append(faults, unless(at == after(plan, e.Time), "it is first due at %s, and not by its plan", d.ScheduledAt))
	}
	return firstFault(faults...)
}

func (r rules) EffectCancelled(e *events.Event, _ events.EffectCancelled) error {
	v, ok := r.state.effect(e.Subject)
	return firstFault(
		about(e, e.Subject, e.Subject), exists(ok, "pending effect", e.Subject),
		unless(!v.Ending && (!v.running() || v.repeated()), "there is nothing of effect %.80q to cancel", e.Subject),
	)
}

func (r rules) EffectStarted(e *events.Event, d events.EffectStarted) error {
	v, ok := r.state.effect(e.Subject)
	return firstFault(
		about(e, e.Subject, e.Subject), exists(ok, "pending effect", e.Subject),
		unless(!v.running(), "effect %.80q runs already", e.Subject),
		unless(d.Firing == v.Firing && d.Attempt == v.Attempt+1, "it is attempt %d at firing %d after attempt %d at %d", d.Attempt, d.Firing, v.Attempt, v.Firing),
		unless(v.At <= e.Time, "the effect is not due before %s", v.At),
		unless(d.Claim != 0, "no worker holds it"),
	)
}

// attempt returns the effect whose attempt ends.
func (r rules) attempt(e *events.Event, firing, attempt int64) (effectState, error) {
	v, ok := r.state.effect(e.Subject)
	return v, firstFault(
		about(e, e.Subject, e.Subject), exists(ok, "pending effect", e.Subject),
		unless(v.running() && v.Firing == firing && v.Attempt == attempt, "attempt %d at firing %d is not in progress", attempt, firing),
	)
}

func (r rules) EffectCompleted(e *events.Event, d events.EffectCompleted) error {
	v, err := r.attempt(e, d.Firing, d.Attempt)
	return firstFault(err, unless(d.Next == v.again(e.Time), "it runs next at %q, and not at %.40q", v.again(e.Time), d.Next))
}

func (r rules) EffectFailed(e *events.Event, d events.EffectFailed) error {
	v, err := r.attempt(e, d.Firing, d.Attempt)
	final := !d.NotMade && (v.Ending || v.Attempt > v.Retries)
	next := d.Next != ""
	if final {
		next = d.Next == v.again(e.Time)
	}
	return firstFault(err,
		unless(d.Final == final, "it is final, or not, against the attempts that it has left"),
		unless(next, "it says that it runs next at %.40q", d.Next),
	)
}
