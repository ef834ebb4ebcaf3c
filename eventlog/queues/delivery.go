package queues

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
)

// delivery is how a message of a queue came, and how it was settled.
type delivery struct {
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
	ackDrop    = "+TERM"
)

// Working tells the queue that the message is still in progress.
func (d *delivery) Working() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told != "" {
		return nil
	}
	return d.tell(ackWorking, d.acks...)
}

// Done removes the message from the queue.
func (d *delivery) Done() error { return d.settle(ackDone) }

// Release returns the message to the queue, to be delivered again after a while.
func (d *delivery) Release(after time.Duration) error {
	if after <= 0 {
		return d.settle(ackRelease)
	}
	return d.settle(fmt.Sprintf(`%s {"delay": %d}`, ackRelease, after.Nanoseconds()))
}

func (d *delivery) settle(told string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = told
	return d.tell(told, d.acks...)
}

func (d *delivery) tell(what string, acks ...string) error {
	var errs []error
	for _, ack := range acks {
		errs = append(errs, acknowledge(d.wire, what, ack))
	}
	return errors.Join(errs...)
}

// acknowledge tells a queue what becomes of a message.
func acknowledge(wire streams.Wire, what, ack string) error {
	return wire.PublishMsg(&nats.Msg{Subject: ack, Data: []byte(what)})
}
