package faults_test

import (
	"context"
	"testing"
)

// A short one, for make test: the leader of the log dies, a server hangs, a Skein
// dies, streams change their leaders.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	w := begin(t, nil)
	w.during(func(ctx context.Context) {
		all := faults()
		for _, i := range []int{1, 5, 7, 2} {
			w.suffer(ctx, all[i:i+1], 1)
		}
	})
}
