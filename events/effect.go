package events

import (
	"strconv"
	"time"
)

// Limits of effects.
const (
	MaxEffects       = 1000                            // pending in one thread
	MaxEffectDelayMs = 10 * 366 * 24 * 3600 * 1000     // ten years: how far ahead an effect may be scheduled
	MinEffectEveryMs = 1000                            // the shortest period of a repeated effect
	EffectRetries    = 3                               // unless the caller sets it
	EffectBackoffMs  = 1000                            // unless the caller sets it
	MaxBackoffMs     = 3600 * 1000                     // the longest pause between two attempts
	MaxPutOffMs      = 5 * 60 * 1000                   // the longest pause after an attempt that no worker accepted
	EffectPatienceMs = 24 * 3600 * 1000                // how long a firing waits for a worker
	effectWhen       = "delayMs, at, everyMs and cron" // at most one of which may be set
)

// PurgeEffect is the effect that Skein itself runs: it deletes its thread and erases what that
// held, as thread.delete with purge does. While a run of the thread is active or waits, it is
// postponed, for a day at most; if it is repeated, without an end.
const PurgeEffect = "skein_purge"

// ScheduleEffect schedules work for later, outside the conversation. At most one of delayMs,
// at, everyMs and cron is set; none of them is a delay of 0, which means at once.
type ScheduleEffect struct {
	ID        string `json:"id,omitzero" schema:"pattern=uuid" doc:"The effect's id, a UUID, if the caller chooses it."`
	Name      string `json:"name" schema:"required,pattern=name" doc:"The effect's name, which a worker knows."`
	Args      JSON   `json:"args,omitzero" schema:"object" doc:"The arguments."`
	DelayMs   *int64 `json:"delayMs,omitzero" schema:"minimum=0,maximum=316224000000" doc:"After this many milliseconds; 0: at once."`
	At        string `json:"at,omitzero" schema:"pattern=time" doc:"At this time; at once if it has passed."`
	EveryMs   *int64 `json:"everyMs,omitzero" schema:"minimum=1000,maximum=316224000000" doc:"Repeatedly, after this many milliseconds each time."`
	Cron      string `json:"cron,omitzero" schema:"maxLength=256" doc:"Repeatedly, by a cron expression of five fields, or @hourly and the like, in UTC."`
	Retries   *int64 `json:"retries,omitzero" schema:"minimum=0,maximum=100" doc:"How often a failed firing is tried again; 3 if absent."`
	BackoffMs *int64 `json:"backoffMs,omitzero" schema:"minimum=0,maximum=3600000" doc:"The pause before the second attempt, doubled each time up to an hour; 1000 if absent."`
}

