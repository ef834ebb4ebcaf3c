package effects

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime"
)

// mostErrorText bounds the text of a failure, in bytes.
const mostErrorText = 2048

// attempt is one due effect, in a worker.
type attempt struct {
	*Worker
	m   *queues.Due // the sequence of the message is the worker's claim
	due dueEffect
}

// runAttempt makes one attempt, unless it is not due or another worker makes it. The message
// is acknowledged when the log has the outcome, and earlier only if there is nothing to
// do.
func (r *attempt) runAttempt(ctx context.Context) {
	alive := r.keepAlive()
	defer alive()
	started, err := r.startAttempt(ctx)
	var stands *thread.EffectError
	switch {
	case err == nil && started != nil:
		r.makeAttempt(ctx, *started)
	case err == nil, events.IsNotFound(err):
		r.acknowledge() // it is over, or its thread is deleted
	case !errors.As(err, &stands):
		r.logger.Warn().Err(err).Str("tenant", r.m.Tenant).Str("effect", r.m.ID).Msg("cannot start an effect now; it waits")
		_ = r.m.Release(time.Second)
	case stands.Standing == thread.EffectEarly:
		_ = r.m.Release(max(time.Until(stands.At.Go()), time.Millisecond))
	default: // deleted, or in a worker with another message
		r.acknowledge()
	}
}

// startAttempt starts the attempt, and returns its event; nil if there is none to start. If
// another worker has it and is gone, its attempt has failed and the next one is
// started.
func (r *attempt) startAttempt(ctx context.Context) (*events.EffectStarted, error) {
	ask := thread.StartEffect{ID: r.m.ID, Firing: r.due.Firing, Attempt: r.due.Attempt, Claim: r.m.Seq}
	for {
		// A new command id: the answer to a worker that is gone must not be repeated.
		made, err := r.executeCommand(ctx, uuid.Must(uuid.NewV7()).String(), "effect.start", ask)
		var stands *thread.EffectError
		if errors.As(err, &stands) && stands.Standing == thread.EffectRunning && stands.Claim != ask.Lost {
			lost, lookErr := r.claimLost(ctx, stands.Claim)
			if lookErr != nil {
				return nil, lookErr
			}
			if lost {
				ask.Lost = stands.Claim
				continue
			}
		}
		if err != nil || len(made) == 0 {
			return nil, err
		}
		switch d := made[len(made)-1].Data.(type) {
		case events.EffectStarted:
			return &d, nil
		case events.EffectFailed: // that was the last attempt
			r.setNextTimer(ctx, d.Next, d.Final, d.Attempt)
		}
		return nil, nil
	}
}

// claimLost reports whether the worker with a claim is gone. This worker's own message is
// redelivered only if it was not kept alive; another worker that still waits does the
// same check, if necessary.
func (r *attempt) claimLost(ctx context.Context, claim uint64) (bool, error) {
	if claim == r.m.Seq {
		return true, nil
	}
	waits, err := queues.TimersOf(r.log).Waits(ctx, claim, r.m.Tenant, r.m.Thread, r.m.ID)
	return !waits, err
}

// makeAttempt runs the effect and records the outcome.
func (r *attempt) makeAttempt(ctx context.Context, s events.EffectStarted) {
	in := &runtime.EffectInput{
		Tenant: r.m.Tenant, ThreadID: r.m.Thread, EffectID: r.m.ID, FlowID: r.m.ID, Name: r.due.Name, Args: r.due.Args,
		Key: r.m.ID + "." + strconv.FormatInt(s.Firing, 10), Firing: s.Firing, Attempt: s.Attempt, ScheduledAt: r.due.At.Go(),
	}
	late := time.Since(in.ScheduledAt)
	err := r.callEffect(ctx, in)
	r.cfg.Metrics.Effect(err != nil, late)
	if err != nil && ctx.Err() != nil {
		_ = r.m.Release(0) // the worker stops: another one takes over
		return
	}
	name, data := "effect.complete", any(thread.CompleteEffect{ID: r.m.ID, Firing: s.Firing, Attempt: s.Attempt})
	if err != nil {
		fail := thread.FailEffect{ID: r.m.ID, Firing: s.Firing, Attempt: s.Attempt, ErrorText: excerpt.Of(err.Error(), mostErrorText)}
		if later := (*runtime.RetryError)(nil); errors.As(err, &later) {
			fail.AfterMs, fail.NotMade = min(later.After, 24*time.Hour).Milliseconds(), later.NotMade
		}
		name, data = "effect.fail", fail
	}
	for attempts := (retry.Policy{First: 50 * time.Millisecond, Max: 5 * time.Second}).Start(); ; {
		made, err := r.executeCommand(ctx, r.endID(s), name, data)
		var stands *thread.EffectError
		switch {
		case err == nil:
			r.setTimers(ctx, made)
			return
		case errors.As(err, &stands):
			// Another worker has taken over, and has the message now.
			r.logger.Warn().Str("tenant", r.m.Tenant).Str("effect", r.m.ID).Msg("an attempt ended after another worker took it over")
			return
		case events.IsNotFound(err):
			r.acknowledge()
			return
		}
		r.logger.Warn().Err(err).Str("tenant", r.m.Tenant).Str("effect", r.m.ID).Msg("cannot record the end of an effect now; it is retried")
		if attempts.Wait(ctx) != nil {
			return
		}
	}
}

