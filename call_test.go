package skein_test

import (
	"context"
	"errors"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// What a tool or an effect writes through in.State is written once, although it is called again
// after it has failed behind its writes: in.State of every attempt names them by the key of the call.
func TestState_RepeatedCallWritesOnce(t *testing.T) {
	s := skeintest.Start(t)
	hello, bye := "hello", "bye"
	s.Must(s.Tool(skein.NewThreadTool("write", func(ctx context.Context, in *skein.ToolInput, _ struct{}) (string, error) {
		for _, text := range []*string{&hello, &hello, &bye} {
			if _, err := in.State.InjectMessage(ctx, events.AddMessage{Role: events.FromUser, Content: text}); err != nil {
				return "", err
			}
		}
		if _, err := in.State.ScheduleEffect(ctx, "after", map[string]any{"of": "tool"}, 0); err != nil {
			return "", err
		}
		if in.Attempt < 3 {
			return "", &skein.RetryError{Err: errors.New("not yet")}
		}
		return "written", nil
	}, skein.Idempotent())))
	s.Must(s.Effect("after", func(ctx context.Context, in *skein.EffectInput) error {
		if _, err := in.State.InjectMessage(ctx, events.AddMessage{Role: events.FromUser, Content: &bye}); err != nil {
			return err
		}
		if in.Attempt < 2 {
			return &skein.RetryError{Err: errors.New("not yet")}
		}
		return nil
	}))
	c := s.Client("acme")
	made, err := c.Send(t.Context(), "", events.CreateThread{})
	s.Must(err)
	queued, err := c.Send(t.Context(), made.ThreadID, events.QueueTool{Name: "write", CallID: "q1"})
	s.Must(err)
	_, err = c.WaitRun(t.Context(), events.GetExecution{ThreadID: made.ThreadID, ExecutionID: queued.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &queued.Seq}})
	s.Must(err)
	for range 3 { // the effect, and its second attempt
		s.WaitIdle()
		s.Advance(1 << 40)
	}
	now, err := c.UpToDate(t.Context())
	s.Must(err)
	state, err := now.Thread(t.Context(), made.ThreadID)
	s.Must(err)
	list, err := state.GetMessages(t.Context(), events.GetMessagesOptions{})
	s.Must(err)
	said := map[string]int{}
	for _, m := range list.Messages {
		if m.Content != nil {
			said[*m.Content]++
		}
	}
	if said[hello] != 2 || said[bye] != 2 {
		t.Errorf("the messages are %v", said)
	}
}
