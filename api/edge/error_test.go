package edge_test

import (
	"net/http"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// A refusal that names nothing else has no details.
func TestProblemOf_DetailsIfThereAreAny(t *testing.T) {
	for path, want := range map[string]string{
		"":      `{"type":"invalid_request","code":"invalid_request","message":"wrong","param":""}`,
		"/text": `{"type":"invalid_request","code":"invalid_request","message":"wrong","param":"text","details":{"path":"/text"}}`,
	} {
		p, status := edge.ProblemOf(events.Invalid(path, "wrong"))
		if got, err := json.Marshal(p); err != nil || string(got) != want || status != http.StatusBadRequest {
			t.Errorf("%q: %d %s, %v", path, status, got, err)
		}
	}
}
