package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// effectRun is one effect that is due, in the hands of a worker.
type effectRun struct {
	*EffectWorker
	m                  jetstream.Msg
	seq                uint64 // of the message: the worker's claim
	tenant, thread, id string
	due                dueEffect
}

// run makes one attempt, if it is to be made and nobody else makes it. The
// message is acknowledged when the log shows what came of it, and before only if
// there is nothing to do.
func (r *effectRun) run(ctx context.Context) {
	alive := r.keepAlive()
	defer alive()
	started, err := r.start(ctx)
	var stands *thread.EffectError
	switch {
	case err == nil && started != nil:
		r.attempt(ctx, *started)
	case err == nil, errors.Is(err, &events.Error{Code: events.NotFound}):
		r.done() // it is over, or its thread is
	case !errors.As(err, &stands):
		r.logger.Warn().Err(err).Str("tenant", r.tenant).Str("effect", r.id).Msg("an effect could not be begun now; it waits")
		_ = r.m.NakWithDelay(time.Second)
	case stands.Standing == thread.EffectEarly:
		_ = r.m.NakWithDelay(max(time.Until(stands.At.Go()), time.Millisecond))
	default: // gone, or a worker has it that holds another message
		r.done()
	}
}

// start begins the attempt. If a worker has it already, and that worker is gone,
// its attempt failed and the next one is begun. Nothing is given if there is none.
func (r *effectRun) start(ctx context.Context) (*events.EffectStarted, error) {
	ask := thread.StartEffect{ID: r.id, Firing: r.due.Firing, Attempt: r.due.Attempt, Claim: r.seq}
	for {
		// A name of its own: what a worker that is gone was told is not told again.
		made, err := r.inside(ctx, uuid.Must(uuid.NewV7()).String(), "effect.start", ask)
		var stands *thread.EffectError
		if errors.As(err, &stands) && stands.Standing == thread.EffectRunning && stands.Claim != ask.Lost {
			lost, lookErr := r.lost(ctx, stands.Claim)
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
			r.again(ctx, d.Next, d.Final, d.Attempt)
		}
		return nil, nil
	}
}

// lost reports whether the worker with a claim is gone. This worker's own message
// comes again only when nobody kept it alive; another one that still waits does
// the same, if need be.
func (r *effectRun) lost(ctx context.Context, claim uint64) (bool, error) {
	if claim == r.seq {
		return true, nil
	}
	waits, err := queues.TimersOf(r.log).Waits(ctx, claim, r.tenant, r.thread, r.id)
	return !waits, err
}

// attempt runs the effect and records what came of it.
func (r *effectRun) attempt(ctx context.Context, s events.EffectStarted) {
	in := &EffectInput{
		Tenant: r.tenant, ThreadID: r.thread, EffectID: r.id, FlowID: r.id, Name: r.due.Name, Args: r.due.Args,
		Key: r.id + "." + strconv.FormatInt(s.Firing, 10), Firing: s.Firing, Attempt: s.Attempt, ScheduledAt: r.due.At.Go(),
	}
	late := time.Since(in.ScheduledAt)
	err := r.call(ctx, in)
	r.cfg.Metrics.Effect(err != nil, late)
	if err != nil && ctx.Err() != nil {
		_ = r.m.Nak() // the worker ends: another one takes over
		return
	}
	name, data := "effect.complete", any(thread.CompleteEffect{ID: r.id, Firing: s.Firing, Attempt: s.Attempt})
	if err != nil {
		fail := thread.FailEffect{ID: r.id, Firing: s.Firing, Attempt: s.Attempt, ErrorText: clip(err.Error())}
		if later := (*RetryError)(nil); errors.As(err, &later) {
			fail.AfterMs, fail.NotMade = min(later.After, 24*time.Hour).Milliseconds(), later.NotMade
		}
		name, data = "effect.fail", fail
	}
	for attempts := (retry.Policy{First: 50 * time.Millisecond, Max: 5 * time.Second}).Start(); ; {
		made, err := r.inside(ctx, r.endID(s), name, data)
		var stands *thread.EffectError
		switch {
		case err == nil:
			r.ended(ctx, made)
			return
		case errors.As(err, &stands):
			// Another worker has taken over, and holds the message now.
			r.logger.Warn().Str("tenant", r.tenant).Str("effect", r.id).Msg("an attempt ended after it was given to another worker")
			return
		case errors.Is(err, &events.Error{Code: events.NotFound}):
			r.done()
			return
		}
		r.logger.Warn().Err(err).Str("tenant", r.tenant).Str("effect", r.id).Msg("the end of an effect could not be recorded now; it is tried again")
		if attempts.Wait(ctx) != nil {
			return
		}
	}
}

