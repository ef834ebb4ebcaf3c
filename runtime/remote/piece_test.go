package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// long is a conversation whose answer has a number of results of 240 KB, and a question
// after it.
func long(results int) *runtime.StepInput {
	parts := make([]string, results)
	for i := range parts {
		parts[i] = fmt.Sprintf(`{"type":"tool-look","toolCallId":"c%d","input":{"n":%d},"state":"output-available","output":"%s"}`, i, i, strings.Repeat("o", 240<<10))
	}
	return &runtime.StepInput{
		Tenant: "acme", ThreadID: "T-1", StepID: "stp_1", ItemID: "itm_3",
		Items: []events.Item{
			{ID: "itm_1", ThreadID: "T-1", Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"look"}]`)},
			{ID: "itm_2", ThreadID: "T-1", Type: events.Message, Role: events.Assistant, Content: events.JSON("[" + strings.Join(parts, ",") + "]")},
			{ID: "itm_3", ThreadID: "T-1", Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"and?"}]`)},
		},
	}
}

// A process that serves with this package receives a whole conversation that exceeds a
// message, and no other subscriber can read the pieces.
func TestReactor_LongConversationInPieces(t *testing.T) {
	w := start(t)
	spy, err := w.process.SubscribeSync("skein.cancel.*")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *runtime.StepInput, 1)
	w.serve(t, "long", func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		got <- in
		return says("ok"), nil
	})
	in := long(40)
	reaction, err := w.reactor(t, "long").React(patient(t), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := <-got
	if len(out.Items) != 3 || out.Omitted != nil || !bytes.Equal(out.Items[1].Content, in.Items[1].Content) {
		t.Errorf("it received %d items, without %+v", len(out.Items), out.Omitted)
	}
	if reaction.MessagesForModel != nil {
		t.Errorf("it was shown %v", reaction.MessagesForModel)
	}
	if err := w.process.Flush(); err != nil {
		t.Fatal(err)
	}
	pieces := 0
	for {
		m, err := spy.NextMsg(time.Millisecond)
		if err != nil {
			break
		}
		pieces++
		if bytes.Contains(m.Data, []byte("oooooooo")) || bytes.Contains(m.Data, []byte("itm_")) {
			t.Fatal("a piece can be read by any subscriber")
		}
	}
	if pieces < 9 {
		t.Errorf("it came in %d pieces", pieces)
	}
}

// A process without support for pieces receives what fits: notes replace the oldest
// results, and the run continues.
func TestReactor_LongConversationWithoutPieces(t *testing.T) {
	w := start(t)
	requests := make(chan []byte, 1)
	if _, err := w.process.QueueSubscribe("skein.reactor.long", events.WorkerQueue, func(m *nats.Msg) {
		requests <- m.Data
		_ = m.Respond([]byte(`{"kind":"result","assistantEvent":{"content":[{"type":"output_text","text":"ok"}]}}`))
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.process.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, results := range []int{18, 40} {
		if _, err := w.reactor(t, "long").React(patient(t), long(results), nil); err != nil {
			t.Fatal(err)
		}
		body := <-requests
		var in struct {
			runtime.StepInput
			Protocol struct {
				Version int
				Pieces  struct{ Count int }
			}
		}
		if err := json.Unmarshal(body, &in, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		var parts []struct {
			CallID string `json:"toolCallId"`
			Output string `json:"output"`
			Input  events.JSON
		}
		if err := json.Unmarshal(in.Items[1].Content, &parts); err != nil {
			t.Fatal(err)
		}
		whole := 0
		for _, p := range parts {
			if len(p.Output) == 240<<10 {
				whole++
			} else if whole > 0 || !strings.Contains(p.Output, "left out: 245762 bytes") || !strings.Contains(p.Output, "item itm_2 of thread T-1") {
				t.Errorf("of call %s there is %.200q, after %d whole ones", p.CallID, p.Output, whole)
			}
		}
		if len(in.Items) != 3 || len(parts) != results || whole < 16 || in.Omitted.Outputs != results-whole || in.Omitted.Items != 0 || len(body) > 4<<20 || in.Protocol.Version != 2 || in.Protocol.Pieces.Count < 4 {
			t.Errorf("%d items, %d parts, %d of them whole, without %+v, in %d bytes; %+v", len(in.Items), len(parts), whole, in.Omitted, len(body), in.Protocol)
		}
	}
}

// Requests for pieces are validated: missing pieces, and endless requests.
func TestReactor_AsksForWrongPieces(t *testing.T) {
	for name, c := range map[string]struct {
		results int
		ask     string
		times   int
		want    string
	}{
		"none to be had": {1, `{"kind":"piece","piece":0}`, 1, "has none"},
		"negative":       {18, `{"kind":"piece","piece":-1}`, 1, "asks for piece -1"},
		"too far":        {18, `{"kind":"piece","piece":5}`, 1, "asks for piece 5 of 5"},
		"for ever":       {18, `{"kind":"piece","piece":1}`, 100, "asks for more than"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			asks := make([]string, c.times)
			for i := range asks {
				asks[i] = c.ask
			}
			w.raw(t, "skein.reactor.long", asks...)
			_, err := w.reactor(t, "long").React(patient(t), long(c.results), nil)
			fails(t, err, false, c.want)
		})
	}
}
