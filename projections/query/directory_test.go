package query

import (
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
)

// Threads may be listed while the following of their bucket starts again. With -race the
// test shows reads without the lock.
func TestIn_WhileTheDirectoryIsRead(t *testing.T) {
	q := &Queries{directory: newDirectories()}
	q.directory.loaded()
	stop := make(chan struct{})
	var under sync.WaitGroup
	for range 4 {
		under.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := q.In(t.Context(), events.ThreadOpen); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 1000 {
		q.directory.reset()
		q.directory.loaded()
	}
	close(stop)
	under.Wait()
}
