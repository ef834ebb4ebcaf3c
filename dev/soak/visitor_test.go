package soak

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
)

const agent = "soaked"

// script registers an agent that makes a call and answers.
func script(r *runtime.Registry) error {
	call := runtime.ToolCall{CallID: "call_1", Name: "lookup", Arguments: events.JSON(`{"order":42}`)}
	err := r.AddReactor(agent, transcript.Fixed(
		transcript.Text("I will look the order up, one moment please.", call),
		transcript.Text("Your order 42 was shipped this morning."),
	))
	if err != nil {
		return err
	}
	type order struct {
		Order int64 `json:"order"`
	}
	tool, err := runtime.DefineTool(runtime.ToolSpec{Name: "lookup", Description: "Looks an order up.", ReadOnly: true},
		func(context.Context, *runtime.ToolInput, order) (map[string]string, error) {
			return map[string]string{"status": "shipped"}, nil
		})
	if err != nil {
		return err
	}
	return r.AddTool(tool)
}

// visitor is a client that connects, does a little of everything, and disconnects.
type visitor struct {
	url    string
	tenant string
	pace   <-chan time.Time // one tick an operation
	lag    func(time.Duration)
}

// visit makes one visit and counts its operations. One that purges its thread writes no
// file, since contents stay for 20 minutes.
func (v visitor) visit(ctx context.Context, purge bool, count func()) (err error) {
	c, err := client.Connect(v.url, client.Options{Tenant: v.tenant, Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer c.Close()
	step := func(what string, do func() error) {
		if err != nil {
			return
		}
		select {
		case <-v.pace:
		case <-ctx.Done():
			err = context.Cause(ctx)
			return
		}
		if err = do(); err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		count()
	}
	made, err := c.Send(ctx, "", events.CreateThread{Title: "soak", AgentID: agent})
	if err != nil {
		return err
	}
	id := made.ThreadID
	timeline, err := c.Timeline(ctx, client.SubscribeOptions{Thread: id})
	if err != nil {
		return err
	}
	defer timeline.Close()
	for n := range 4 {
		step("a message", func() error {
			text := fmt.Sprintf("message %d", n)
			reply, err := c.Send(ctx, id, events.AddMessage{Role: events.FromUser, Content: &text})
			if err != nil {
				return err
			}
			begun := time.Now()
			list, err := client.Read(ctx, c.WithMinSeq(reply.Seq), events.ListMessages{ThreadID: id})
			if err == nil && len(list.Messages) != n+1 {
				err = fmt.Errorf("%d messages, not %d", len(list.Messages), n+1)
			}
			v.lag(time.Since(begun))
			return err
		})
	}
	step("a run", func() error {
		text := "Where is my order 42?"
		reply, err := c.Send(ctx, id, events.ReactThread{Text: &text})
		if err != nil {
			return err
		}
		x, err := c.WithMinSeq(reply.Seq).WaitRun(ctx, events.GetExecution{ThreadID: id, ExecutionID: reply.Result.ExecutionID})
		if err == nil && x.Status != events.ExecutionCompleted {
			err = fmt.Errorf("it ended as %s: %s", x.Status, x.ErrorText)
		}
		return err
	})
	step("a file", func() error {
		if purge {
			return nil
		}
		content := make([]byte, 300_000)
		_, _ = rand.Read(content)
		files := c.Files(id) // it knows what it has written
		if _, err := files.WriteFile(ctx, "/f", content, "", client.WriteFileOptions{}); err != nil {
			return err
		}
		got, err := files.ReadFile(ctx, "/f")
		if err == nil && !bytes.Equal(got, content) {
			err = errors.New("it came back changed")
		}
		return err
	})
	step("the end", func() error {
		_, err := c.Send(ctx, id, events.DeleteThread{Purge: purge})
		return err
	})
	step("the timeline", func() error {
		for {
			e, err := timeline.Next(ctx)
			if err != nil || e.Type == events.LifecycleDeletedType {
				return err
			}
		}
	})
	return err
}
