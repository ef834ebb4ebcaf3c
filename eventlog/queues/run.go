package queues

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
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

	delivery
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

// handOverWait is how long the worker that has begun a run may take to answer.
const handOverWait = 2 * time.Second

// HandOver sends a message to the worker that has begun its run, and returns the message to the
// queue if that worker has ended or does not execute the run. If it does not answer, the message
// is redelivered after RunWait.
func (r *Run) HandOver() error {
	r.mu.Lock()
	m := &nats.Msg{Subject: r.Keeper, Header: nats.Header{headerThread: {r.Thread}, headerAck: slices.Clone(r.acks)}, Data: []byte(r.Tenant + "." + r.Execution)}
	r.mu.Unlock()
	answer, err := r.wire.RequestMsg(m, handOverWait)
	switch {
	case errors.Is(err, nats.ErrNoResponders), err == nil && string(answer.Data) == notHeld:
		return r.Release(0)
	case err != nil:
		return fmt.Errorf("handing a run to the worker that has begun it: %w", err)
	}
	return nil
}

// notHeld is the answer of a worker that does not execute the run which it was handed.
const notHeld = ackRelease
