package eventlog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Limits of one write.
const (
	// Crossover is the greatest number of waiting commits that are sent as plain
	// publishes. An atomic batch costs about as much as eight of them. If two of
	// the commits must be stored together, a batch is needed anyway, and all
	// share it.
	Crossover     = 8
	batchMessages = 512     // the server takes 1,000; more than this gains nothing
	batchBytes    = 8 << 20 // staged by the server before it commits
)

// Write is a commit and the last sequence that its aggregate must have: 0 for
// one that was never written.
type Write struct {
	Commit   *events.Commit
	Expected uint64
}

// Append stores commits of different aggregates in one atomic write, and sets
// their Seq. It returns nil, a *ConflictError, a *TooLargeError, an
// *UnavailableError (these three: nothing was written) or an *UnknownError.
//
// ctx only bounds the wait for a place in the queue: once a commit has one, Append
// waits until its outcome is known.
func (l *Log) Append(ctx context.Context, writes ...Write) error {
	if len(writes) == 0 {
		return nil
	}
	u, err := l.newUnit(writes)
	if err != nil {
		return err
	}
	select {
	case <-l.stopping:
		return &UnavailableError{Cause: errClosing}
	default:
	}
	for _, w := range writes {
		l.cfg.Recent.put(w.Commit) // before anybody can read it from the log
	}
	select {
	case l.queue <- u:
	case <-l.stopping:
		return &UnavailableError{Cause: errClosing}
	case <-ctx.Done():
		return &UnavailableError{Cause: context.Cause(ctx)}
	}
	select {
	case err := <-u.done:
		return err
	case <-l.stopped: // accepted in the moment of closing: it may still have been answered
		select {
		case err := <-u.done:
			return err
		default:
			return &UnavailableError{Cause: errClosing}
		}
	}
}

var errClosing = errors.New("the log is being closed")

// lateAfter is how long the append loop waits for the writes that it has sent. A later
// one, such as one whose acknowledgement was lost, delays only its own aggregates.
const lateAfter = time.Second

// appendLoop writes the waiting units, one group after the other.
func (l *Log) appendLoop() {
	defer close(l.stopped)
	late := time.NewTimer(lateAfter)
	defer late.Stop()
	var held []*unit // taken from the queue, but not to go with the last write
	var pace pace
	for {
		var first *unit
		if first, held = l.nextUnit(held); first == nil {
			return
		}
		var group []*unit
		group, held = l.gather(first, held, pace)
		begun := time.Now()
		late.Reset(lateAfter)
		l.send(group, late.C)
		pace = pace.after(group, time.Since(begun))
	}
}

// nextUnit waits for a unit whose aggregates are free, and returns it and the units that
// are still held. It returns nil when the log is closed and nothing is in flight.
func (l *Log) nextUnit(held []*unit) (*unit, []*unit) {
	for {
		held = l.settle(held)
		if len(held) > 0 {
			return held[0], held[1:]
		}
		select {
		case u := <-l.queue:
			held = append(held, u)
			continue
		case u := <-l.late:
			held = l.free(u, held)
			continue
		case <-l.stopping:
		}
		select {
		case u := <-l.queue:
			held = append(held, u)
		default:
			if len(l.busy) == 0 {
				return nil, nil
			}
			held = l.free(<-l.late, held)
		}
	}
}

// send writes a group. It returns when all units are answered, or when late fires: the
// aggregates of the others stay busy until they are answered.
func (l *Log) send(group []*unit, late <-chan time.Time) {
	refused := l.cfg.Outage.Err()
	if refused == nil && !l.connected() {
		refused = nats.ErrDisconnected
	}
	if refused != nil {
		for _, u := range group {
			u.answer(&UnavailableError{Cause: refused})
		}
		return
	}
	go l.write(group)
	for i, u := range group {
		select {
		case <-u.over:
		case <-late:
			for _, u := range group[i:] {
				l.leave(u)
			}
			return
		}
	}
}

// pace says how long a write waits to fill a batch. The callers whose commits shared the
// last write return one by one, each with its next commit. Without a wait the first of them
// would get a small write of its own, which all others would have to wait for.
type pace struct {
	enough int           // so many messages go at once
	wait   time.Duration // the others wait so long for more
}

// longestWait bounds how long a commit waits to fill a batch.
const longestWait = 12 * time.Millisecond

