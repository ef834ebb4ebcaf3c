package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// A model whose endpoint does not answer is replaced by its fallback, with the settings of the run.
// The trace has its failure before what answered, and live readers are told to forget its text.
func TestStep_Fallback(t *testing.T) {
	t.Parallel()
	broke := &BrokenOffError{Err: &RetryError{Err: errors.New("the answer broke off")}}
	for name, c := range map[string]struct {
		fail   map[string]error // by the model, of each attempt; nil: it answers
		models string           // that may be asked
		asked  string
		logged string
		ends   events.ExecutionStatus
	}{
		"at once":               {map[string]error{"one": &UnansweredError{Err: broke}}, "one two", "one-1 two-1", "one", events.ExecutionCompleted},
		"after its attempts":    {map[string]error{"one": &UnansweredError{Again: true, Err: broke}}, "one two", "one-1 one-2 one-3 two-1", "one one one", events.ExecutionCompleted},
		"not temporary":         {map[string]error{"one": &UnansweredError{Again: true, Err: errors.New("401")}}, "one two", "one-1 two-1", "one", events.ExecutionCompleted},
		"all of them in turn":   {map[string]error{"one": &UnansweredError{Err: broke}, "two": &UnansweredError{Err: broke}}, "one two three", "one-1 two-1 three-1", "one two", events.ExecutionCompleted},
		"none answers":          {map[string]error{"one": &UnansweredError{Err: errors.New("401")}, "two": &UnansweredError{Err: errors.New("402")}}, "one two", "one-1 two-1", "one", events.ExecutionFailed},
		"no fallback":           {map[string]error{"one": &UnansweredError{Err: broke}}, "one", "one-1 one-2 one-3", "one one", events.ExecutionFailed},
		"a request was refused": {map[string]error{"one": errors.New("400")}, "one two", "one-1", "", events.ExecutionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.relay()
			var asked []string
			var settings string
			a := w.agent("a", ReactorFunc(func(_ context.Context, in *StepInput, out Stream) (*Reaction, error) {
				asked = append(asked, fmt.Sprintf("%s-%d", in.Model.Name, in.Attempt))
				settings = fmt.Sprintf("%v %s %d", *in.Model.Temperature, in.Model.Params, in.Model.MaxOutputTokens)
				out.Chunk(Chunk{ChunkTextDelta, events.JSON(`{"id":"m","delta":"` + in.Model.Name + ` says "}`)})
				if err := c.fail[in.Model.Name]; err != nil {
					return nil, err
				}
				said := says("right")
				said.Usage = &Usage{Provider: "endpoint of " + in.Model.Name, Model: in.Model.Model, InputTokens: 3, OutputTokens: 2}
				said.ProviderUsage = events.JSON(`{"prompt_tokens":3}`)
				return said, nil
			}))
			names := strings.Fields(c.models)
			a.A.Model = Model{Name: names[0], Model: "gpt-" + names[0], Endpoint: "ep-" + names[0]}
			for _, other := range names[1:] {
				a.A.Model.Fallback = append(a.A.Model.Fallback, Model{Name: other, Model: "gpt-" + other, Params: events.JSON(`{"a":1}`)})
			}
			w.work(Config{})
			sub := w.listen(t)
			id := w.must("thread.create", "", events.CreateThread{AgentID: "a"}).ThreadID
			text, half := "hello", 0.5
			execution := w.must("thread.react", id, events.ReactThread{Text: &text, Settings: &events.RunSettings{
				Temperature: &half, Params: events.JSON(`{"b":2}`), MaxOutputTokens: 9,
			}}).Result.ExecutionID
			var logged []string
			span, content := "", ""
			all := w.finished(id, execution)
			for _, e := range all {
				switch d := e.Data.(type) {
				case events.TraceRecorded:
					if d.Kind == events.TraceLog {
						if span != "" {
							t.Errorf("after the answer: %s", d.Text)
						}
						model := strings.TrimPrefix(runview.ReadRecord(d.Data).Model, "gpt-")
						if model == "" {
							model = names[0] // another attempt at it
						}
						if logged = append(logged, model); !strings.Contains(d.Text, c.fail[model].Error()) {
							t.Errorf("the log has %q", d.Text)
						}
					} else if d.Name == runview.ReactorSpanName {
						span = string(d.Data) + " " + d.Usage.Provider
					}
				case events.ItemCreated:
					if d.Role == events.Assistant {
						content = string(d.Content)
					}
				}
			}
			last := names[len(names)-1]
			if c.ends == events.ExecutionCompleted {
				want := fmt.Sprintf(`{"model":"gpt-%s","providerUsage":{"prompt_tokens":3}} endpoint of %[1]s`, last)
				if span != want || content != `[{"type":"output_text","text":"right"}]` || settings != `0.5 {"a":1,"b":2} 9` {
					t.Errorf("the span %s, not %s; said %s; asked with %s", span, want, content, settings)
				}
			}
			if status, why, _ := endOf(t, all); status != c.ends || strings.Join(asked, " ") != c.asked || strings.Join(logged, " ") != c.logged {
				t.Errorf("it ended %s (%s); asked %v, logged %v", status, why, asked, logged)
			}
			shown := "" // to a reader that forgets what is withdrawn
			for _, chunk := range w.chunks(t, sub, func(c events.ChunkEmitted) bool { return c.Type == events.ChunkFinish }) {
				var d struct {
					Delta    string `json:"delta"`
					Substate string `json:"substate"`
				}
				if err := json.Unmarshal(chunk.Data, &d); err != nil {
					t.Fatal(err)
				}
				if shown += d.Delta; d.Substate == "retrying" {
					shown = ""
				}
			}
			if final, _, _ := strings.Cut(asked[len(asked)-1], "-"); shown != final+" says " {
				t.Errorf("readers are shown %q", shown)
			}
		})
	}
}
