package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runview"
)

// A call that was certainly not made is repeated for any tool; one that may have been
// made, only if the tool is idempotent.
func TestCalls_NotMadeAreRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		idempotent bool
		fail       RetryError
		calls      int
	}{
		"not made":             {false, RetryError{NotMade: true}, 3},
		"may have been made":   {false, RetryError{}, 1},
		"idempotent":           {true, RetryError{}, 3},
		"idempotent, not made": {true, RetryError{NotMade: true}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			calls := 0
			w.agent("a", script(says("x", call("c1", "find", `{}`)), says("y")),
				tool{ToolSpec{Name: "find", Idempotent: c.idempotent}, func(context.Context, *ToolInput) (ToolResult, error) {
					if calls++; calls < 3 {
						fail := c.fail
						fail.Err = errors.New("no worker is there")
						return ToolResult{}, &fail
					}
					return Done(events.JSON(`1`)), nil
				}})
			w.work(Config{})
			id, execution := w.begin("a", "hello")
			if status, text, _ := endOf(t, w.finished(id, execution)); status != events.ExecutionCompleted {
				t.Errorf("it ended %s (%s)", status, text)
			}
			if calls != c.calls {
				t.Errorf("the call was made %d times, not %d", calls, c.calls)
			}
		})
	}
}

// The reason for which the model ended its last answer is in the span of its step, and
// in the chunk that ends the run: EK-106, EK-131.
func TestFinishReason(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"": "stop", "length": "length", "content-filter": "content-filter", "a word of its own": "other"} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t)
			said := says("truncated")
			said.FinishReason = word
			w.agent("a", script(said))
			w.work(Config{})
			id, execution := w.begin("a", "hello")
			recorded := ""
			for _, e := range w.finished(id, execution) {
				if d, ok := e.Data.(events.TraceRecorded); ok && d.Name == runview.ReactorSpanName {
					recorded = string(d.Data)
				}
			}
			if word == "" && recorded != "" || word != "" && recorded != `{"finishReason":"`+want+`"}` {
				t.Errorf("the span says %q", recorded)
			}
			if got := w.finish(id, execution); got.Reason != want {
				t.Errorf("the stream ends with %+v", got)
			}
		})
	}
}

// finish waits for the chunk that ends a run.
func (w *world) finish(id, execution string) (f events.Finish) {
	w.t.Helper()
	subject := w.log.Config().Names.Chunk(tenant, id, execution)
	for {
		reply, err := w.nc.RequestWithContext(w.t.Context(), "$JS.API.DIRECT.GET.SKEIN_CHUNKS", []byte(`{"last_by_subj":"`+subject+`"}`))
		if err != nil {
			w.t.Fatal(err)
		}
		if e, err := events.DecodeEvent(reply.Data); err == nil {
			if d, ok := e.Data.(events.ChunkEmitted); ok && d.Type == events.ChunkFinish {
				if err := json.Unmarshal(d.Data, &f); err != nil {
					w.t.Fatal(err)
				}
				return f
			}
		}
		retry.Sleep(w.t.Context(), 5*time.Millisecond) // chunks are stored as they arrive
	}
}
