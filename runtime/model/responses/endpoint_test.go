package responses_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/responses"
)

func serve(t testing.TB, answer func(w *modeltest.Stream, r *http.Request)) *modeltest.Endpoint {
	t.Helper()
	return modeltest.Serve(t, answer)
}

func reactor(t testing.TB, e *modeltest.Endpoint, change ...func(*model.Config)) *model.Reactor {
	t.Helper()
	return e.Reactor(t, responses.Codec{}, change...)
}

// completed ends a stream with these items.
func completed(w *modeltest.Stream, items ...string) {
	w.Event("response.completed", `"response":{"id":"resp_1","status":"completed","model":"test-model-1","output":[%s],"usage":`+
		`{"input_tokens":120,"input_tokens_details":{"cached_tokens":100},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":150}}`,
		strings.Join(items, ","))
}

func says(text string) string {
	return `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"` + text + `"}]}`
}

// field returns a field of a JSON object.
func field(t *testing.T, raw events.JSON, name string) events.JSON {
	t.Helper()
	var all map[string]events.JSON
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return all[name]
}

// unmarked returns parts without the name of the endpoint that made them, which is its address's.
func unmarked(parts string) string {
	return regexp.MustCompile(`"(skein:)?provider":"openai-[0-9a-f]{8}",|,"(skein:)?provider":"openai-[0-9a-f]{8}"`).ReplaceAllString(parts, "")
}