// Check validates what spans more than one field.
func (c ScheduleEffect) Check() error {
	n := 0
	for _, given := range []bool{c.DelayMs != nil, c.At != "", c.EveryMs != nil, c.Cron != ""} {
		if given {
			n++
		}
	}
	if n > 1 {
		return Invalid("", "at most one of %s is allowed", effectWhen)
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (ScheduleEffect) Constraint() string {
	const (
		delay = `{"required":["delayMs"],"properties":{"delayMs":{"type":"number"}}}`
		at    = `{"required":["at"],"properties":{"at":{"type":"string","minLength":1}}}`
		every = `{"required":["everyMs"],"properties":{"everyMs":{"type":"number"}}}`
		cron  = `{"required":["cron"],"properties":{"cron":{"type":"string","minLength":1}}}`
		none  = `{"not":{"anyOf":[` + delay + `,` + at + `,` + every + `,` + cron + `]}}`
	)
	return `{"oneOf":[` + none + `,` + delay + `,` + at + `,` + every + `,` + cron + `]}`
}

// CancelEffect cancels an effect. One that has run, is running or never existed is left as it
// is, which is not an error: the reply then has no event and no cancelled.
type CancelEffect struct {
	EffectID string `json:"effectId" schema:"required,pattern=uuid" doc:"The effect."`
	Reason   string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
}

func effectCommands() []Command {
	return []Command{
		command("effect.schedule", "Schedules work for later, outside the conversation.",
			ScheduleEffect{Name: "remind", Args: JSON(`{"about":"order 42"}`), DelayMs: new(int64(1800000))}, EffectScheduledType),
		command("effect.cancel", "Cancels an effect that is pending; no event if there is none.",
			CancelEffect{EffectID: exampleEffect, Reason: "answered"}, EffectCancelledType),
	}
}

// DeriveEffectID returns the id of the n-th effect that a command schedules: a UUID, the same
// for the same command at the same time.
func DeriveEffectID(at Time, tenant, thread, commandID string, n int) string {
	return deriveV7(at, tenant, thread, commandID, "effect", strconv.Itoa(n)).String()
}

// ScheduledEffect is an effect that has not ended. Times are microseconds since the Unix
// epoch, UTC, as in Standard Agents.
type ScheduledEffect struct {
	ID          string `json:"id" schema:"required" doc:"The effect's id, a UUID."`
	ThreadID    string `json:"threadId" schema:"required" doc:"Its thread."`
	Name        string `json:"name" schema:"required" doc:"The effect's name."`
	Args        JSON   `json:"args" schema:"required,object" doc:"The arguments, or an empty object."`
	ScheduledAt int64  `json:"scheduledAt" schema:"required" doc:"When it is to run, or run again, in microseconds."`
	CreatedAt   int64  `json:"createdAt" schema:"required" doc:"When it was scheduled, in microseconds."`
	EveryMs     int64  `json:"everyMs,omitzero" doc:"It is repeated after so many milliseconds."`
	Cron        string `json:"cron,omitzero" doc:"It is repeated by this cron expression, in UTC."`
	Retries     int64  `json:"retries" schema:"required" doc:"Attempts of a firing after its first."`
	Firing      int64  `json:"firing" schema:"required" doc:"Which firing it waits for, from 1."`
	Attempt     int64  `json:"attempt" schema:"required" doc:"How many attempts at that firing there were."`
	ErrorText   string `json:"errorText,omitzero" doc:"Why the last attempt failed."`
	Running     bool   `json:"running,omitzero" doc:"A worker is running it."`
	Ending      bool   `json:"ending,omitzero" doc:"It was cancelled while it ran."`
	Stamp
}

// ThreadEffect is a pending effect as Standard Agents defines it, and as a thread state returns it.
// Times are microseconds since the Unix epoch.
type ThreadEffect struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Args        JSON   `json:"args"`
	ScheduledAt int64  `json:"scheduledAt"`
	CreatedAt   int64  `json:"createdAt"`
}

// Thread returns the effect as a thread state shows it.
func (e *ScheduledEffect) Thread() ThreadEffect {
	return ThreadEffect{ID: e.ID, Name: e.Name, Args: e.Args, ScheduledAt: e.ScheduledAt, CreatedAt: e.CreatedAt}
}

// ScheduleOption sets a field of an effect that a thread state schedules.
type ScheduleOption func(*ScheduleEffect)

// Attempts sets how often a firing of the effect is attempted in all, from 1 to 101; 4 without it.
func Attempts(n int64) ScheduleOption {
	return func(d *ScheduleEffect) { d.Retries = new(n - 1) }
}

// Repeated reports whether the effect runs more than once.
func (e *ScheduledEffect) Repeated() bool { return e.EveryMs > 0 || e.Cron != "" }

// Pending reports whether the effect will still run: it is not running, or it will run again
// afterwards.
func (e *ScheduledEffect) Pending() bool { return !e.Ending && (!e.Running || e.Repeated()) }

// ListEffects returns pending effects of a thread, or of all threads of the tenant, the earliest
// due first.
type ListEffects struct {
	ThreadID string     `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"The thread; absent: all of the tenant's."`
	Name     string     `json:"name,omitzero" schema:"pattern=name" doc:"Only those of this name."`
	Only     EffectView `json:"only,omitzero" doc:"Only late or repeated ones, or those whose last attempt failed."`
	At       *At        `json:"at,omitzero" doc:"As they were then."`
	Limit    *int64     `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; if absent, 50 of a tenant's, and of a thread's as many as one answer holds."`
	Cursor   string     `json:"cursor,omitzero" schema:"maxLength=256" doc:"nextCursor of the page before."`
	Fresh
}

// EffectView is which of the pending effects a list shows.
type EffectView string

// The views.
const (
	EffectsLate      EffectView = "late"
	EffectsRepeating EffectView = "repeating"
	EffectsFailing   EffectView = "failing"
)

// Enum returns the values.
func (EffectView) Enum() []string {
	return []string{string(EffectsLate), string(EffectsRepeating), string(EffectsFailing)}
}

// EffectLate is how long after its time an effect that does not run is late.
const EffectLate = time.Minute

// Late reports whether the effect should have been started by now.
func (e *ScheduledEffect) Late(now time.Time) bool {
	return !e.Running && e.ScheduledAt < now.Add(-EffectLate).UnixMicro()
}

// EffectList is a page of pending effects.
type EffectList struct {
	Effects    []ScheduledEffect `json:"effects" schema:"required" doc:"The effects."`
	NextCursor string            `json:"nextCursor,omitzero" doc:"For the next page; absent on the last one."`
}
