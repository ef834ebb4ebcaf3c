package thread

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/events"
)

const (
	effectID = "0195e5d0-3c1a-4b2e-9f44-1d2e3f405168"
	claim    = 41
)

// start asks for an attempt as a worker does, at a time.
func (k *story) start(at events.Time, d StartEffect) ([]events.Event, error) {
	k.t.Helper()
	if d.ID == "" {
		d.ID, d.Claim = effectID, max(d.Claim, claim)
	}
	c := k.command(d)
	c.Time = max(c.Time, at)
	k.now = c.Time
	return k.try(c)
}

// stands checks that a worker was refused because the effect stands so.
func stands(t *testing.T, err error, want EffectStanding) *EffectError {
	t.Helper()
	var e *EffectError
	if !errors.As(err, &e) || e.Standing != want {
		t.Fatalf("refused with %v, want standing %d", err, want)
	}
	return e
}

// SA-70, SA-74, SA-75, SA-76, SA-77, SA-78, SA-83, C-38: what is scheduled, when,
// under which id, and as a flow of its own.
func TestScheduleEffect(t *testing.T) {
	k := begun(t)
	made := k.do(events.ScheduleEffect{Name: "remind", Args: raw(`{"about":"order 42"}`), DelayMs: to(int64(30 * 60 * 1000))})
	id := made[0].Subject
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		t.Errorf("the id %q is no UUID", id)
	}
	want(t, made, fact{events.EffectScheduledType, id, id, events.EffectScheduled{
		ID: id, Name: "remind", Args: raw(`{"about":"order 42"}`), ScheduledAt: (made[0].Time + 30*60*1e6).String(), Retries: 3, BackoffMs: 1000,
	}})
	if other := k.do(events.ScheduleEffect{Name: "remind"})[0].Subject; other == id {
		t.Error("two effects have one id")
	}
	sixth := events.TimeOf(time.Date(2026, 2, 20, 6, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		d    events.ScheduleEffect
		want func(now events.Time) events.Time
	}{
		{events.ScheduleEffect{}, func(now events.Time) events.Time { return now }},
		{events.ScheduleEffect{DelayMs: to(int64(0))}, func(now events.Time) events.Time { return now }},
		{events.ScheduleEffect{At: sixth.String()}, func(now events.Time) events.Time { return now }},
		{events.ScheduleEffect{At: (dawn + 9*day).String()}, func(events.Time) events.Time { return dawn + 9*day }},
		{events.ScheduleEffect{At: (k.now + 5*1000 + events.MaxEffectDelayMs*1000).String()}, func(now events.Time) events.Time { return now + events.MaxEffectDelayMs*1000 }},
		{events.ScheduleEffect{EveryMs: to(int64(1500))}, func(now events.Time) events.Time { return now + 1_500_000 }},
		{events.ScheduleEffect{Cron: "0 6 * * *"}, func(events.Time) events.Time { return sixth + day }},
		{events.ScheduleEffect{Cron: "@hourly"}, func(events.Time) events.Time { return dawn + 3600*1e6 }},
	} {
		c.d.Name, c.d.Retries, c.d.BackoffMs = "x", to(int64(0)), to(int64(7))
		made := k.do(c.d)
		d := made[0].Data.(events.EffectScheduled)
		if d.ScheduledAt != c.want(made[0].Time).String() || d.Retries != 0 || d.BackoffMs != 7 {
			t.Errorf("%+v made %+v, want it at %s", c.d, d, c.want(made[0].Time))
		}
	}
}

func TestScheduleEffect_Refusals(t *testing.T) {
	k := begun(t)
	k.do(events.ScheduleEffect{ID: effectID, Name: "x"})
	wantRefusal(t, k.refuse(events.ScheduleEffect{ID: effectID, Name: "x"}), events.AlreadyExists, events.ErrorDetails{Entity: "effect", ID: effectID})
	for path, d := range map[string]events.ScheduleEffect{
		"/data/at":   {Name: "x", At: (dawn + 4000*day).String()},
		"/data/cron": {Name: "x", Cron: "every day"},
	} {
		wantRefusal(t, k.refuse(d), events.InvalidRequest, events.ErrorDetails{Path: path})
	}
	for _, bad := range []string{"0 0 30 2 *", "CRON_TZ=Europe/Berlin 0 6 * * *", "TZ=", "@every 1s", "* * * * * *", "61 * * * *"} {
		wantRefusal(t, k.refuse(events.ScheduleEffect{Name: "x", Cron: bad}), events.InvalidRequest, events.ErrorDetails{Path: "/data/cron"})
	}
}

