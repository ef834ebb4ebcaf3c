package quota

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A request may do one unit of work, and one that does much takes a place until it ends. What goes on
// after it needs none.
func TestWork_LongReads(t *testing.T) {
	places := NewPool("reads", Places{Total: 1}, nil)
	var owed float64
	w := NewWork("acme", places, func(_ string, units float64, _ time.Time) time.Duration {
		owed += units
		return 0
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
	late, end := context.WithCancelCause(t.Context())
	end(wanted)
	w = NewWork("acme", nil, func(string, float64, time.Time) time.Duration { return time.Hour })
	if err := SpendRequests(w.In(late), 2, 0); !errors.Is(err, wanted) {
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
		w := NewWork("acme", places, func(_ string, units float64, _ time.Time) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			owed += units
			return 0
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
		if err := read(NewWork("late", places, w.charge).In(gone), messages); !errors.Is(err, context.Canceled) || held != unitMessages {
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

// While others are active, readers wait for what their tenant has read before they read more, and so
// hold nothing of it, also where each request reads once.
func TestRead_HoldsNothingWhileItIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Fair{Rate: 100}, func(request) {}, nil)
		busy := time.NewTicker(queueActive / 4) // of another tenant
		defer busy.Stop()
		end := make(chan struct{})
		go func() {
			for {
				q.fair.Activity.Note("quiet", time.Now())
				select {
				case <-busy.C:
				case <-end:
					return
				}
			}
		}()
		synctest.Wait()
		const readers, reads, messages = 4, 8, 100 * unitMessages // each is a second's worth
		var mu sync.Mutex                                         // guards held
		held := 0
		hold := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			held += n
		}
		began := time.Now()
		var all sync.WaitGroup
		for r := range readers {
			all.Go(func() {
				w := NewWork("loud", nil, q.Spend)
				for range reads {
					if r%2 > 0 { // a request for each read
						w = NewWork("loud", nil, q.Spend)
					}
					err := Read(w.In(t.Context()), func() (int, int, error) {
						hold(messages)
						return messages, 0, nil
					}, func() { t.Error("a place was waited for") })
					if err != nil {
						t.Error(err)
					}
					hold(-messages) // it is used
				}
			})
		}
		looked := 0
		for time.Since(began) < (reads-2)*readers*time.Second {
			synctest.Wait()
			mu.Lock()
			if held > 0 {
				t.Errorf("%d messages are held after %v", held, time.Since(began))
			}
			mu.Unlock()
			looked++
			time.Sleep(100 * time.Millisecond)
		}
		all.Wait()
		close(end)
		if took := time.Since(began); took < (reads-1)*readers*time.Second*9/10 {
			t.Errorf("%d reads of a second's worth took %v", readers*reads, took)
		}
	})
}
