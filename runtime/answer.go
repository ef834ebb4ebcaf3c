package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/service"
)

// answer calls the reactor until it answers. Without an answer the turn is over: the run has
// failed, was interrupted, or is parked until a process serves the reactor.
func (t reactorCall) answer(ctx context.Context, side *Side, reactor Reactor, in *StepInput) (*Reaction, error) {
	away := missingWorker{WaitFor: events.WaitFor{Kind: events.ReactorWorker, Name: side.Reactor}, most: t.agent.Limits.WorkerWait}
	if t.run.UnavailableSince != 0 { // an earlier claim has waited, too
		away.since = t.run.UnavailableSince.Go()
	}
	for attempt := 1; ; attempt++ {
		in.Attempt = attempt
		t.draft.reset()
		got, err := t.attempt(reactor, in)
		if err == nil {
			return got, nil
		}
		var later *RetryError
		if errors.As(err, &later) && later.Absent {
			served, wrong := t.absence().awaitReactor(ctx, &away)
			if wrong != nil {
				return nil, wrong
			}
			if served && t.absence().parks(&away) {
				_, err := t.commit(ctx, "park", thread.ParkRun{ExecutionID: t.job.Execution, Token: t.run.Token})
				return nil, err
			}
			if served {
				attempt-- // nothing received the call
				continue
			}
			return nil, t.fail(ctx, t.failureText(away.gaveUp(err)), nil)
		}
		again := later != nil && attempt < t.agent.Retries.Attempts
		why := fmt.Sprintf("reactor %s, attempt %d: %s", side.Reactor, attempt, clip(err.Error()))
		switch {
		case t.stopsNow() || t.ctx.Err() != nil:
			return nil, t.interrupted(ctx, err)
		case fallsBack(in.Model, err, again):
			next, wrong := t.withSettings(in.Model.next())
			if wrong != nil {
				return nil, t.fail(ctx, events.AsError(wrong).Message, nil)
			}
			why = fmt.Sprintf("%s; the model %s is asked instead of %s", why, next.Name, in.Model.Name)
			if err := t.logLine(ctx, "warn", why, object("attempt", attempt, "model", in.Model.Model, "endpoint", in.Model.Endpoint, "fallback", next.Name)); err != nil {
				return nil, err
			}
			t.substate("retrying")
			in.Model, attempt = next, 0
		case !again:
			return nil, t.interrupted(ctx, err)
		default:
			if err := t.logLine(ctx, "warn", why, object("attempt", attempt)); err != nil {
				return nil, err
			}
			t.substate("retrying")
			retry.Sleep(t.ctx, max(later.After, backoff(0, t.agent.Retries.Backoff, attempt)))
		}
	}
}

// fallsBack reports whether another model is asked after an error, to which the same is not asked
// again.
func fallsBack(m Model, err error, again bool) bool {
	var unanswered *UnansweredError
	return len(m.Fallback) > 0 && errors.As(err, &unanswered) && (!again || !unanswered.Again)
}

// next returns the model that is asked after m, which has one.
func (m Model) next() Model {
	next := m.Fallback[0]
	next.Fallback = m.Fallback[1:]
	return next
}

// attempt calls the reactor once, with the hooks around it.
func (t reactorCall) attempt(reactor Reactor, in *StepInput) (got *Reaction, err error) {
	if err = t.hookCalls().beforeStep(in); err == nil {
		if err = t.checkBudget(); err == nil {
			got, err = t.callReactor(reactor, in)
			if got != nil && got.Usage != nil {
				got.Usage = new(got.Usage.Within(mostTokens))
			}
			t.recordUsage(in, got)
		}
		if err == nil {
			err = t.hookCalls().afterStep(in, got)
		}
		if err == nil {
			err = t.keepParts(got)
		}
	}
	return got, err
}

// callReactor calls the reactor. A panic is returned as an error.
func (t reactorCall) callReactor(r Reactor, in *StepInput) (got *Reaction, err error) {
	begun := time.Now()
	defer func() { t.w.cfg.Metrics.Reactor(err != nil, time.Since(begun)) }()
	defer func() {
		if p := recover(); p != nil {
			LogPanic(t.logger.Error().Str("step", in.StepID), p, "a reactor")
			got, err = nil, errors.New("the reactor panicked")
		}
	}()
	type answer struct {
		got *Reaction
		err error
	}
	ctx, over := t.cuttable()
	defer over()
	done := make(chan answer, 1)
	go func() {
		service.GrowStack()
		var a answer
		defer func() {
			if p := recover(); p != nil {
				LogPanic(t.logger.Error().Str("step", in.StepID), p, "a reactor")
				a = answer{err: errors.New("the reactor panicked")}
			}
			done <- a
		}()
		a.got, a.err = r.React(ctx, in, stepStream{t.turn, in.StepID})
		a.err = Returned(a.err)
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		select { // its context has ended: a reactor that does not return in time is abandoned
		case a = <-done:
		case <-time.After(grace):
			return nil, errors.New("the reactor did not return when its context ended")
		}
	}
	if a.err == nil && a.got == nil {
		return nil, errors.New("the reactor returned nothing")
	}
	return a.got, a.err
}
