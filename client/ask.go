package client

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Answer is what an agent answered.
type Answer struct {
	Text      string        // all texts of the reaction, a blank line between two
	Items     []events.Item // what the run added to the thread, in order: the reaction, and calls with their results
	Execution *events.Execution
}

// Ask says something to a thread's agent as its user, and waits for the answer. The
// thread is an id, or key: and its key. The error is that of React, or of WaitRun;
// a *RunFailedError if the run failed; that of ctx if it ended, and then the run
// goes on.
func (c *Client) Ask(ctx context.Context, thread, text string, opts ...Option) (*Answer, error) {
	item := events.UserText(text)
	reply, err := c.React(ctx, thread, events.ReactThread{Item: &item}, opts...)
	if err != nil {
		return nil, err
	}
	x, err := c.WaitRun(ctx, events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &reply.Seq}})
	if err != nil {
		return nil, err
	}
	if x.Status == events.ExecutionFailed {
		return nil, &RunFailedError{ThreadID: x.ThreadID, ExecutionID: x.ID, Text: x.ErrorText}
	}
	a := &Answer{Execution: x}
	if a.Items, err = c.WithMinSeq(x.Seq).answered(ctx, x); err != nil {
		return nil, err
	}
	for i := range a.Items {
		if a.Items[i].ID == x.ReactionItemID {
			a.Text, err = textOf(&a.Items[i])
		}
	}
	return a, err
}

// answered lists what a run added to its thread, in order: the reaction and what
// belongs to it, and not what others said meanwhile.
func (c *Client) answered(ctx context.Context, x *events.Execution) ([]events.Item, error) {
	var out []events.Item
	q := events.ListItems{ThreadID: x.ThreadID, ContextID: x.ContextID, Order: "desc"}
	for {
		page, err := c.ListItems(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if item.ID == x.TriggerItemID {
				slices.Reverse(out)
				return out, nil
			}
			if item.ID == x.ReactionItemID || item.ParentItemID == x.ReactionItemID {
				out = append(out, item)
			}
		}
		if page.NextCursor == "" { // the trigger was deleted meanwhile
			slices.Reverse(out)
			return out, nil
		}
		q.Cursor = page.NextCursor
	}
}

// textOf returns the texts of a message.
func textOf(item *events.Item) (string, error) {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(item.Content, &parts); err != nil {
		return "", events.Errorf(events.Unavailable, "the answer %s cannot be read: %w", item.ID, err)
	}
	var texts []string
	for _, p := range parts {
		if p.Type == events.OutputText && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n"), nil
}
