package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runtime"
)

// turn returns what a step asks, and the ids of the thread's items that it shows. The same step
// returns the same turn.
func (r *Reactor) turn(ctx context.Context, in *runtime.StepInput) (t *Turn, shown []string, err error) {
	if in.Model.Model == "" {
		return nil, nil, errors.New("the agent has no model: its definition must name one")
	}
	t = &Turn{
		Model: in.Model.Model, Instructions: in.Instructions, MaxOutputTokens: in.Model.MaxOutputTokens, Temperature: in.Model.Temperature,
		Tools: slices.Clone(in.Tools), Store: r.config.Store, RawReasoning: r.config.RawReasoning, definition: in.Model.Name,
	}
	for i := range t.Tools {
		if t.Tools[i].Parameters == nil {
			t.Tools[i].Parameters = events.JSON(`{"type":"object","properties":{}}`)
		}
	}
	if t.Params, err = r.protocol.Params.read(in.Model.Params, r.config.Params); err != nil {
		return nil, nil, t.paramsError(err)
	}
	items, err := withFiles(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	h := newHistory(r.protocol, r.config)
	if t.Items, shown = h.show(items); len(t.Items) == 0 {
		return nil, nil, ErrNothingToShow
	}
	return t, shown, nil
}

// paramsError returns what is wrong with the params of the model's definition.
func (t *Turn) paramsError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the params of the model %.64q: %w", t.definition, err)
}

// mostFiles is how many bytes of files a request has, before base64.
const mostFiles = 36 << 20

// withFiles returns the items with the files that they refer to, those of the newest items first.
// What is more than a request may have is replaced by a text that says so.
func withFiles(ctx context.Context, in *runtime.StepInput) ([]events.Item, error) {
	if in.Files == nil {
		return in.Items, nil
	}
	items := slices.Clone(in.Items)
	for left, i := int64(mostFiles), len(items)-1; i >= 0; i-- {
		for _, raw := range []*events.JSON{&items[i].Content, &items[i].Metadata} {
			var err error
			if *raw, err = attachment.Load(ctx, in.Files, *raw, &left); err != nil {
				return nil, &runtime.RetryError{Err: fmt.Errorf("read the files of the conversation: %s", events.AsError(err).Message)}
			}
		}
	}
	return items, nil
}
