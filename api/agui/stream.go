package agui

import (
	"context"
	"slices"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// stream sends the events of a run, from its RUN_STARTED to its end.
func (f *follow) stream(ctx context.Context, in *input, send func(...event) error) error {
	c := f.of.now
	encode := newEncoder(f.thread, f.tools)
	encode.muted = len(f.after) > 0
	changed := ""
	source, err := runstream.Subscribe(ctx, c, runstream.Options{
		Thread: f.thread, Execution: f.execution, From: f.from, Types: []string{string(events.StateChangedType)}, Live: f.live,
		Before: func(_ context.Context, e *events.Event) error {
			if d, ok := events.AnswerIn(e); ok && slices.Contains(f.after, d.CallID) {
				encode.muted = false
			}
			if _, is := e.Data.(events.StateChanged); is && !encode.muted {
				changed = e.Subject
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	defer source.Close()
	if err := send(in.started()); err != nil {
		return err
	}
	view := runview.New(f.execution)
	view.AppendOnly()
	err = runstream.Play(ctx, source, view, func(frames []runview.Frame) error {
		if changed != "" {
			state, err := stateOf(ctx, c, events.GetContext{ThreadID: f.thread, Fresh: source.Fresh()}, changed)
			if changed = ""; err != nil {
				return err
			}
			if err := send(state...); err != nil {
				return err
			}
		}
		return send(encode.encode(frames)...)
	})
	if err != nil {
		return err
	}
	if err := send(encode.finish()...); err != nil {
		return err
	}
	if encode.off != "" || encode.end != nil {
		return send(encode.ending(in, usageOf(view.Usage())))
	}
	// It waits for people.
	x, err := client.Read(ctx, c, events.GetExecution{ThreadID: f.thread, ExecutionID: f.execution, Fresh: source.Fresh()})
	if err != nil {
		return err
	}
	return send(paused(in, x))
}

// paused returns how the stream of a run that waits for people ends. If they have answered meanwhile,
// the client may answer the same.
func paused(in *input, x *events.Execution) event {
	asked := x.WaitingApprovals()
	if len(asked) == 0 {
		asked = x.Approvals
	}
	o := &outcome{Type: "interrupt"}
	for i := range asked {
		o.Interrupts = append(o.Interrupts, interruptOf(&asked[i]))
	}
	return event{Type: runFinished, ThreadID: in.ThreadID, RunID: in.RunID, Outcome: o}
}

// stateOf returns a context of a thread as its state, if it is the default one and has any.
func stateOf(ctx context.Context, c *client.Client, d events.GetContext, id string) ([]event, error) {
	state, err := client.Read(ctx, c, d)
	if err != nil || id != "" && state.ID != id || !told(state.Content) {
		return nil, err
	}
	return []event{{Type: stateSnapshot, Snapshot: state.Content}}, nil
}
