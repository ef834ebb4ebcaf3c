package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// What was shown of an answer that broke off stays: its finished reasoning, and its text as
// interrupted. So if a person stops it. Of an answer that failed in any other way nothing stays.
func TestStep_KeepsWhatBrokeOff(t *testing.T) {
	t.Parallel()
	const (
		thought     = `{"type":"reasoning","summary":[{"type":"summary_text","text":"think"}],"encrypted_content":"e"}`
		interrupted = `{"type":"output_text","text":"so far","interrupted":true}`
		both        = "[" + thought + "," + interrupted + "]"
	)
	silence := errors.New("nothing came for 5m0s")
	for name, c := range map[string]struct {
		err   error // of each attempt; nil: it writes until it is stopped
		calls int
		want  string
	}{
		"silence":                  {&BrokenOffError{Err: silence}, 1, both},
		"silence of a wrapped one": {fmt.Errorf("the model: %w", &BrokenOffError{Err: silence}), 1, both},
		"a lost connection":        {&BrokenOffError{Err: &RetryError{Err: errors.New("unexpected EOF")}}, 3, both},
		"a failure":                {errors.New("the model failed"), 1, ""},
		"failures":                 {&RetryError{Err: errors.New("503")}, 3, ""},
		"stopped":                  {nil, 1, both},
		"stopped, and discarded":   {nil, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.relay()
			calls, begun := 0, make(chan struct{}, 1)
			w.agent("a", ReactorFunc(func(ctx context.Context, _ *StepInput, out Stream) (*Reaction, error) {
				calls++
				for _, c := range []Chunk{
					{ChunkReasoningDelta, events.JSON(`{"id":"rs_1","delta":"thi"}`)}, {ChunkReasoningDelta, events.JSON(`{"id":"rs_1","delta":"nk"}`)},
					{ChunkReasoningEnd, events.JSON(`{"id":"rs_1","encryptedContent":"e"}`)}, {ChunkReasoningDelta, events.JSON(`{"id":"rs_2","delta":"unfinished"}`)},
					{ChunkTextDelta, events.JSON(`{"id":"m","delta":"so "}`)}, {ChunkTextDelta, events.JSON(`{"id":"m","delta":"far"}`)},
				} {
					out.Chunk(c)
				}
				if c.err != nil {
					return nil, c.err
				}
				begun <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}))
			w.work(Config{})
			id, execution := w.begin("a", "hello")
			if c.err == nil {
				next(t, begun)
				if strings.Contains(name, "discarded") {
					w.must("run.cancel", id, events.CancelRun{Discard: true})
				} else {
					w.must("run.stop", id, events.StopRun{Now: true})
				}
			}
			content := "[]"
			for _, e := range w.finished(id, execution) {
				if d, is := e.Data.(events.ItemCreated); is && d.Role == events.Assistant {
					content = string(d.Content)
				}
			}
			if content == "[]" || strings.HasPrefix(content, `[{"type":"error"`) {
				content = ""
			}
			if content != c.want || calls != c.calls {
				t.Errorf("after %d calls: %s, not %s", calls, content, c.want)
			}
		})
	}
}
