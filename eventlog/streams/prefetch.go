package streams

import (
	"context"
	"iter"
	"sync"
)

// Prefetch yields what read yields, which is read ahead, so that a request to the server and the
// work on the answer to the one before overlap. What it holds that nobody has asked for yet weighs
// at most three times most, and three values. If ctx ends before all was yielded, its cause is yielded
// last.
func Prefetch[T any](ctx context.Context, most int, weigh func(T) int, read func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	type result struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		outer := ctx
		ctx, stop := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		chunks := make(chan []result, 1)
		cut := false // not all that was read was sent; set before chunks is closed
		running.Go(func() {
			defer close(chunks)
			var chunk []result
			weight := 0
			send := func() bool {
				select {
				case chunks <- chunk:
					chunk, weight = nil, 0
					return true
				case <-ctx.Done():
					cut = true
					return false
				}
			}
			for value, err := range read(ctx) {
				chunk = append(chunk, result{value, err})
				weight += weigh(value)
				if (weight >= most || len(chunks) == 0) && !send() {
					return
				}
			}
			if len(chunk) > 0 {
				send()
			}
		})
		for chunk := range chunks {
			for _, r := range chunk {
				if !yield(r.value, r.err) {
					return
				}
			}
		}
		if cut {
			var none T
			yield(none, context.Cause(outer))
		}
	}
}