// A thread may have 1,000 effects pending; also those of one commit count.
func TestScheduleEffect_Limit(t *testing.T) {
	k := begun(t)
	for k.state.Effects < events.MaxEffects-1 {
		batch := make([]any, min(100, events.MaxEffects-1-k.state.Effects))
		for i := range batch {
			batch[i] = events.ScheduleEffect{Name: "x", DelayMs: to(int64(1000))}
		}
		k.do(batch...)
	}
	one := events.ScheduleEffect{ID: effectID, Name: "x"}
	if e := k.refuse(events.ScheduleEffect{Name: "x"}, one); e.Code != events.QueueFull || !strings.Contains(e.Message, "1000 effects") {
		t.Errorf("refused with %v", e)
	}
	k.do(one)
	if e := k.refuse(events.ScheduleEffect{Name: "x"}); e.Code != events.QueueFull {
		t.Errorf("refused with %v", e)
	}
	k.do(events.CancelEffect{EffectID: effectID})
	k.do(one)
	k.do(events.DeleteThread{})
	if k.state.Effects != 0 || len(k.state.effects) != 0 {
		t.Errorf("%d effects are left of a deleted thread", k.state.Effects)
	}
}

// SA-85, SA-86: an effect is cancelled while it is pending, once; what runs, has
// run or never was makes no event and no error.
func TestCancelEffect(t *testing.T) {
	k := begun(t)
	cancel := events.CancelEffect{EffectID: effectID, Reason: "answered"}
	nothing := func(when string) {
		t.Helper()
		if made := k.do(cancel); len(made) != 0 {
			t.Errorf("%s it made %v", when, made)
		}
	}
	cancelled := fact{events.EffectCancelledType, effectID, effectID, events.EffectCancelled{Reason: "answered"}}
	nothing("before it was,")
	k.do(events.ScheduleEffect{ID: effectID, Name: "x"})
	want(t, k.do(cancel), cancelled)
	nothing("cancelled,")
	if _, err := k.start(0, StartEffect{Firing: 1, Attempt: 1}); err == nil {
		t.Error("it was begun after it was cancelled")
	} else {
		stands(t, err, EffectGone)
	}

	k.do(events.ScheduleEffect{ID: effectID, Name: "x"})
	k.mustStart(t, 1, 1)
	nothing("while it ran,")
	k.do(FailEffect{ID: effectID, Firing: 1, Attempt: 1, ErrorText: "no"})
	want(t, k.do(cancel), cancelled) // it waits to be tried again

	k.do(events.ScheduleEffect{ID: effectID, Name: "x"})
	k.mustStart(t, 1, 1)
	k.do(CompleteEffect{ID: effectID, Firing: 1, Attempt: 1})
	nothing("when it had run,")

	k.do(events.ScheduleEffect{ID: effectID, Name: "x", EveryMs: to(int64(1000))})
	k.now += 1e6
	k.mustStart(t, 1, 1)
	want(t, k.do(cancel), cancelled) // it runs, and is not to run again
	nothing("cancelled while it ran,")
	want(t, k.do(CompleteEffect{ID: effectID, Firing: 1, Attempt: 1}),
		fact{events.EffectCompletedType, effectID, effectID, events.EffectCompleted{Firing: 1, Attempt: 1}})
	if k.state.Effects != 0 {
		t.Errorf("%d effects are left", k.state.Effects)
	}
}

func (k *story) mustStart(t *testing.T, firing, attempt int64) events.Event {
	t.Helper()
	made, err := k.start(0, StartEffect{Firing: firing, Attempt: attempt})
	if err != nil {
		t.Fatal(err)
	}
	want(t, made, fact{events.EffectStartedType, effectID, effectID, events.EffectStarted{Firing: firing, Attempt: attempt, Claim: claim}})
	return made[0]
}

