package streams

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
)

// What is read ahead is yielded in its order, with its error; as much is held as may be, and
// nothing is read once nobody wants more.
func TestPrefetch_IsBounded(t *testing.T) {
	failed := errors.New("the server is gone")
	for name, c := range map[string]struct {
		most, weight int
		held, atMost int // values that are read and not asked for, when the first one is looked at; with a slow reader more
	}{
		"a value at a time": {1, 1, 2, 2},
		"a chunk":           {10, 1, 11, 20},
		"heavy values":      {10, 100, 2, 2},
		"some":              {10, 4, 4, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				given, ended := 0, false
				read := func(ctx context.Context) iter.Seq2[int, error] {
					return func(yield func(int, error) bool) {
						defer func() { ended = true }()
						for given < 100 {
							if given++; !yield(given-1, nil) {
								return
							}
						}
						yield(0, failed)
					}
				}
				values, got := Prefetch(t.Context(), c.most, func(int) int { return c.weight }, read), 0
				for value, err := range values {
					synctest.Wait()
					if got == 0 && (given < 1+c.held || given > 1+c.atMost) {
						t.Errorf("%d values are read ahead, not %d to %d", given-1, c.held, c.atMost)
					}
					if err != nil {
						if !errors.Is(err, failed) || got != 100 {
							t.Errorf("%v after %d values", err, got)
						}
						break
					}
					if value != got {
						t.Fatalf("%d in the place of %d", value, got)
					}
					got++
				}
				if got != 100 || !ended {
					t.Errorf("%d values; ended: %v", got, ended)
				}
				given, ended = 0, false
				for range values {
					break
				}
				if !ended || given > 3*c.most {
					t.Errorf("%d values were read, and the reading ended: %v", given, ended)
				}
			})
		})
	}
}

// Who reads what is prefetched must not take the end of its context for the end of the values.
func TestPrefetch_ContextEnds(t *testing.T) {
	stopped := errors.New("stopped")
	for range 20 { // what is ready first is drawn by chance
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		read := func(ctx context.Context) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for n := range 3 {
					if !yield(n, nil) {
						return
					}
				}
				<-ctx.Done()
				yield(0, context.Cause(ctx))
			}
		}
		var last error
		for _, last = range Prefetch(ctx, 1, func(int) int { return 1 }, read) {
			stop(stopped)
		}
		if !errors.Is(last, stopped) {
			t.Fatalf("the last error is %v", last)
		}
	}
}
