package thread

import (
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/skein-threads/skein/events"
)

// StartEffect starts an attempt at an effect. Only workers send it: it is not in the catalog
// of commands. Of two requests for the same attempt one succeeds; the other is refused with an
// *EffectError.
type StartEffect struct {
	ID      string
	Firing  int64  // from 1
	Attempt int64  // in this firing, from 1; ignored with Lost
	Claim   uint64 // the sequence of the message that the worker holds
	// Lost is the claim of a crashed worker from which this worker takes the effect over. The
	// crashed worker's attempt counts as failed, and may have been the last one.
	Lost uint64
}

// CompleteEffect ends an attempt that succeeded.
type CompleteEffect struct {
	ID              string
	Firing, Attempt int64
}

// FailEffect ends an attempt that failed.
type FailEffect struct {
	ID              string
	Firing, Attempt int64
	ErrorText       string
	AfterMs         int64 // the least time until the next attempt
	// NotMade means that no worker accepted the attempt. The attempt is postponed and does not
	// count, unless the firing has waited for too long.
	NotMade bool
}

// EffectStanding is the state of an effect in which a worker's request is refused.
type EffectStanding int

// The states in which a request is refused.
const (
	EffectGone    EffectStanding = iota + 1 // the attempt was made before, or the effect was cancelled or never existed
	EffectEarly                             // it is not due yet
	EffectRunning                           // a worker runs it
)

// EffectError is the refusal of a worker's request.
type EffectError struct {
	ID       string
	Standing EffectStanding
	At       events.Time // EffectEarly: when it is due
	Firing   int64       // EffectRunning: the firing that runs
	Claim    uint64      // EffectRunning: the claim of the worker that runs it
}

func (e *EffectError) Error() string {
	switch e.Standing {
	case EffectEarly:
		return fmt.Sprintf("effect %s is not due before %s", e.ID, e.At)
	case EffectRunning:
		return fmt.Sprintf("effect %s is run by the worker that holds message %d", e.ID, e.Claim)
	}
	return fmt.Sprintf("effect %s: that attempt is over, or not the next one", e.ID)
}

func (m *decider) scheduleEffect(d events.ScheduleEffect) error {
	if m.state.Effects >= events.MaxEffects {
		return events.Errorf(events.QueueFull, "the thread has %d effects pending, the maximum; cancel some, or wait until they have run", m.state.Effects)
	}
	if err := m.maySchedule(d); err != nil {
		return err
	}
	id := d.ID
	if id == "" {
		m.ids++
		id = events.DeriveEffectID(m.at, m.command.Tenant, m.command.ThreadID, m.command.ID, m.ids)
	}
	if _, taken := m.state.effect(id); taken {
		return events.Taken("effect", id)
	}
	s := events.EffectScheduled{ID: id, Name: d.Name, Args: d.Args, Cron: d.Cron, Retries: events.EffectRetries, BackoffMs: events.EffectBackoffMs, Rights: m.command.Rights.Recorded()}
	if d.Retries != nil {
		s.Retries = *d.Retries
	}
	if d.BackoffMs != nil {
		s.BackoffMs = *d.BackoffMs
	}
	at := m.at // no delay means at once
	switch {
	case d.DelayMs != nil:
		at += events.Time(*d.DelayMs) * 1000
	case d.EveryMs != nil:
		s.EveryMs = *d.EveryMs
		at += events.Time(*d.EveryMs) * 1000
	case d.At != "":
		asked, err := events.ParseTime(d.At)
		if err != nil {
			return events.Invalid("/at", "%w", err)
		}
		if at = max(at, asked); at > m.at+events.MaxEffectDelayMs*1000 {
			return events.Invalid("/at", "an effect is scheduled at most ten years ahead")
		}
	case d.Cron != "":
		plan, err := parseCron(d.Cron)
		if err != nil {
			return events.Invalid("/cron", "%q is no cron expression: %w", d.Cron, err)
		}
		if at = after(plan, m.at); at == 0 {
			return events.Invalid("/cron", "%q names no time within five years", d.Cron)
		}
	}
	s.ScheduledAt = at.String()
	m.emitEffect(events.EffectScheduledType, id, s)
	return nil
}

// emitEffect emits an event of an effect, which is its own correlation.
func (m *decider) emitEffect(t events.Type, id string, data any) { m.emit(t, id, id, data) }

// cancelEffect makes no event if there is nothing to cancel: the effect has run, is running,
// was cancelled or never existed. A repeated effect that is running does not run again.
func (m *decider) cancelEffect(d events.CancelEffect) error {
	e, ok := m.state.effect(d.EffectID)
	if ok && !e.Ending && (!e.running() || e.repeated()) {
		m.emitEffect(events.EffectCancelledType, d.EffectID, events.EffectCancelled{Reason: d.Reason})
	}
	return nil
}

