package responses_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime"
)

// What only this protocol reports as a failure, and answers that are not what it says.
func TestFailures_OfItsOwn(t *testing.T) {
	failed := func(code string) func(*modeltest.Stream) {
		return func(w *modeltest.Stream) {
			w.Event("response.failed", `"response":{"status":"failed","error":{"code":%q,"message":"it said"},"output":[]}`, code)
		}
	}
	for name, c := range map[string]struct {
		answer func(*modeltest.Stream)
		retry  bool
		want   string
	}{
		"an event that is none": {func(w *modeltest.Stream) { w.Raw("data: {}\n\n") }, false, "an event has no type"},
		"an item that is none":  {func(w *modeltest.Stream) { completed(w, `{"type":"message","content":7}`) }, false, "item 0 is not of its type"},
		"an invalid part":       {func(w *modeltest.Stream) { completed(w, `{"type":"message","content":[{"type":"output_text"}]}`) }, false, "an invalid part"},
		"failed: the server":    {failed("server_error"), true, "the model failed (server_error): it said"},
		"failed: the rate":      {failed("rate_limit_exceeded"), true, "rate_limit_exceeded"},
		"failed: the prompt":    {failed("invalid_prompt"), false, "the model failed (invalid_prompt): it said"},
		"failed: too long":      {failed("context_length_exceeded"), false, "it said"},
		"failed: a secret":      {failed("the key " + modeltest.Key), false, "the key ***"},
		"failed without a word": {func(w *modeltest.Stream) { w.Event("response.failed", `"response":{"error":null}`) }, true, "the model failed"},
		"cancelled":             {func(w *modeltest.Stream) { w.Event("response.cancelled", "") }, true, "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
				w.Event("response.output_text.delta", `"output_index":0,"item_id":"m","delta":"so far"`)
				c.answer(w)
			})
			got, err := reactor(t, e).React(t.Context(), modeltest.Input(), &modeltest.Watch{})
			var retry *runtime.RetryError
			if err == nil || got != nil || errors.As(err, &retry) != c.retry || !strings.Contains(err.Error(), c.want) || e.Count() != 1 {
				t.Errorf("%v, %#v, asked %d times, not %q", got, err, e.Count(), c.want)
			}
		})
	}
}