// ended sets the timer of what follows, and then lets the message go: in this
// order, so that one of the two is always there.
func (r *effectRun) ended(ctx context.Context, made []events.Event) {
	for i := range made {
		switch d := made[i].Data.(type) {
		case events.EffectCompleted:
			r.again(ctx, d.Next, true, d.Attempt)
		case events.EffectFailed:
			if d.NotMade { // the same one again
				d.Attempt--
			}
			r.again(ctx, d.Next, d.Final, d.Attempt)
		}
	}
	r.done()
}

// again sets the timer of the next attempt or, with over, of the next firing. If
// it fails the sweep does it.
func (r *effectRun) again(ctx context.Context, next string, over bool, attempt int64) {
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
	if err := putEffect(ctx, r.log, r.cfg.Now, r.tenant, r.thread, r.id, due); err != nil {
		r.logger.Warn().Err(err).Str("tenant", r.tenant).Str("effect", r.id).Msg("the timer of an effect was not put; the sweep does it")
	}
}

// call runs the effect, with a panic as an error.
func (r *effectRun) call(ctx context.Context, in *EffectInput) (err error) {
	effect, ok := r.find(in.Name)
	if !ok {
		return fmt.Errorf("no worker that had it knows an effect %q; register it, or schedule one that is known", in.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			r.logger.Error().Str("effect", in.Name).Bytes("stack", debug.Stack()).Msg("an effect panicked")
			err = errors.New("the effect panicked")
			if fault, ok := p.(goruntime.Error); ok { // its text holds no data of the effect's
				err = fmt.Errorf("the effect panicked: %w", fault)
			}
		}
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("the effect took longer than %v: %w", r.cfg.Timeout, err)
		}
	}()
	if r.cfg.State != nil {
		x := &Execution{flow: in.FlowID, ctx: ctx, scratch: &sync.Map{}}
		if err := r.dispatcher.Look(ctx, r.tenant, r.thread, func(s *thread.State) {
			x.thread = known{s.AgentID(), s.UserID(), int64(s.CreatedAt()), int64(s.Seq)}
		}); err != nil {
			return err
		}
		in.State = r.cfg.State(r.tenant, r.thread, x)
	}
	return effect.Run(ctx, in)
}

// inside does a command of the worker's on the effect's thread.
func (r *effectRun) inside(ctx context.Context, commandID, name string, data any) ([]events.Event, error) {
	return r.dispatcher.Inside(context.WithoutCancel(ctx), r.tenant, r.thread, commandID, name, data)
}

// endID names the command that ends an attempt, so that it can be repeated if its
// answer was lost.
func (r *effectRun) endID(s events.EffectStarted) string {
	return fmt.Sprintf("effect.%s.%d.%d.%d", r.id, s.Firing, s.Attempt, s.Claim)
}

// keepAlive tells the server that the message is being worked on, until the
// function that it gives is called.
func (r *effectRun) keepAlive() (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(r.cfg.AckWait / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = r.m.InProgress()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// done lets the message go. If that is lost it comes again, and is refused.
func (r *effectRun) done() { _ = r.m.Ack() }
