package queues

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Run is one execution in the queue. It stays there until it is acknowledged, and is
// redelivered to another worker if this one does not report on it for RunWait. A run that
// its process began by itself exists before the queue has delivered it; see Runs.Begin.
// It is safe for concurrent use.
type Run struct {
	Tenant, Thread, Execution string
	Agent                     string // that executes it, as of when it was queued
	Again                     bool   // it was delivered before
	Keeper                    string // the inbox of the worker that has begun it; "" if none had
	Version                   int64  // of the thread, that asked for it; 0 of one that was handed over

	wire streams.Wire

	mu   sync.Mutex // guards what follows
	acks []string   // where each delivery is acknowledged; none before the queue has delivered it
	told string     // how it was settled; "" while it is in progress
}

// The acknowledgements of a queue's messages.
const (
	ackDone    = "+ACK"
	ackWorking = "+WPI"
	ackRelease = "-NAK"
)

// Working tells the queue that the run is still in progress.
func (r *Run) Working() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tell(ackWorking, r.acks...)
}

// Done removes the run from the queue.
func (r *Run) Done() error { return r.settle(ackDone) }

// Release returns the run to the queue, to be delivered again after a while.
func (r *Run) Release(after time.Duration) error {
	if after <= 0 {
		return r.settle(ackRelease)
	}
	return r.settle(fmt.Sprintf(`%s {"delay": %d}`, ackRelease, after.Nanoseconds()))
}

func (r *Run) settle(told string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = told
	return r.tell(told, r.acks...)
}

// Delivered reports whether the queue has delivered it.
func (r *Run) Delivered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.acks) > 0
}

// Settled reports whether the run was settled, or will be once the queue has delivered
// it.
func (r *Run) Settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told != ""
}

// Adopt adds the queue's delivery of the same run: both are settled together.
func (r *Run) Adopt(m *Run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acks = append(r.acks, m.acks...)
	if r.told == "" {
		return nil
	}
	return r.tell(r.told, m.acks...)
}

func (r *Run) tell(what string, acks ...string) error {
	var errs []error
	for _, ack := range acks {
		errs = append(errs, r.wire.PublishMsg(&nats.Msg{Subject: ack, Data: []byte(what)}))
	}
	return errors.Join(errs...)
}

// HandOver sends a message to the worker that has begun its run. If that worker has
// ended, the message is redelivered after RunWait.
func (r *Run) HandOver() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wire.PublishMsg(&nats.Msg{Subject: r.Keeper, Header: nats.Header{headerAck: r.acks}, Data: []byte(r.Tenant + "." + r.Execution)})
}
