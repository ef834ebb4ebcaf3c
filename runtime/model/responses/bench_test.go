package responses_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/modeltest"
)

// An answer of 2,000 deltas over HTTP, as a model streams it.
func BenchmarkReact(b *testing.B) {
	var text strings.Builder
	events := &strings.Builder{}
	for range 2000 {
		text.WriteString("word ")
		events.WriteString("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"item_id\":\"msg_1\"," +
			"\"output_index\":0,\"content_index\":0,\"delta\":\"word \",\"logprobs\":[],\"obfuscation\":\"abcdef\"}\n\n")
	}
	e := serve(b, func(w *modeltest.Stream, _ *http.Request) {
		w.Raw(events.String())
		completed(w, says(text.String()))
	})
	r := reactor(b, e)
	for b.Loop() {
		if _, err := r.React(b.Context(), modeltest.Input(), &modeltest.Watch{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/2000, "µs/event")
}
