package client

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Answer is what an agent answered to an Ask.
type Answer struct {
	Text      string        // all texts of the reaction, separated by blank lines
	Items     []events.Item // what the run added to the thread, in order: the reaction, calls and their results
	Execution *events.Execution
}

// Ask sends a text to a thread's agent as its user, and waits for the answer. thread is
// a thread's id, or "key:" followed by its key. The errors are those of React and
// WaitRun; a *RunFailedError if the run failed; and ctx's error if ctx ended, in which
// case the run continues.
func (c *Client) Ask(ctx context.Context, thread, text string, opts ...Option) (*Answer, error) {
	item := events.UserText(text)
	reply, err := c.Send(ctx, thread, events.ReactThread{Item: &item}, opts...)
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
	return c.AnswerOf(ctx, x)
}

// AnswerOf returns the answer of a run that has ended.
func (c *Client) AnswerOf(ctx context.Context, x *events.Execution) (*Answer, error) {
	a := &Answer{Execution: x}
	var err error
	if a.Items, err = c.WithMinSeq(x.Seq).itemsAddedBy(ctx, x); err != nil {
		return nil, err
	}
	var texts []string
	for i := range a.Items {
		if slices.Contains(x.Items(), a.Items[i].ID) {
			text, err := textOf(&a.Items[i])
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
	}
	a.Text = strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n\n")
	return a, nil
}

// itemsAddedBy lists what a run added to its thread, in order: its reaction and the items
// that belong to it, without items that others added during the run.
func (c *Client) itemsAddedBy(ctx context.Context, x *events.Execution) ([]events.Item, error) {
	var out []events.Item
	own := x.Items()
	q := events.ListItems{ThreadID: x.ThreadID, ContextID: x.ContextID, Order: "desc"}
	for {
		page, err := Read(ctx, c, q)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if item.ID == x.TriggerItemID {
				slices.Reverse(out)
				return out, nil
			}
			if slices.Contains(own, item.ID) || slices.Contains(own, item.ParentItemID) {
				out = append(out, item)
			}
		}
		if page.NextCursor == "" { // the trigger was deleted during the run
			slices.Reverse(out)
			return out, nil
		}
		q.Cursor = page.NextCursor
	}
}

// textOf returns the texts of a message, separated by blank lines.
func textOf(item *events.Item) (string, error) {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(item.Content, &parts); err != nil {
		return "", events.Errorf(events.Unavailable, "read the answer %s: %w", item.ID, err)
	}
	var texts []string
	for _, p := range parts {
		if p.Type == events.OutputText && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n"), nil
}
