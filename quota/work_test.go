package quota

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// A request may do one unit of work, and one that does much takes a place until it ends. What goes on
// after it needs none.
func TestWork_LongReads(t *testing.T) {
	places := NewPool("reads", Places{Total: 1}, nil)
	var owed float64
	w := NewWork("acme", places, func(_ context.Context, _ string, units float64) error {
		owed += units
		return nil
	})
	ctx := w.In(t.Context())
	spend := func(ctx context.Context, messages, bytes int) {
		t.Helper()
		read := func() (int, int, error) { return messages, bytes, nil }
		if err := Read(ctx, read, func() { t.Error("a place was waited for") }); err != nil {
			t.Fatal(err)
		}
	}
	taken := func() bool {
		leave, err := places.Try("globex")
		if err == nil {
			leave()
		}
		return errors.As(err, new(*FullError))
	}
	spend(ctx, unitMessages/2, unitBytes/2)
	if owed != 0 {
		t.Errorf("the first unit costs %g", owed)
	}
	spend(Placed(ctx), longWork*unitMessages, 0)
	spend(Unmeasured(ctx), longWork*unitMessages, 0)
	spend(t.Context(), longWork*unitMessages, 0)
	if owed != longWork || taken() {
		t.Errorf("%g units are owed; taken: %v", owed, taken())
	}
	spend(ctx, unitMessages, 0)
	if owed != longWork+1 || !taken() {
		t.Errorf("%g units are owed; taken: %v", owed, taken())
	}
	after := Continue(ctx, t.Context())
	w.End()
	if taken() {
		t.Error("the place was kept")
	}
	spend(ctx, longWork*unitMessages, 0) // a reader that is late
	spend(after, 2*longWork*unitMessages, 0)
	if owed != 4*longWork || taken() {
		t.Errorf("%g units are owed; taken: %v", owed, taken())
	}
	if err := SpendRequests(after, 3, unitSent); err != nil || owed != 4*longWork+4 {
		t.Errorf("%g units are owed, %v", owed, err)
	}
	wanted := errors.New("too long")
	w = NewWork("acme", nil, func(context.Context, string, float64) error { return wanted })
	if err := SpendRequests(w.In(t.Context()), 2, 0); !errors.Is(err, wanted) {
		t.Errorf("%v", err)
	}
}

// Who waits for a place holds nothing of what was read, however many of its reads wait, and reads it
// again, which counts once.
func TestRead_HoldsNothingWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPool("reads", Places{Total: 1}, nil)
		free, err := places.Try("globex")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex // guards what the reads change
		var owed float64
		w := NewWork("acme", places, func(_ context.Context, _ string, units float64) error {
			mu.Lock()
			defer mu.Unlock()
			owed += units
			return nil
		})
		held, began := 0, 0
		read := func(ctx context.Context, messages int) error {
			return Read(ctx, func() (int, int, error) {
				mu.Lock()
				defer mu.Unlock()
				began++
				held += messages
				return messages, 0, nil
			}, func() {
				mu.Lock()
				defer mu.Unlock()
				held -= messages
			})
		}
		if err := read(w.In(t.Context()), unitMessages); err != nil || held != unitMessages {
			t.Errorf("%d messages are held of a read that needs no place: %v", held, err)
		}
		const reads, messages = 3, longWork * unitMessages
		for range reads {
			go func() {
				if err := read(w.In(t.Context()), messages); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if held != unitMessages || began != 1+reads {
			t.Errorf("%d messages are held by those who wait; %d reads began", held, began)
		}
		gone, giveUp := context.WithCancel(t.Context())
		giveUp()
		if err := read(NewWork("late", places, nil).In(gone), messages); !errors.Is(err, context.Canceled) || held != unitMessages {
			t.Errorf("one that gave up holds %d messages: %v", held, err)
		}
		free()
		synctest.Wait()
		if want := unitMessages + reads*messages; held != want || began != 2+2*reads || owed != reads*longWork {
			t.Errorf("%d messages of %d were returned, by %d reads, and %g units counted", held, want, began, owed)
		}
		w.End()
		if leave, err := places.Try("globex"); err != nil {
			t.Error("the place was kept:", err)
		} else {
			leave()
		}
	})
}