// after returns the pace after a write. Small writes reduce it step by step, since few callers
// return together.
func (p pace) after(group []*unit, took time.Duration) pace {
	messages := 0
	for _, u := range group {
		messages += len(u.msgs)
	}
	if messages <= Crossover {
		if p.enough /= 2; p.enough <= Crossover/2 {
			return pace{}
		}
		return p
	}
	return pace{enough: messages * 3 / 4, wait: min(took/2, longestWait)}
}

// gather takes waiting units, up to the limits of a write. Two commits of one aggregate
// never share a write: the second is held.
func (l *Log) gather(first *unit, held []*unit, p pace) (group, rest []*unit) {
	subjects := map[string]bool{}
	messages, bytes := 0, 0
	take := func(u *unit) bool {
		if messages > 0 && (messages+len(u.msgs) > batchMessages || bytes+u.bytes > batchBytes) {
			return false
		}
		for _, m := range u.msgs {
			if subjects[m.Subject] {
				return false
			}
		}
		for _, m := range u.msgs {
			subjects[m.Subject] = true
		}
		messages, bytes = messages+len(u.msgs), bytes+u.bytes
		group = append(group, u)
		return true
	}
	receive := func(u *unit) {
		if !l.park(u) && !take(u) {
			rest = append(rest, u)
		}
	}
	take(first)
	for _, u := range held {
		if !take(u) {
			rest = append(rest, u)
		}
	}
	var company <-chan time.Time // that more may come until then
	for messages < batchMessages && bytes < batchBytes && len(rest) < batchMessages {
		select {
		case u := <-l.queue:
			receive(u)
			continue
		default:
		}
		if messages >= p.enough {
			break
		}
		if company == nil {
			company = time.After(p.wait)
		}
		select {
		case u := <-l.queue:
			receive(u)
		case <-company:
			return group, rest
		case <-l.stopping:
			return group, rest
		}
	}
	return group, rest
}

// write stores a group and answers each of its units.
func (l *Log) write(group []*unit) {
	var msgs []*nats.Msg
	bytes := 0
	for _, u := range group {
		msgs = append(msgs, u.msgs...)
		bytes += u.bytes
	}
	if len(group) == 1 || len(msgs) == len(group) && len(msgs) <= Crossover {
		l.writeEach(group, false)
		return
	}
	ack, err := l.conn.PublishBatch(msgs)
	outcome := streams.Classify(err, ack.Error)
	if outcome != streams.Stored {
		// Each on its own, so that only the unit at fault fails. A unit that was
		// stored nevertheless is found by its chain.
		l.writeEach(group, outcome == streams.Unknown)
		return
	}
	l.appended(msgs, bytes, ack)
	last := ack.Seq - uint64(len(msgs))
	for _, u := range group {
		last += uint64(len(u.msgs))
		u.stored(last)
	}
	l.cfg.Recent.acknowledged(group...)
	for _, u := range group {
		u.answer(nil)
	}
	l.cfg.Recent.wake()
}

// connected reports whether the connection is up, after a short wait if it is not.
// Messages that are sent while it is down would be stored when it returns, long after
// their callers gave up.
func (l *Log) connected() bool {
	for !l.conn.Wire().IsConnected() {
		if l.away.IsZero() {
			l.away = time.Now()
		}
		select {
		case <-l.stopping:
			return false
		case <-time.After(5 * time.Millisecond):
		}
		if l.conn.Wire().IsClosed() || time.Since(l.away) > l.cfg.AckTimeout {
			return false
		}
	}
	l.away = time.Time{}
	return true
}

// writeEach stores each unit on its own. All are in flight at once, except those that
// need an atomic batch, of which the server accepts few at a time. tried says that the
// outcome of a first try is unknown.
//
// A caller is answered before the tails are woken: they may wait, and it does.
func (l *Log) writeEach(group []*unit, tried bool) {
	deadline := time.Now().Add(3 * l.cfg.AckTimeout)
	write := func(u *unit) {
		u.answer(l.writeUnit(u, tried, deadline))
		l.cfg.Recent.wake()
	}
	if len(group) == 1 {
		write(group[0])
		return
	}
	var several []*unit
	var under sync.WaitGroup
	for _, u := range group {
		if len(u.msgs) > 1 {
			several = append(several, u)
			continue
		}
		under.Go(func() { write(u) })
	}
	for _, u := range several {
		write(u)
	}
	under.Wait()
}
