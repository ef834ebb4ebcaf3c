package thread

import (
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/skein-threads/skein/events"
)

// StartEffect begins an attempt at an effect. Workers ask for it, and nobody
// else: it is no command of the catalog. Two that ask for the same attempt are
// told apart here: one is done, the other is refused with an *EffectError.
type StartEffect struct {
	ID      string
	Firing  int64  // from 1
	Attempt int64  // at this firing, from 1; not looked at with Lost
	Claim   uint64 // the message that the worker holds, by its sequence
	// Lost takes the effect over from a worker that is gone: that of this
	// claim. Its attempt has failed then; there may be no other one.
	Lost uint64
}

// CompleteEffect ends an attempt that did what it was to do.
type CompleteEffect struct {
	ID              string
	Firing, Attempt int64
}

// FailEffect ends an attempt that failed.
type FailEffect struct {
	ID              string
	Firing, Attempt int64
	ErrorText       string
	AfterMs         int64 // at least so long until the next attempt
	// NotMade says that nobody took it: the attempt is put off, and does not count,
	// unless the firing has waited for too long.
	NotMade bool
}

// EffectStanding says how an effect stands with which a worker cannot do what
// it asked for.
type EffectStanding int

// How an effect may stand.
const (
	EffectGone    EffectStanding = iota + 1 // that attempt was made before, or the effect was cancelled, or never was
	EffectEarly                             // it is not due yet
	EffectRunning                           // a worker has it
)

// EffectError refuses what a worker asks for.
type EffectError struct {
	ID       string
	Standing EffectStanding
	At       events.Time // when it is due, if it is too early
	Firing   int64       // that runs, if it does
	Claim    uint64      // of who runs it
}

func (e *EffectError) Error() string {
	switch e.Standing {
	case EffectEarly:
		return fmt.Sprintf("effect %s is not due before %s", e.ID, e.At)
	case EffectRunning:
		return fmt.Sprintf("effect %s is run by the worker that holds message %d", e.ID, e.Claim)
	}
	return fmt.Sprintf("effect %s: that attempt is over, or was never to be made", e.ID)
}

func (m *maker) scheduleEffect(d events.ScheduleEffect) error {
	if m.state.Effects >= events.MaxEffects {
		return events.Errorf(events.QueueFull, "the thread has %d effects pending, which is the most that it may have; cancel some, or wait until they have run", m.state.Effects)
	}
	id := d.ID
	if id == "" {
		m.ids++
		id = events.DeriveEffectID(m.at, m.command.Tenant, m.command.ThreadID, m.command.ID, m.ids)
	}
	if _, taken := m.state.effect(id); taken {
		return events.Taken("effect", id)
	}
	s := events.EffectScheduled{ID: id, Name: d.Name, Args: d.Args, Cron: d.Cron, Retries: events.EffectRetries, BackoffMs: events.EffectBackoffMs}
	if d.Retries != nil {
		s.Retries = *d.Retries
	}
	if d.BackoffMs != nil {
		s.BackoffMs = *d.BackoffMs
	}
	at := m.at // no delay is at once
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

// emitEffect adds an event of an effect, which is a flow of its own.
func (m *maker) emitEffect(t events.Type, id string, data any) { m.emit(t, id, id, data) }

// cancelEffect makes no event if there is nothing to cancel: the effect has run,
// runs now, was cancelled or never was. A repeated one that runs now does not run
// again.
func (m *maker) cancelEffect(d events.CancelEffect) error {
	e, ok := m.state.effect(d.EffectID)
	if ok && !e.Ending && (!e.running() || e.repeated()) {
		m.emitEffect(events.EffectCancelledType, d.EffectID, events.EffectCancelled{Reason: d.Reason})
	}
	return nil
}

func (m *maker) startEffect(d StartEffect) error {
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

// attemptOf finds the effect whose attempt a worker ends.
func (m *maker) attemptOf(id string, firing, attempt int64) (effectState, error) {
	e, ok := m.state.effect(id)
	if !ok || !e.running() || e.Firing != firing || e.Attempt != attempt {
		return e, &EffectError{ID: id, Standing: EffectGone}
	}
	return e, nil
}

func (m *maker) completeEffect(d CompleteEffect) error {
	e, err := m.attemptOf(d.ID, d.Firing, d.Attempt)
	if err != nil {
		return err
	}
	m.emitEffect(events.EffectCompletedType, d.ID, events.EffectCompleted{Firing: d.Firing, Attempt: d.Attempt, Next: e.again(m.at)})
	return nil
}

func (m *maker) failEffect(d FailEffect) error {
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

// failAttempt records that an attempt failed, and reports whether there is
// another one, at the time that is given.
func (m *maker) failAttempt(id string, e effectState, why string, next events.Time) bool {
	f := events.EffectFailed{Firing: e.Firing, Attempt: e.Attempt, ErrorText: why, Next: next.String()}
	if f.Final = e.Ending || e.Attempt > e.Retries; f.Final {
		f.Next = e.again(m.at)
	}
	m.emitEffect(events.EffectFailedType, id, f)
	return !f.Final
}

// again gives the next firing of a repeated effect: the first time of its plan
// that lies ahead, so that what was missed is not made up for. Nothing, if there
// is none.
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

// parseCron reads a cron expression. A time zone is refused: its rules are the
// machine's, and another one would decide otherwise.
func parseCron(text string) (cron.Schedule, error) {
	if strings.Contains(text, "TZ=") || strings.HasPrefix(text, "@every") {
		return nil, fmt.Errorf("time zones and @every are not allowed; times are UTC, and there is everyMs")
	}
	return cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(text)
}

// after gives the first time of a plan after another time, 0 if there is none.
func after(plan cron.Schedule, at events.Time) events.Time {
	next := plan.Next(at.Go())
	if next.IsZero() {
		return 0
	}
	return events.TimeOf(next)
}
