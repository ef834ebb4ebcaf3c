package eventlog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/internal/natstest"
)

// BenchmarkAppend measures commits of twelve events, about 5 KB, each on a
// thread of its own, with fsync before every acknowledgement:
//
//	go test -run '^$' -bench Append -benchtime 5s ./eventlog
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			l := start(b, natstest.SyncAlways())
			drafts := make([]Write, b.N)
			for i := range drafts {
				drafts[i] = Write{Commit: newAuthor(i).draft(b, 12, 20)}
			}
			b.SetBytes(int64(len(drafts[0].Commit.Body)))
			b.ResetTimer()
			var at atomic.Int64
			var all sync.WaitGroup
			for range writers {
				all.Go(func() {
					for {
						i := int(at.Add(1)) - 1
						if i >= len(drafts) {
							return
						}
						if err := l.Append(context.Background(), drafts[i]); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

// BenchmarkFence measures documents of 1 KB, written behind one another.
func BenchmarkFence(b *testing.B) {
	l := start(b, natstest.SyncAlways())
	if err := assets.EnsureBucket(b.Context(), l.conn, "bench"); err != nil {
		b.Fatal(err)
	}
	fence := fenceOf(b, l, "bench")
	body := make([]byte, 1<<10)
	b.SetBytes(int64(len(body)))
	b.ResetTimer()
	for i := range b.N {
		if err := fence.put(b, fmt.Sprint("acme.T-1.", i%10000), body); err != nil {
			b.Fatal(err)
		}
	}
	if err := fence.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}
