package eventlog

import (
	"context"
	"time"
)

// ownCommits delivers the commits that this process writes, as they are acknowledged, so that
// they need not be read back from the log: for a process that writes most of the log, reading
// costs more than anything else that its followers do.
//
// It starts once the process's commits come fast and nobody else's between them. A gap in the
// sequences, which is a commit of another process, ends it, and so does silence; during a pause
// it asks the log for its end. What was acknowledged before the tail began is not used: the
// server may have lost it since.
type ownCommits struct {
	tail  *Tail
	begun time.Time
	pace  ownPace

	at    uint64    // the sequence of the last entry that was delivered
	run   int       // commits of this process since since, one after another
	since time.Time // when counting began
	fast  bool      // the last pace.run of them came fast
}

// ownPace says when a tail follows the commits of its own process.
type ownPace struct {
	run     int           // so many commits of the process, one after another,
	within  time.Duration // in this time start it
	silence time.Duration // without a commit of the process, it ends
	look    time.Duration // the longest delay of another process's commit during a pause
	gap     time.Duration // acknowledgements of one process may overtake each other by this
}

func defaultOwnPace() ownPace {
	return ownPace{run: 256, within: time.Second, silence: 2 * time.Second, look: 50 * time.Millisecond, gap: 10 * time.Millisecond}
}

// after counts a commit that was read from the log, and reports whether read can go on after it.
func (o *ownCommits) after(seq uint64, ours bool) bool {
	o.at = max(o.at, seq)
	if !ours {
		o.run, o.fast = 0, false
		return false
	}
	if o.run == 0 {
		o.since = time.Now()
	}
	if o.run++; o.run > o.pace.run {
		o.fast = time.Since(o.since) <= o.pace.within
		o.run = 0
	}
	return o.fast && o.tail.log.cfg.Recent.follows(o.at+1, o.begun)
}

// read delivers the process's commits as long as each is the next of the log, or until ctx
// ends.
func (o *ownCommits) read(ctx context.Context) {
	defer func() { o.run, o.fast = 0, false }()
	timer := time.NewTimer(o.pace.look)
	defer timer.Stop()
	gap, quiet := false, time.Now() // the timer runs for a gap; when the last commit was delivered
	for delivered := false; ; {
		e, next, passed := o.tail.log.cfg.Recent.at(o.at+1, o.begun)
		if e.Commit != nil {
			if !o.tail.deliver(ctx, e) {
				return
			}
			o.at, delivered = e.Seq, true
			continue
		}
		if delivered {
			delivered, gap, quiet = false, false, time.Now()
			timer.Reset(o.pace.look)
		}
		if passed && !gap {
			gap = true
			timer.Reset(o.pace.gap)
		}
		select {
		case <-next:
			continue
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if gap || time.Since(quiet) >= o.pace.silence {
			return
		}
		last, err := o.tail.log.LastSeq(ctx)
		if err != nil {
			return
		}
		if gap = last > o.at; gap { // its acknowledgement may be in flight
			timer.Reset(o.pace.gap)
		} else {
			timer.Reset(o.pace.look)
		}
	}
}
