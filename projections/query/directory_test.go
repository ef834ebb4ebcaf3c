package query

import (
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
)

// The list of threads may be asked for while the following of its bucket begins
// again. Under -race it shows what reads without the lock.
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
