package query

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
)

// Threads may be listed while the following of their bucket starts again. With -race the
// test shows reads without the lock.
func TestIn_WhileTheDirectoryIsRead(t *testing.T) {
	t.Parallel()
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

// Of the threads whose documents somebody began to remove, those with which that began last are kept.
func TestDirectory_Claims(t *testing.T) {
	t.Parallel()
	d := newDirectories()
	begun := time.Now()
	var list []update
	for n := range claimsKept + 100 {
		list = append(list, update{tenant: acme, id: fmt.Sprint(n), at: begun.Add(time.Duration(n) * time.Second), doc: &brief{ID: fmt.Sprint(n), mark: buckets.Mark{Cold: true, Bare: n != claimsKept+50}}})
	}
	d.apply(list)
	q := &Queries{directory: d}
	got := q.Claimed(begun)[acme]
	if len(got) != claimsKept || slices.Contains(got, "98") || !slices.Contains(got, "99") || slices.Contains(got, fmt.Sprint(claimsKept+50)) {
		t.Errorf("%d threads: %v", len(got), got)
	}
	if got := q.Claimed(begun.Add((claimsKept + 98) * time.Second))[acme]; !slices.Equal(got, []string{fmt.Sprint(claimsKept + 99)}) {
		t.Errorf("the last one: %v", got)
	}
	d.reset()
	if got := q.Claimed(begun); len(got) != 0 {
		t.Errorf("after a reset: %v", got)
	}
}