// setTimers sets the timer of the next attempt or firing, and then acknowledges the
// message: in this order, so that one of the two always exists.
func (r *attempt) setTimers(ctx context.Context, made []events.Event) {
	for i := range made {
		switch d := made[i].Data.(type) {
		case events.EffectCompleted:
			r.setNextTimer(ctx, d.Next, true, d.Attempt)
		case events.EffectFailed:
			if d.NotMade { // the same one again
				d.Attempt--
			}
			r.setNextTimer(ctx, d.Next, d.Final, d.Attempt)
		}
	}
	r.acknowledge()
}

// setNextTimer sets the timer of the next attempt or, with over, of the next firing. If it
// fails, the sweep sets it.
func (r *attempt) setNextTimer(ctx context.Context, next string, over bool, attempt int64) {
	if next == "" {
		return
	}
	due := r.due
	due.At, due.Attempt = micros(next), attempt+1
	if over {
		due.Firing, due.Attempt = due.Firing+1, 1
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timerTimeout)
	defer cancel()
	if err := putEffect(ctx, r.log, r.cfg.Now, r.m.Tenant, r.m.Thread, r.m.ID, due); err != nil {
		r.logger.Warn().Err(err).Str("tenant", r.m.Tenant).Str("effect", r.m.ID).Msg("cannot set the timer of an effect; the sweep sets it")
	}
}

// callEffect runs the effect, with a panic as an error.
func (r *attempt) callEffect(ctx context.Context, in *runtime.EffectInput) (err error) {
	effect, ok := r.find(in.Name)
	if !ok {
		return fmt.Errorf("no effect %q is registered in the workers that received it; register it, or schedule a registered one", in.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			runtime.LogPanic(r.logger.Error().Str("effect", in.Name), p, "an effect")
			err = errors.New("the effect panicked")
			if fault, ok := p.(goruntime.Error); ok { // its text contains no data of the effect
				err = fmt.Errorf("the effect panicked: %w", fault)
			}
		}
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("the effect took longer than %v: %w", r.cfg.Timeout, err)
		}
	}()
	if r.cfg.State != nil {
		var x *runtime.Execution
		if err := r.dispatcher.Look(ctx, r.m.Tenant, r.m.Thread, func(s *thread.State) {
			in.Rights = s.EffectRights(in.EffectID)
			x = runtime.EffectExecution(ctx, in, s)
		}); err != nil {
			return err
		}
		in.State = r.cfg.State(r.m.Tenant, r.m.Thread, x)
	}
	return runtime.Returned(effect.Run(ctx, in))
}

// executeCommand executes a command of the worker on the effect's thread.
func (r *attempt) executeCommand(ctx context.Context, commandID, name string, data any) ([]events.Event, error) {
	return r.dispatcher.Inside(context.WithoutCancel(ctx), r.m.Tenant, r.m.Thread, commandID, name, data)
}

// endID returns the id of the command that ends an attempt, so that it can be repeated
// if its reply is lost.
func (r *attempt) endID(s events.EffectStarted) string {
	return fmt.Sprintf("effect.%s.%d.%d.%d", r.m.ID, s.Firing, s.Attempt, s.Claim)
}

// keepAlive extends the message's redelivery time, until stop is called.
func (r *attempt) keepAlive() (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(r.cfg.AckWait / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = r.m.Working()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// acknowledge acknowledges the message. If that is lost, it is redelivered, and refused.
func (r *attempt) acknowledge() { _ = r.m.Done() }
