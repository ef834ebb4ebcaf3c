package runtime

import (
	"context"
	"errors"
)

// Hooks intercept runs. Each may be nil. The worker of the run calls them one after the other. It
// calls them again when a step is repeated after another worker has taken over, so they should be
// idempotent. A panic of a hook is its error, and one that does not return when ctx ends is
// abandoned.
type Hooks struct {
	// BeforeRun is called with each claim. Its error ends the run.
	BeforeRun func(ctx context.Context, st ThreadState) error
	// AfterRun is called when the run has ended, with the error text of a failed run.
	AfterRun func(ctx context.Context, st ThreadState, errorText string)
	// BeforeStep may change the input of the reactor. Its error ends the run.
	BeforeStep func(ctx context.Context, st ThreadState, in *StepInput) error
	// AfterStep may change the reaction before it is recorded. Its error ends the run.
	AfterStep func(ctx context.Context, st ThreadState, in *StepInput, out *Reaction) error
	// BeforeTool may change the arguments of a call. If it returns a result, that is
	// the result of the call, which is not made; an error is the call's failure.
	BeforeTool func(ctx context.Context, st ThreadState, in *ToolInput) (*ToolResult, error)
	// AfterTool may change the result of a call before it is recorded.
	AfterTool func(ctx context.Context, st ThreadState, in *ToolInput, out *ToolResult) error
}

// hookCalls calls the hooks around a run, its steps and its tools.
type hookCalls struct{ *turn }

func (t *turn) hookCalls() hookCalls { return hookCalls{t} }

// guard calls a hook, and returns its panic as an error.
func (t hookCalls) guard(hook func() error) error {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if p := recover(); p != nil {
				LogPanic(t.logger.Error(), p, "a hook")
				err = errors.New("a hook panicked")
			}
			done <- err
		}()
		err = Returned(hook())
	}()
	select {
	case err := <-done:
		return err
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// hooks returns the hooks of the process, followed by those of the agent in the order of its
// definition.
func (t hookCalls) hooks() []Hooks {
	return append([]Hooks{t.w.cfg.Hooks}, t.agent.Hooks...)
}

// inward calls each hook, the process's first, until one returns an error.
func (t hookCalls) inward(call func(Hooks) error) error {
	for _, h := range t.hooks() {
		if err := call(h); err != nil {
			return err
		}
	}
	return nil
}

// outward calls each hook, the process's last, until one returns an error.
func (t hookCalls) outward(call func(Hooks) error) error {
	list := t.hooks()
	for i := range list {
		if err := call(list[len(list)-1-i]); err != nil {
			return err
		}
	}
	return nil
}

func (t hookCalls) beforeRun() error {
	return t.inward(func(h Hooks) error {
		if h.BeforeRun == nil {
			return nil
		}
		st := t.state()
		return t.guard(func() error { return h.BeforeRun(t.ctx, st) })
	})
}

func (t hookCalls) afterRun(errorText string) {
	if t.ctx == nil {
		return
	}
	_ = t.outward(func(h Hooks) error {
		if h.AfterRun == nil {
			return nil
		}
		st := t.state()
		if err := t.guard(func() error { h.AfterRun(t.ctx, st, errorText); return nil }); err != nil {
			t.logger.Warn().Err(err).Msg("the hook after a run failed")
		}
		return nil // the others are called anyway
	})
}

func (t hookCalls) beforeStep(in *StepInput) error {
	return t.inward(func(h Hooks) error {
		if h.BeforeStep == nil {
			return nil
		}
		st := t.state()
		return t.guard(func() error { return h.BeforeStep(t.ctx, st, in) })
	})
}

func (t hookCalls) afterStep(in *StepInput, out *Reaction) error {
	return t.outward(func(h Hooks) error {
		if h.AfterStep == nil {
			return nil
		}
		st := t.state()
		return t.guard(func() error { return h.AfterStep(t.ctx, st, in, out) })
	})
}

// beforeTool returns the result of a call that a hook returned, if one did; later hooks
// are not called then.
func (t hookCalls) beforeTool(in *ToolInput) *ToolResult {
	for _, h := range t.hooks() {
		if h.BeforeTool == nil {
			continue
		}
		var instead *ToolResult
		err := t.guard(func() (err error) {
			instead, err = h.BeforeTool(t.ctx, in.State, in)
			return err
		})
		if err != nil {
			failed := Failed(clip(err.Error()))
			return &failed
		}
		if instead != nil {
			return instead
		}
	}
	return nil
}

func (t hookCalls) afterTool(in *ToolInput, out *ToolResult) {
	_ = t.outward(func(h Hooks) error {
		if h.AfterTool == nil {
			return nil
		}
		changed := *out
		if err := t.guard(func() error { return h.AfterTool(t.ctx, in.State, in, &changed) }); err != nil {
			changed = Failed(clip(err.Error()))
		}
		*out = changed
		return nil
	})
}
