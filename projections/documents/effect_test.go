package documents

import (
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// TestEffects shows SA-79..SA-83 and SA-86: an effect has a document until it has
// ended, with times in microseconds.
func TestEffects(t *testing.T) {
	h := newHistory(t, 1)
	h.do(events.CreateThread{})
	const id, other = "0195e5d0-3c1a-4b2e-9f44-1d2e3f405168", "0195e5d0-3c1a-4b2e-9f44-1d2e3f405169"
	h.do(events.ScheduleEffect{ID: id, Name: "remind", Args: raw(`{"n":1}`), DelayMs: to(int64(0)), Retries: to(int64(1)), BackoffMs: to(int64(100))})
	h.do(events.ScheduleEffect{ID: other, Name: "tidy", EveryMs: to(int64(1000))})
	get := func(of string) *events.ScheduledEffect {
		doc, _ := fold(t, h, Until{}).Get(Place{Kind: Effects, Thread: ThreadName(tenant, h.id), ID: of}).(*events.ScheduledEffect)
		return doc
	}
	made := int64(h.state.Time)
	e := get(other)
	if e.ScheduledAt != e.CreatedAt+1000*1000 || e.CreatedAt != made || string(e.Args) != "{}" || e.Retries != 3 || e.EveryMs != 1000 || !e.Pending() || !e.Repeated() || e.Firing != 1 {
		t.Errorf("%+v", e)
	}
	e = get(id)
	if e.ScheduledAt != e.CreatedAt || e.ID != id || e.ThreadID != h.id || e.Name != "remind" || string(e.Args) != `{"n":1}` || !e.Pending() || e.Version == 0 {
		t.Errorf("%+v", e)
	}
	start := func(of string, firing, attempt int64) {
		h.now += 2_000_000
		h.do(thread.StartEffect{ID: of, Firing: firing, Attempt: attempt, Claim: 7})
	}
	start(id, 1, 1)
	if e := get(id); e.Pending() || !e.Running || e.Attempt != 1 {
		t.Errorf("while it runs: %+v", e)
	}
	h.do(thread.FailEffect{ID: id, Firing: 1, Attempt: 1, ErrorText: "no"})
	if e := get(id); !e.Pending() || e.Attempt != 1 || e.ErrorText != "no" || e.ScheduledAt != int64(h.state.Time)+100_000 {
		t.Errorf("until it is tried again: %+v", e)
	}
	start(id, 1, 2)
	h.do(thread.CompleteEffect{ID: id, Firing: 1, Attempt: 2})
	if e := get(id); e != nil {
		t.Errorf("when it has run: %+v", e)
	}

	start(other, 1, 1)
	if e := get(other); !e.Pending() || !e.Running {
		t.Errorf("repeated, while it runs: %+v", e)
	}
	h.do(thread.CompleteEffect{ID: other, Firing: 1, Attempt: 1})
	if e := get(other); !e.Pending() || e.Running || e.Firing != 2 || e.Attempt != 0 || (e.ScheduledAt-e.CreatedAt)%1_000_000 != 0 || e.ScheduledAt <= int64(h.state.Time) {
		t.Errorf("repeated, until it runs again: %+v", e)
	}
	start(other, 2, 1)
	h.do(events.CancelEffect{EffectID: other})
	if e := get(other); e.Pending() || !e.Ending {
		t.Errorf("cancelled while it runs: %+v", e)
	}
	h.do(thread.CompleteEffect{ID: other, Firing: 2, Attempt: 1})
	if e := get(other); e != nil {
		t.Errorf("when its last firing has ended: %+v", e)
	}
	h.do(events.ScheduleEffect{ID: id, Name: "x"})
	h.do(events.CancelEffect{EffectID: id})
	if e := get(id); e != nil {
		t.Errorf("cancelled: %+v", e)
	}
}
