package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/internal/retry"
)

// idlePoll is the interval at which a busy server is checked again.
const idlePoll = 5 * time.Millisecond

// errBusy reports that a server is not idle.
var errBusy = errors.New("not idle")

// WaitIdle blocks until no work is left: submitted commands are decided, no run is
// queued or active, no effect is due, and the read models and the timeline show the
// whole log. Work that waits for a person, a later time or another process counts as
// idle. The error is ctx's, and names what was still busy.
func (s *Server) WaitIdle(ctx context.Context) error {
	for {
		err := s.idle(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errBusy) && ctx.Err() == nil {
			return err
		}
		if !retry.Sleep(ctx, idlePoll) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// idle returns an errBusy that names the work that is left.
func (s *Server) idle(ctx context.Context) error {
	log := s.reading.log
	end, err := log.LastSeq(ctx)
	if err != nil {
		return err
	}
	if submitted, err := queues.SubmittedOf(log).Depth(ctx); err != nil || submitted > 0 {
		return errors.Join(err, fmt.Errorf("%w: %d submitted commands wait", errBusy, submitted))
	}
	if err := s.reading.progress.Wait(ctx, end); err != nil {
		return fmt.Errorf("%w: the read models show %d of %d: %w", errBusy, s.reading.progress.Seq(), end, err)
	}
	if shown, err := timeline.Of(log).LastSeq(ctx); err != nil || shown < end {
		return errors.Join(err, fmt.Errorf("%w: the timeline shows %d of %d", errBusy, shown, end))
	}
	if worker := s.work.runs.Worker(); worker != nil {
		// The message of a run that was just requested may be on its way to the queue.
		if busy, err := worker.Unfinished(ctx, s.work.busy); err != nil || busy {
			return errors.Join(err, fmt.Errorf("%w: a thread has a run", errBusy))
		}
		if runs, err := queues.RunsOf(log).Depth(ctx); err != nil || runs.Waiting+runs.Taken > 0 {
			return errors.Join(err, fmt.Errorf("%w: %d runs wait and %d are worked at", errBusy, runs.Waiting, runs.Taken))
		}
		if due, err := queues.TimersOf(log).Depth(ctx); err != nil || due.Waiting+due.Taken > 0 {
			return errors.Join(err, fmt.Errorf("%w: %d effects are due and %d run", errBusy, due.Waiting, due.Taken))
		}
		if due, err := s.work.timers.Due(ctx); err != nil || due {
			return errors.Join(err, fmt.Errorf("%w: an effect is due", errBusy))
		}
	}
	if now, err := log.LastSeq(ctx); err != nil || now != end {
		return errors.Join(err, fmt.Errorf("%w: something was committed meanwhile", errBusy))
	}
	return nil
}

// FireDue starts the effects that are due by Config.Now, and returns their number. A
// clock that keeps time needs no call: the server's timers fire.
func (s *Server) FireDue(ctx context.Context) (int, error) {
	end, err := s.reading.log.LastSeq(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.reading.progress.Wait(ctx, end); err != nil { // pending effects are read there
		return 0, err
	}
	if _, err := s.endLives(ctx); err != nil {
		return 0, err
	}
	return s.work.timers.Fire(ctx)
}
