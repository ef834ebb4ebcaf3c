package thread

import (
	"fmt"

	"github.com/skein-threads/skein/events"
)

// effectState is an effect that has not ended.
type effectState struct {
	At      events.Time `json:"at"`   // when the next attempt is due
	Plan    events.Time `json:"plan"` // when this firing was due
	Every   int64       `json:"everyMs,omitzero"`
	Cron    string      `json:"cron,omitzero"`
	Retries int64       `json:"retries,omitzero"`
	Backoff int64       `json:"backoffMs,omitzero"`
	Firing  int64       `json:"firing"`           // from 1
	Attempt int64       `json:"attempt,omitzero"` // the number of attempts of this firing
	PutOff  int64       `json:"putOff,omitzero"`  // the number of attempts that no worker accepted, in this firing
	Claim   uint64      `json:"claim,omitzero"`   // the message that its worker holds; 0: it is not running
	Ending  bool        `json:"ending,omitzero"`  // it was cancelled while it ran

	Rights *events.Rights `json:"rights,omitzero"` // with which it runs; nil: those of the tenant

	gone bool // in a draft's layer: it has ended
}

func (e effectState) running() bool { return e.Claim != 0 }

func (e effectState) repeated() bool { return e.Every > 0 || e.Cron != "" }

func (s *State) effect(id string) (effectState, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.effects[id]; ok {
			return v, !v.gone
		}
	}
	return effectState{}, false
}

// EffectRights returns the rights with which an effect runs; nil: the tenant's.
func (s *State) EffectRights(id string) *events.Rights {
	v, _ := s.effect(id)
	return v.Rights
}

// setEffect sets an effect. An effect with gone set is removed; in a layer the entry is kept, to
// hide the entry of the state below.
func (s *State) setEffect(id string, v effectState) {
	if v.gone && s.parent == nil {
		unset(s, s.effects, id)
		return
	}
	if s.effects == nil {
		s.effects = map[string]effectState{}
	}
	set(s, s.effects, id, v)
}

// endEffect removes an effect.
func (s *State) endEffect(id string) {
	if _, ok := s.effect(id); ok {
		s.Effects--
		s.setEffect(id, effectState{gone: true})
	}
}

// evolveEffect applies an event of an effect.
func (s *State) evolveEffect(e *events.Event) {
	id := e.Subject
	v, there := s.effect(id)
	switch d := e.Data.(type) {
	case events.EffectScheduled:
		if !there {
			s.Effects++
		}
		at := timeOf(d.ScheduledAt)
		v = effectState{At: at, Plan: at, Every: d.EveryMs, Cron: d.Cron, Retries: d.Retries, Backoff: d.BackoffMs, Firing: 1, Rights: d.Rights}
		s.setEffect(id, v)
		return
	case events.EffectCancelled:
		if !v.running() {
			s.endEffect(id)
			return
		}
		v.Ending = true
	case events.EffectStarted:
		v.Attempt, v.Claim = d.Attempt, uint64(d.Claim)
	case events.EffectCompleted:
		v.next(d.Next, true)
	case events.EffectFailed:
		if d.NotMade {
			v.Attempt, v.PutOff = v.Attempt-1, v.PutOff+1
		}
		v.next(d.Next, d.Final)
	}
	if !there {
		return
	}
	if v.gone {
		s.endEffect(id)
		return
	}
	s.setEffect(id, v)
}

// next ends an attempt. The next attempt is due at the given time; if that is empty, the effect
// ends. With over, it is the first attempt of the next firing.
func (e *effectState) next(at string, over bool) {
	e.Claim = 0
	if at == "" {
		e.gone = true
		return
	}
	e.At = timeOf(at)
	if over {
		e.Plan, e.Firing, e.Attempt, e.PutOff = e.At, e.Firing+1, 0, 0
	}
}

// timeOf parses a time of the log. A malformed time counts as past.
func timeOf(text string) events.Time {
	at, err := events.ParseTime(text)
	if err != nil {
		return 0
	}
	return at
}

func (r preconditions) EffectScheduled(e *events.Event, d events.EffectScheduled) error {
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

func (r preconditions) EffectCancelled(e *events.Event, _ events.EffectCancelled) error {
	v, ok := r.state.effect(e.Subject)
	return firstFault(
		about(e, e.Subject, e.Subject), exists(ok, "pending effect", e.Subject),
		unless(!v.Ending && (!v.running() || v.repeated()), "there is nothing of effect %.80q to cancel", e.Subject),
	)
}

func (r preconditions) EffectStarted(e *events.Event, d events.EffectStarted) error {
	v, ok := r.state.effect(e.Subject)
	return firstFault(
		about(e, e.Subject, e.Subject), exists(ok, "pending effect", e.Subject),
		unless(!v.running(), "effect %.80q runs already", e.Subject),
		unless(d.Firing == v.Firing && d.Attempt == v.Attempt+1, "it is attempt %d at firing %d after attempt %d at %d", d.Attempt, d.Firing, v.Attempt, v.Firing),
		unless(v.At <= e.Time, "the effect is not due before %s", v.At),
		unless(d.Claim != 0, "no worker holds it"),
	)
}

// attempt returns the effect, and an error unless the given attempt is its current one.
func (r preconditions) attempt(e *events.Event, firing, attempt int64) (effectState, error) {
	v, ok := r.state.effect(e.Subject)
	return v, firstFault(
		about(e, e.Subject, e.Subject), exists(ok, "pending effect", e.Subject),
		unless(v.running() && v.Firing == firing && v.Attempt == attempt, "attempt %d at firing %d is not in progress", attempt, firing),
	)
}

func (r preconditions) EffectCompleted(e *events.Event, d events.EffectCompleted) error {
	v, err := r.attempt(e, d.Firing, d.Attempt)
	return firstFault(err, unless(d.Next == v.again(e.Time), "it runs next at %q, and not at %.40q", v.again(e.Time), d.Next))
}

func (r preconditions) EffectFailed(e *events.Event, d events.EffectFailed) error {
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
