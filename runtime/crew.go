package runtime

import "time"

// crew runs work in goroutines that are used again. What a turn does goes deep,
// and a new goroutine would have to grow its stack for it every time.
type crew chan func() // to a goroutine that has nothing to do

// idle is how long a goroutine waits for more work.
const idle = 5 * time.Second

// do runs f beside its caller, who does not wait.
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
