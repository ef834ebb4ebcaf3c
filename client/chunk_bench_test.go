package client_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
)

// BenchmarkChunkWatchers measures a run of 50 chunks a second with many watchers on
// eight connections: the time from emitting a chunk until each watcher has it.
//
//	go test -run '^$' -bench ChunkWatchers -benchtime 200x ./client
func BenchmarkChunkWatchers(b *testing.B) {
	for _, watchers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(watchers), func(b *testing.B) {
			url := start(b)
			r := newRun(b, url)
			var conns []*client.Client
			for range 8 {
				conns = append(conns, connect(b, url))
			}
			w := r.writer(1)
			r.say(w, 0, 1)
			var mu sync.Mutex
			var took []time.Duration
			var there, readers sync.WaitGroup
			there.Add(watchers)
			for i := range watchers {
				readers.Go(func() {
					var own []time.Duration
					s := read(b.Context(), conns[i%len(conns)], r.thread, r.execution, func(c client.Chunk) {
						if c.Index == 0 {
							there.Done()
							return
						}
						own = append(own, time.Since(c.Time))
					})
					if len(s.chunks) != b.N+2 || len(s.gaps) > 0 || s.err != nil {
						b.Errorf("%d chunks, gaps %v: %v", len(s.chunks), s.gaps, s.err)
					}
					mu.Lock()
					defer mu.Unlock()
					took = append(took, own...)
				})
			}
			there.Wait()
			b.ResetTimer()
			for i := range b.N {
				r.say(w, i+1, i+2)
				time.Sleep(20 * time.Millisecond)
			}
			r.finish(w)
			readers.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}
