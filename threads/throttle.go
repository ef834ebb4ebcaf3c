package threads

import "time"

// observeEvery is the pause between two values of Observe.
const observeEvery = 100 * time.Millisecond

// throttle passes values on: the first at once, then the last of each pause, and at the end
// the last that waits. after starts a pause; it returns when emit returns false, or in is
// closed.
func throttle[T any](in <-chan T, after func(time.Duration) <-chan time.Time, emit func(T) bool) {
	var pause <-chan time.Time
	var last T
	waits := false
	for {
		select {
		case v, ok := <-in:
			switch {
			case !ok:
				if waits {
					emit(last)
				}
				return
			case pause != nil:
				last, waits = v, true
			default:
				if !emit(v) {
					return
				}
				pause = after(observeEvery)
			}
		case <-pause:
			pause = nil
			if waits {
				waits = false
				if !emit(last) {
					return
				}
				pause = after(observeEvery)
			}
		}
	}
}
