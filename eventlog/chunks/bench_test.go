package chunks_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// BenchmarkChunks measures chunks of 20 bytes through one writer, as fast as it accepts
// them, none of them merged:
//
//	go test -run '^$' -bench Chunks -benchtime 3s ./eventlog
func BenchmarkChunks(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			l := logtest.Start(b, natstest.SyncAlways())
			var all sync.WaitGroup
			b.ResetTimer()
			for i := range writers {
				w, err := chunks.NewWriter(l, chunkRun(i, 1))
				if err != nil {
					b.Fatal(err)
				}
				all.Go(func() {
					for n := 0; n < b.N/writers+1; n++ {
						// Each has another text, so that none are merged.
						if err := w.Emit(b.Context(), "stp_1", events.ChunkTextDelta, events.JSON(fmt.Sprintf(`{"id":"t%d","delta":"twenty bytes of text"}`, n))); err != nil {
							b.Error(err)
							return
						}
					}
					if err := w.Finish(b.Context(), events.Finish{Reason: events.FinishStop}); err != nil {
						b.Error(err)
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "chunks/s")
		})
	}
}

// BenchmarkChunkLatency measures the time from Emit to a subscriber of the timeline, with
// pauses between chunks like those of a model (50 a second from each writer).
func BenchmarkChunkLatency(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			l := logtest.Start(b, natstest.SyncAlways())
			nc := logtest.Sibling(b, l).Conn()
			var mu sync.Mutex
			var took []time.Duration
			got := make(chan struct{}, b.N+writers)
			_, err := nc.Subscribe(l.Config().Names.Timeline(logtest.Tenant, "*", events.ChunkEmittedType), func(m *nats.Msg) {
				now := time.Now()
				e, err := events.DecodeEvent(m.Data)
				if err != nil {
					b.Error(err)
				}
				mu.Lock()
				took = append(took, now.Sub(e.Time.Go()))
				mu.Unlock()
				got <- struct{}{}
			})
			if err != nil {
				b.Fatal(err)
			}
			logtest.Must(b, nc.Flush())
			each := b.N/writers + 1
			var all sync.WaitGroup
			b.ResetTimer()
			for i := range writers {
				w, err := chunks.NewWriter(l, chunkRun(i, 1))
				logtest.Must(b, err)
				all.Go(func() {
					for n := range each {
						if err := w.Emit(b.Context(), "stp_1", events.ChunkTextDelta, events.JSON(fmt.Sprintf(`{"id":"t%d","delta":"twenty bytes of text"}`, n))); err != nil {
							b.Error(err)
						}
						time.Sleep(20 * time.Millisecond)
					}
					if err := w.Close(b.Context()); err != nil {
						b.Error(err)
					}
				})
			}
			for range writers * each {
				<-got
			}
			all.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}
