package quota

import (
	"context"
	"errors"
	"testing"
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
		if err := Spend(ctx, messages, bytes); err != nil {
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
