package eventlog

import (
	"context"
	"time"
)

// ownCommits delivers the commits that this process writes, as they are acknowledged, so that
// they need not be read back from the log: for a process that writes most of the log, reading
// costs more than anything else that its followers do.
//
// It starts once the process's commits arrive fast, without one of another process between them.
// A gap in the sequences, which is a commit of another process, ends it, and so does silence.
// During a pause it asks the log for its last sequence. Commits that were acknowledged before the
// tail began are not used: the server may have lost them since.
type ownCommits struct {
	tail  *Tail
	begun time.Time
	pace  ownPace

	at    uint64    // the sequence of the last entry that was delivered
	run   int       // how many commits of this process were counted, without a foreign one between them
	since time.Time // when the count began
	fast  bool      // the last pace.run of them came fast
}

// ownPace says when a tail follows the commits of its own process.
type ownPace struct {
	run     int           // it starts after so many commits of the process in a row
	within  time.Duration // if they took at most this long
	silence time.Duration // it ends after so long without a commit of the process
	look    time.Duration // how often it looks for commits of others during a pause
	gap     time.Duration // by how much acknowledgements of one process may overtake each other
}

func defaultOwnPace() ownPace {
	return ownPace{run: 256, within: time.Second, silence: 2 * time.Second, look: 50 * time.Millisecond, gap: 10 * time.Millisecond}
}

// after counts a commit that was read from the log, and reports whether read can continue with
// the next one.
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

// read delivers the process's commits while each is the next one of the log, or until ctx ends.
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
