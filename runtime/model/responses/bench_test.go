package responses_test

import (
	"net/http"
	"strings"
	"testing"
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
	e := serve(b, func(w *stream, _ *http.Request) {
		w.raw(events.String())
		w.completed(says(text.String()))
	})
	r := e.reactor(b)
	for b.Loop() {
		if _, err := r.React(b.Context(), input(), &watch{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/2000, "µs/event")
}
