package runtime

import "time"

// crew runs functions on reused goroutines. A turn has a deep stack, which a new
// goroutine would have to grow each time.
type crew chan func() // receives work for idle goroutines

// idle is how long a goroutine waits for more work.
const idle = 5 * time.Second

// do runs f on another goroutine, without waiting for it.
func (c crew) do(f func()) {
	select {
	case c <- f:
	default:
		go c.work(f)
	}
}

func (c crew) work(f func()) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		f()
		timer.Reset(idle)
		select {
		case f = <-c:
		case <-timer.C:
			return
		}
	}
}
