package model_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime"
)

// Sequences that end an answer are sent to endpoints that know them, under their name. For the others
// the answer ends before the first one, however its pieces come, and nothing that follows is shown.
func TestStops(t *testing.T) {
	for _, p := range modeltest.Protocols() {
		t.Run(p.Name, func(t *testing.T) {
			e := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) {
				w.Data(p.Tell(modeltest.Answer{Text: []string{"one\\n", "St", "ill. S", "TO", "P two"}, Calls: []modeltest.Call{{ID: "c1", Name: "look", Pieces: []string{"{}"}}}})...)
			})
			in, watch := modeltest.Input(), &modeltest.Watch{}
			in.Model.Params = events.JSON(`{"stop":["STOP","never"]}`)
			got, err := e.Reactor(t, p.Codec).React(t.Context(), in, watch)
			if err != nil {
				t.Fatal(err)
			}
			body := string(e.Body(t, 0))
			if want := map[string]string{"chat": `"stop":["STOP","never"]`, "messages": `"stop_sequences":["STOP","never"]`}[p.Name]; !strings.Contains(body, want) || strings.Count(body, "STOP") > 1 || want == "" && strings.Contains(body, "stop") {
				t.Fatalf("asked %s", body)
			}
			if p.Codec.Protocol().Stops { // what the endpoint sends is the answer
				return
			}
			if text := modeltest.Written(t, got.AssistantEvent.Content); !strings.Contains(text, `"text":"one\nStill. "`) || strings.Contains(text, "two") || len(got.ToolCalls) != 0 || got.FinishReason != "" {
				t.Errorf("the answer is %s, with %d calls", text, len(got.ToolCalls))
			}
			if said := saidIn(t, watch); said != "one\nStill. " {
				t.Errorf("shown was %q", said)
			}
		})
	}
}

// What only begins like a sequence is shown when the text ends.
func TestStops_AlmostOne(t *testing.T) {
	p := modeltest.Protocols()[0]
	e := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) {
		w.Data(p.Tell(modeltest.Answer{Text: []string{"non-ST", "ST", "OST", "O"}})...)
	})
	in, watch := modeltest.Input(), &modeltest.Watch{}
	in.Model.Params = events.JSON(`{"stop":["STOP"]}`)
	if _, err := e.Reactor(t, p.Codec).React(t.Context(), in, watch); err != nil {
		t.Fatal(err)
	}
	if said := saidIn(t, watch); said != "non-STSTOSTO" {
		t.Errorf("shown was %q", said)
	}
}

// saidIn returns the text that chunks show.
func saidIn(t *testing.T, w *modeltest.Watch) (said string) {
	t.Helper()
	for _, c := range w.Chunks {
		kind, data, _ := strings.Cut(c, " ")
		var d struct {
			Delta string `json:"delta"`
		}
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			t.Fatal(err)
		}
		if kind == runtime.ChunkTextDelta {
			said += d.Delta
		} else if strings.HasPrefix(kind, "tool") {
			t.Errorf("shown was %s", c)
		}
	}
	return said
}
