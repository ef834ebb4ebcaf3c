package eventlog

import "sync"

// Outage says that the store under the streams takes no write any more, such as one
// on a full disk: nats-server then answers no write, and takes none until it is
// restarted. The process that runs the server reports it, and what is written by the logs
// that share it is refused at once, where its Outcome would otherwise be waited for. It
// never ends. It is safe for concurrent use.
type Outage struct {
	once  sync.Once
	begun chan struct{}
	cause error // set before begun is closed
}

// NewOutage returns one that has not begun.
func NewOutage() *Outage { return &Outage{begun: make(chan struct{})} }

// Begin notes why nothing can be written. It reports whether that was not known
// before.
func (o *Outage) Begin(cause error) (first bool) {
	o.once.Do(func() {
		o.cause, first = cause, true
		close(o.begun)
	})
	return first
}

// Begun is closed when nothing can be written any more.
func (o *Outage) Begun() <-chan struct{} { return o.begun }

// Err returns why nothing can be written, or nil.
func (o *Outage) Err() error {
	select {
	case <-o.begun:
		return o.cause
	default:
		return nil
	}
}
