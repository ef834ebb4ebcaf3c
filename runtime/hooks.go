package runtime

import (
	"context"
	"errors"
	"runtime/debug"
)

// Hooks intercept the life of runs (SA-20). Each may be nil. They are called by
// the worker that has the run, in its order, and again when a boundary is done
// over after a handover; so what they do should be safe to do twice. A panic of a
// hook is an error of it, and one that does not return when ctx ends is left
// behind.
type Hooks struct {
	// BeforeRun is called with each claim. Its error ends the run.
	BeforeRun func(ctx context.Context, st ThreadState) error
	// AfterRun is called when the run has ended, with why it failed, if it did.
	AfterRun func(ctx context.Context, st ThreadState, errorText string)
	// BeforeStep may change what the reactor is told. Its error ends the run.
	BeforeStep func(ctx context.Context, st ThreadState, in *StepInput) error
	// AfterStep may change what the reactor gave, before it is recorded. Its
	// error ends the run.
	AfterStep func(ctx context.Context, st ThreadState, in *StepInput, out *Reaction) error
	// BeforeTool may change the arguments of a call. A result stands for the
	// call, which is then not made; an error is the call's failure.
	BeforeTool func(ctx context.Context, st ThreadState, in *ToolInput) (*ToolResult, error)
	// AfterTool may change what a call came to, before it is recorded.
	AfterTool func(ctx context.Context, st ThreadState, in *ToolInput, out *ToolResult) error
}

// guard calls a hook, and makes an error of its panic.
func (t *turn) guard(hook func() error) error {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if p := recover(); p != nil {
				t.logger.Error().Bytes("stack", debug.Stack()).Msg("a hook panicked")
				err = errors.New("a hook panicked")
			}
			done <- err
		}()
		err = hook()
	}()
	select {
	case err := <-done:
		return err
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

func (t *turn) beforeRun() error {
	hook := t.w.cfg.Hooks.BeforeRun
	if hook == nil {
		return nil
	}
	st := t.state()
	return t.guard(func() error { return hook(t.ctx, st) })
}

func (t *turn) afterRun(errorText string) {
	hook := t.w.cfg.Hooks.AfterRun
	if hook == nil || t.ctx == nil {
		return
	}
	st := t.state()
	if err := t.guard(func() error { hook(t.ctx, st, errorText); return nil }); err != nil {
		t.logger.Warn().Err(err).Msg("the hook after a run came to nothing")
	}
}

func (t *turn) beforeStep(in *StepInput) error {
	hook := t.w.cfg.Hooks.BeforeStep
	if hook == nil {
		return nil
	}
	st := t.state()
	return t.guard(func() error { return hook(t.ctx, st, in) })
}

func (t *turn) afterStep(in *StepInput, out *Reaction) error {
	hook := t.w.cfg.Hooks.AfterStep
	if hook == nil {
		return nil
	}
	st := t.state()
	return t.guard(func() error { return hook(t.ctx, st, in, out) })
}

// beforeTool gives the result that stands for a call, if a hook gave one.
func (t *turn) beforeTool(in *ToolInput) *ToolResult {
	hook := t.w.cfg.Hooks.BeforeTool
	if hook == nil {
		return nil
	}
	var instead *ToolResult
	err := t.guard(func() (err error) {
		instead, err = hook(t.ctx, in.State, in)
		return err
	})
	if err != nil {
		failed := Failed(clip(err.Error()))
		return &failed
	}
	return instead
}

func (t *turn) afterTool(in *ToolInput, out *ToolResult) {
	hook := t.w.cfg.Hooks.AfterTool
	if hook == nil {
		return
	}
	changed := *out
	if err := t.guard(func() error { return hook(t.ctx, in.State, in, &changed) }); err != nil {
		changed = Failed(clip(err.Error()))
	}
	*out = changed
}
