package runtime

import (
	"testing"
	"time"
)

// What keeps a run alive may fire before the function that started it returns.
func TestEvery_FiresAtOnceAndStops(t *testing.T) {
	for range 100 {
		fired := make(chan struct{}, 1)
		n := 0 // written by do alone: stop must not return while it runs
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
			t.Fatal("it did not fire")
		}
	}
}
