package eventlog

import (
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// unit holds the writes of one Append, which are stored together or not at all.
type unit struct {
	writes []Write
	msgs   []*nats.Msg
	bytes  int
	done   chan error    // of capacity 1
	over   chan struct{} // closed when the unit is answered
}

// answer reports the outcome of a unit to its caller.
func (u *unit) answer(err error) {
	u.done <- err
	close(u.over)
}

func (l *Log) newUnit(writes []Write) (*unit, error) {
	u := &unit{writes: writes, done: make(chan error, 1), over: make(chan struct{})}
	for _, w := range writes {
		c := w.Commit
		if size, limit := int64(c.Largest()), l.maxBytes(); size > limit {
			return nil, &TooLargeError{Size: size, Limit: limit}
		}
		u.bytes += len(c.Body)
		u.msgs = append(u.msgs, &nats.Msg{
			Subject: l.cfg.Names.Log(c.Tenant, c.Thread), Data: c.Body,
			Header: nats.Header{
				events.HeaderType:      {events.BatchContentType},
				events.HeaderChain:     {c.Chain},
				events.HeaderVersion:   {strconv.FormatInt(c.Version, 10)},
				streams.HeaderExpected: {strconv.FormatUint(w.Expected, 10)},
			},
		})
	}
	return u, nil
}

// maxBytes returns the largest size of a commit's body: events.MaxCommitBytes, or less if this
// server's limit of a message is smaller.
func (l *Log) maxBytes() int64 {
	const headers = events.MaxPayload - events.MaxCommitBytes
	if limit := l.conn.Wire().MaxPayload(); limit > 0 {
		return min(limit-headers, events.MaxCommitBytes)
	}
	return events.MaxCommitBytes
}

// writeUnit stores one unit and returns its outcome. While the outcome of a try is unknown, it
// looks the commits up in the log, and sends them again if they are not there: if both tries
// arrive after all, the expected sequence refuses one.
//
// It also looks when the server says that a write of the same aggregate is in flight. With
// several copies that may be the commit before this one, which is acknowledged a moment before
// the server accepts the next.
func (l *Log) writeUnit(u *unit, tried bool, deadline time.Time) error {
	var cause error
	ask := tried
	pauses := retry.Policy{First: 10 * time.Millisecond, Max: 250 * time.Millisecond}
	for failures := 1; ; failures++ {
		// A server that failed to write a message may still return it.
		if out := l.cfg.Outage.Err(); out != nil && tried {
			return &UnknownError{Cause: out}
		} else if out != nil {
			return &UnavailableError{Cause: out}
		}
		if ask {
			done, err := l.lookUp(u)
			var moved *ConflictError
			switch {
			case done:
				return nil
			case errors.As(err, &moved):
				return moved
			case err != nil:
				cause = err
			}
			if time.Now().After(deadline) || l.conn.Wire().IsClosed() {
				if err == nil { // it answers, and has not stored it
					l.cfg.Writing.Failed(l.cfg.Names.Stream(assets.LogStream), cause)
				}
				if !tried {
					return &UnavailableError{Cause: cause}
				}
				return &UnknownError{Cause: cause}
			}
			if err != nil {
				time.Sleep(pauses.Delay(failures))
				continue
			}
		}
		ack, err := l.publishUnit(u)
		if cause = err; err == nil && ack.Error != nil {
			cause = ack.Error
		}
		switch streams.Classify(err, ack.Error) {
		case streams.Stored:
			l.appended(u.msgs, u.bytes, ack)
			u.stored(ack.Seq)
			l.cfg.Recent.acknowledged(u)
			return nil
		case streams.Unknown:
			tried, ask = true, true
		case streams.InFlight:
			ask = true
		case streams.Conflict:
			if !tried {
				return l.movedOn(u)
			}
		case streams.TooLarge, streams.TooMany:
			if !tried {
				return &TooLargeError{Size: int64(u.bytes), Limit: l.maxBytes()}
			}
		case streams.Unavailable:
			if !tried {
				return &UnavailableError{Cause: cause}
			}
		}
		time.Sleep(pauses.Delay(failures))
	}
}

// appended notes that messages were stored by one write.
func (l *Log) appended(msgs []*nats.Msg, bytes int, ack streams.Ack) {
	l.cfg.Writing.Stored()
	l.metrics.Appended(len(msgs), bytes, len(msgs) > 1, ack.Seconds)
}

// movedOn returns the conflict of a unit that was refused, with what was stored in its place.
func (l *Log) movedOn(u *unit) error {
	done, err := l.lookUp(u)
	if done { // another process has stored the same commits
		return nil
	}
	var moved *ConflictError
	if errors.As(err, &moved) {
		return moved
	}
	return &ConflictError{Subject: u.msgs[0].Subject, Expected: u.writes[0].Expected}
}

// stored sets the sequences of a unit whose last message has seq.
func (u *unit) stored(seq uint64) {
	for i := range u.writes {
		u.writes[i].Commit.Seq = seq - uint64(len(u.writes)-1-i)
	}
}

func (l *Log) publishUnit(u *unit) (streams.Ack, error) {
	if len(u.msgs) > 1 {
		return l.conn.PublishBatch(u.msgs)
	}
	return l.conn.Publish(u.msgs[0])
}
