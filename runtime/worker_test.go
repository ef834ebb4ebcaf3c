package runtime

import (
	"testing"
	"time"
)

// The first call of do may happen before every returns.
func TestEvery_FiresAtOnceAndStops(t *testing.T) {
	t.Parallel()
	for range 100 {
		fired := make(chan struct{}, 1)
		n := 0 // written by do only: stop must not return while it runs
		stop := every(time.Nanosecond, func() bool { return true }, func() {
			n++
			select {
			case fired <- struct{}{}:
			default:
			}
		})
		<-fired
		stop()
		if n < 1 {
			t.Fatal("do was not called")
		}
	}
}