func (m *decider) startEffect(d StartEffect) error {
	e, ok := m.state.effect(d.ID)
	switch {
	case !ok || d.Firing != e.Firing:
		return &EffectError{ID: d.ID, Standing: EffectGone}
	case e.running() && d.Lost != e.Claim:
		return &EffectError{ID: d.ID, Standing: EffectRunning, Claim: e.Claim, Firing: e.Firing}
	case e.running():
		if !m.failAttempt(d.ID, e, "the worker that ran it was lost", m.at) {
			return nil
		}
		e.Attempt++
	case d.Lost != 0 || d.Attempt != e.Attempt+1:
		return &EffectError{ID: d.ID, Standing: EffectGone}
	case e.At > m.at:
		return &EffectError{ID: d.ID, Standing: EffectEarly, At: e.At}
	default:
		e.Attempt++
	}
	m.emitEffect(events.EffectStartedType, d.ID, events.EffectStarted{Firing: e.Firing, Attempt: e.Attempt, Claim: int64(d.Claim)})
	return nil
}

// attemptOf returns the effect if the given attempt is its current one.
func (m *decider) attemptOf(id string, firing, attempt int64) (effectState, error) {
	e, ok := m.state.effect(id)
	if !ok || !e.running() || e.Firing != firing || e.Attempt != attempt {
		return e, &EffectError{ID: id, Standing: EffectGone}
	}
	return e, nil
}

func (m *decider) completeEffect(d CompleteEffect) error {
	e, err := m.attemptOf(d.ID, d.Firing, d.Attempt)
	if err != nil {
		return err
	}
	m.emitEffect(events.EffectCompletedType, d.ID, events.EffectCompleted{Firing: d.Firing, Attempt: d.Attempt, Next: e.again(m.at)})
	return nil
}

func (m *decider) failEffect(d FailEffect) error {
	e, err := m.attemptOf(d.ID, d.Firing, d.Attempt)
	if err != nil {
		return err
	}
	if d.NotMade && !e.Ending && m.at < e.Plan+events.EffectPatienceMs*1000 {
		pause := min(max(e.Backoff, 1000)<<min(e.PutOff, 32), events.MaxPutOffMs)
		m.emitEffect(events.EffectFailedType, d.ID, events.EffectFailed{
			Firing: e.Firing, Attempt: e.Attempt, ErrorText: d.ErrorText, NotMade: true,
			Next: (m.at + events.Time(max(pause, d.AfterMs))*1000).String(),
		})
		return nil
	}
	pause := min(e.Backoff<<min(e.Attempt-1, 32), events.MaxBackoffMs)
	m.failAttempt(d.ID, e, d.ErrorText, m.at+events.Time(max(pause, d.AfterMs))*1000)
	return nil
}

// failAttempt records that an attempt failed, and reports whether another attempt follows, at
// next.
func (m *decider) failAttempt(id string, e effectState, why string, next events.Time) bool {
	f := events.EffectFailed{Firing: e.Firing, Attempt: e.Attempt, ErrorText: why, Next: next.String()}
	if f.Final = e.Ending || e.Attempt > e.Retries; f.Final {
		f.Next = e.again(m.at)
	}
	m.emitEffect(events.EffectFailedType, id, f)
	return !f.Final
}

// again returns when a repeated effect fires next: the first time of its schedule after now, so
// missed firings are skipped. It returns "" if there is no such time.
func (e effectState) again(now events.Time) string {
	switch {
	case e.Ending:
	case e.Every > 0:
		every := events.Time(e.Every) * 1000
		return (e.Plan + max(1, (now-e.Plan)/every+1)*every).String()
	case e.Cron != "":
		if plan, err := parseCron(e.Cron); err == nil {
			if at := after(plan, max(now, e.Plan)); at != 0 {
				return at.String()
			}
		}
	}
	return ""
}

// parseCron parses a cron expression. It refuses time zones: their rules come from the machine's
// time zone database, so another machine could decide differently.
func parseCron(text string) (cron.Schedule, error) {
	if strings.Contains(text, "TZ=") || strings.HasPrefix(text, "@every") {
		return nil, fmt.Errorf("time zones and @every are not allowed; times are UTC, and there is everyMs")
	}
	return cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(text)
}

// after returns the first time of a schedule after at, 0 if there is none.
func after(plan cron.Schedule, at events.Time) events.Time {
	next := plan.Next(at.Go())
	if next.IsZero() {
		return 0
	}
	return events.TimeOf(next)
}
