package eventlog

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A process that writes most of the log knows most of it: the commits that it
// made, and the sequences that they were acknowledged with. Reading them back
// costs more than anything else that a follower does with them. So while the own
// commits come fast and follow each other without a gap, they are taken from
// Recent, and there is no consumer. A gap, which is a commit of somebody else, ends
// that, and so does a long silence; in a short one the log is asked for its end.
type ownPace struct {
	run     int           // so many own commits, one after another,
	within  time.Duration // in this time, make it worth while
	silence time.Duration // without an own commit, it is over
	look    time.Duration // so late a commit of somebody else may be noticed, when there is no own one after it
	gap     time.Duration // acknowledgements of one process may overtake each other
}

func defaultOwnPace() ownPace {
	return ownPace{run: 256, within: time.Second, silence: 2 * time.Second, look: 50 * time.Millisecond, gap: 10 * time.Millisecond}
}

// owned counts how fast own commits come.
type owned struct {
	run   int       // own commits since since, one after another
	since time.Time // when it was counted from
	fast  bool      // the last so many came fast
}

// after notes a commit, and reports whether own ones come fast.
func (o *owned) after(ours bool, p ownPace) bool {
	if !ours {
		*o = owned{}
		return false
	}
	if o.run == 0 {
		o.since = time.Now()
	}
	if o.run++; o.run > p.run {
		o.fast = time.Since(o.since) <= p.within
		o.run = 0
	}
	return o.fast
}

// own hands on this process's own commits as they are acknowledged, as long as
// each is the next of the log. What was acknowledged before the tail began is not
// believed: the server may have lost it since.
func (t *Tail) own(ctx context.Context) {
	pace := t.log.ownPace
	timer := time.NewTimer(pace.look)
	defer timer.Stop()
	gap, quiet := false, time.Now() // the timer runs for a gap; since when nothing was handed on
	for handed := false; ; {
		c, when, told, past := t.log.cfg.Recent.at(t.at+1, t.begun)
		if c != nil {
			if !t.hand(ctx, Entry{Seq: c.Seq, Time: when, Commit: c, size: len(c.Body)}) {
				return
			}
			handed = true
			continue
		}
		if handed {
			handed, gap, quiet = false, false, time.Now()
			timer.Reset(pace.look)
		}
		if past && !gap {
			gap = true
			timer.Reset(pace.gap)
		}
		select {
		case <-told:
			continue
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if gap || time.Since(quiet) >= pace.silence {
			t.owned = owned{}
			return
		}
		last, err := t.log.LastSeq(ctx)
		if err != nil {
			t.owned = owned{}
			return
		}
		if gap = last > t.at; gap { // its acknowledgement may be under way
			timer.Reset(pace.gap)
		} else {
			timer.Reset(pace.look)
		}
	}
}

// resume reads the log again, after the last commit that was handed on.
func (t *Tail) resume(ctx context.Context) error {
	for {
		_, err := t.consume(ctx, jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: t.at + 1,
		})
		switch {
		case ctx.Err() != nil:
			return context.Canceled
		case err == nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, jetstream.ErrStreamNotFound):
			return err
		}
		t.log.logger.Warn().Err(err).Str("reader", t.name).Msg("following the log was interrupted")
		select {
		case <-time.After(tailPause):
		case <-ctx.Done():
			return context.Canceled
		}
	}
}
