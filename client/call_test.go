package client_test

import (
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Work that is repeated with the same key writes once what it writes again; what it writes twice,
// writes otherwise, or writes elsewhere is another command.
func TestAsCall_RepeatedWorkWritesOnce(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	thread, other := newThread(t, c), newThread(t, c)
	work := func(key string, texts ...string) {
		t.Helper()
		own := client.AsCall(c, key)
		for _, text := range texts {
			if _, err := own.Send(t.Context(), thread, message(text)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := own.Send(t.Context(), other, message("elsewhere")); err != nil {
			t.Fatal(err)
		}
		state, err := own.Thread(t.Context(), thread)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := state.ScheduleEffect(t.Context(), "remind", map[string]any{"n": 1}, time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := state.WriteFile(t.Context(), "/a.txt", []byte(key), "text/plain", client.WriteFileOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	work("k1", "a", "b", "a")
	work("k1", "a", "b", "a") // the same again
	work("k1", "a", "c")      // it comes to another result, and writes that
	work("k2", "a")           // other work
	now, err := c.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{thread: 5, other: 2} { // a, b, a, c, a
		list, err := client.Read(t.Context(), now, events.ListItems{ThreadID: id})
		if err != nil || len(list.Items) != want {
			t.Errorf("%d items, not %d, %v", len(list.Items), want, err)
		}
	}
	if list, err := now.ScheduledEffects(t.Context(), thread, "remind"); err != nil || len(list) != 2 {
		t.Errorf("%d effects, %v", len(list), err)
	}
}