// Only what is pending and due begins, each attempt once; who was replaced ends
// nothing.
func TestStartEffect(t *testing.T) {
	k := begun(t)
	due := k.now + 1000 + 60e6
	k.do(events.ScheduleEffect{ID: effectID, Name: "x", DelayMs: to(int64(60_000)), Retries: to(int64(2))})
	first := StartEffect{Firing: 1, Attempt: 1}
	_, err := k.start(due-1, first)
	if e := stands(t, err, EffectEarly); e.At != due {
		t.Errorf("it is due at %s, told %s", due, e.At)
	}
	for _, wrong := range []StartEffect{{Firing: 1, Attempt: 2}, {Firing: 2, Attempt: 1}, {Firing: 1, Attempt: 1, Lost: 9}} {
		_, err := k.start(due, wrong)
		stands(t, err, EffectGone)
	}
	k.mustStart(t, 1, 1)
	_, err = k.start(0, StartEffect{ID: effectID, Firing: 1, Attempt: 1, Claim: 99})
	if e := stands(t, err, EffectRunning); e.Claim != claim {
		t.Errorf("told of claim %d, want %d", e.Claim, claim)
	}
	_, err = k.start(0, StartEffect{ID: effectID, Firing: 1, Attempt: 1, Claim: 99, Lost: 7})
	stands(t, err, EffectRunning)

	made, err := k.start(0, StartEffect{ID: effectID, Firing: 1, Attempt: 1, Claim: 99, Lost: claim})
	if err != nil {
		t.Fatal(err)
	}
	want(t, made,
		fact{events.EffectFailedType, effectID, effectID, events.EffectFailed{Firing: 1, Attempt: 1, ErrorText: "the worker that ran it was lost", Next: made[0].Time.String()}},
		fact{events.EffectStartedType, effectID, effectID, events.EffectStarted{Firing: 1, Attempt: 2, Claim: 99}})
	for _, late := range []any{CompleteEffect{ID: effectID, Firing: 1, Attempt: 1}, FailEffect{ID: effectID, Firing: 1, Attempt: 1}} {
		_, err := k.try(k.command(late))
		stands(t, err, EffectGone)
	}
	k.start(0, StartEffect{ID: effectID, Firing: 1, Claim: 100, Lost: 99})
	made, err = k.start(0, StartEffect{ID: effectID, Firing: 1, Claim: 101, Lost: 100})
	if err != nil {
		t.Fatal(err)
	}
	want(t, made, fact{events.EffectFailedType, effectID, effectID, events.EffectFailed{Firing: 1, Attempt: 3, ErrorText: "the worker that ran it was lost", Final: true}})
	if k.state.Effects != 0 {
		t.Error("an effect is pending after its last attempt")
	}
}

// The pause doubles up to an hour, and may be asked to be longer; the last
// attempt is final.
func TestFailEffect_Backoff(t *testing.T) {
	k := begun(t)
	k.do(events.ScheduleEffect{ID: effectID, Name: "x", Retries: to(int64(13))})
	for attempt := int64(1); attempt <= 14; attempt++ {
		e, _ := k.state.effect(effectID)
		k.now = max(k.now, e.At)
		k.mustStart(t, 1, attempt)
		fail := FailEffect{ID: effectID, Firing: 1, Attempt: attempt, ErrorText: "no " + strconv.FormatInt(attempt, 10)}
		pause := min(events.Time(1e6)<<(attempt-1), 3600e6)
		if attempt == 2 {
			fail.AfterMs, pause = 5000, 5e6
		}
		made := k.do(fail)
		d := made[0].Data.(events.EffectFailed)
		next := (made[0].Time + pause).String()
		if attempt == 14 {
			next = ""
		}
		if d.Next != next || d.Final != (attempt == 14) || d.ErrorText != fail.ErrorText {
			t.Errorf("attempt %d: %+v, want the next at %s", attempt, d, next)
		}
	}
}

// A repeated effect keeps to its plan, whenever its firings end, and what was
// missed runs once.
func TestEffects_RepeatOnSchedule(t *testing.T) {
	k := begun(t)
	began := k.do(events.ScheduleEffect{ID: effectID, Name: "x", EveryMs: to(int64(10_000)), Retries: to(int64(1))})[0].Time
	for _, c := range []struct{ ends, next events.Time }{
		{13e6, 20e6}, {20e6 + 5, 30e6}, {95e6, 100e6}, {110e6, 120e6},
	} {
		e, _ := k.state.effect(effectID)
		k.now = max(k.now, e.At)
		k.mustStart(t, e.Firing, 1)
		k.now = began + c.ends - 1000
		d := k.do(CompleteEffect{ID: effectID, Firing: e.Firing, Attempt: 1})[0].Data.(events.EffectCompleted)
		if want := (began + c.next).String(); d.Next != want {
			t.Errorf("ended at %d, it runs next at %s, want %s", c.ends, d.Next, want)
		}
	}
	// A firing that fails is tried again; the plan does not move with that.
	k.now = began + 120e6
	k.mustStart(t, 5, 1)
	k.do(FailEffect{ID: effectID, Firing: 5, Attempt: 1, ErrorText: "no"})
	k.now += 1e6
	k.mustStart(t, 5, 2)
	d := k.do(FailEffect{ID: effectID, Firing: 5, Attempt: 2, ErrorText: "no"})[0].Data.(events.EffectFailed)
	if !d.Final || d.Next != (began+130e6).String() {
		t.Errorf("after its last attempt: %+v", d)
	}

	const hourly = "0195e5d0-3c1a-4b2e-9f44-1d2e3f405169"
	k.do(events.ScheduleEffect{ID: hourly, Name: "x", Cron: "0 * * * *"})
	k.now = dawn + 3600e6
	k.do(StartEffect{ID: hourly, Firing: 1, Attempt: 1, Claim: 5})
	k.now = dawn + 5*3600e6
	if d := k.do(CompleteEffect{ID: hourly, Firing: 1, Attempt: 1})[0].Data.(events.EffectCompleted); d.Next != (dawn + 6*3600e6).String() {
		t.Errorf("the plan of hours goes on at %s", d.Next)
	}
}
