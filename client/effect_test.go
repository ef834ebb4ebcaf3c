package client_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/events"
)

// SA-74, SA-77, SA-78, SA-79..SA-83, SA-84, SA-85, SA-86: as a program uses effects,
// with a whole Skein.
func TestEffects(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	thread := newThread(t, c)
	pending := func(name string, want ...string) []events.ScheduledEffect {
		t.Helper()
		now, err := c.UpToDate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list, err := now.ScheduledEffects(t.Context(), thread, name)
		if err != nil || list == nil || len(list) != len(want) {
			t.Fatalf("pending %q: %+v, %v; want %q", name, list, err, want)
		}
		for i, e := range list {
			if e.ID != want[i] {
				t.Errorf("pending %d is %+v, want %s", i, e, want[i])
			}
		}
		return list
	}
	pending("")
	delay := int64(30 * 60 * 1000)
	reply, err := c.Send(t.Context(), thread, events.ScheduleEffect{Name: "remind", Args: events.JSON(`{"n":1}`), DelayMs: &delay})
	if err != nil || uuid.Validate(reply.Result.EffectID) != nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	id := reply.Result.EffectID
	every := 2 * delay
	reply, err = c.Send(t.Context(), thread, events.ScheduleEffect{Name: "tidy", EveryMs: &every})
	if err != nil {
		t.Fatal(err)
	}
	tidy := reply.Result.EffectID
	if e := pending("", id, tidy)[0]; e.Name != "remind" || string(e.Args) != `{"n":1}` || e.ScheduledAt != e.CreatedAt+delay*1000 {
		t.Errorf("%+v", e)
	}
	pending("tidy", tidy)
	pending("nobody")
	for i, want := range []bool{true, false, false} { // pending; then cancelled already
		if got, err := c.RemoveScheduledEffect(t.Context(), thread, id); got != want || err != nil {
			t.Errorf("removing it the %d. time gave %v, %v", i+1, got, err)
		}
	}
	if got, err := c.RemoveScheduledEffect(t.Context(), thread, uuid.NewString()); got || err != nil {
		t.Errorf("removing one that never was gave %v, %v", got, err)
	}
	pending("", tidy)

	_, err = c.Send(t.Context(), thread, events.ScheduleEffect{Name: "x", DelayMs: &delay, Cron: "@daily"})
	if !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
		t.Errorf("two times at once: %v", err)
	}
	if _, err := c.RemoveScheduledEffect(t.Context(), "T-01900000-0000-7000-8000-000000000000", id); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("of no thread: %v", err)
	}
}
