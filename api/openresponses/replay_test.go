package openresponses_test

import (
	"bufio"
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/internal/natstest"
)

// dropChunks removes all chunks, as their stream does after an hour.
func (w *world) dropChunks() {
	w.t.Helper()
	nc := natstest.Dial(w.t, w.s.Addresses().NATS)
	js, err := jetstream.New(nc)
	w.s.Must(err)
	chunks, err := js.Stream(w.t.Context(), "SKEIN_CHUNKS")
	w.s.Must(err)
	w.s.Must(chunks.Purge(w.t.Context()))
	if info, err := chunks.Info(w.t.Context()); err != nil || info.State.Msgs != 0 || info.State.LastSeq == 0 {
		w.t.Fatalf("%+v, %v", info, err)
	}
}

// A stream can be read again from each of its numbers, with the very same events, while its
// chunks are stored and afterwards. Afterwards a text comes in one delta.
func TestReplay_EverySuffix(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.model.answers(func(a *answer, _ map[string]any) {
		a.thinks("Let me see.")
		a.says("Let", " me", " look.")
		a.calls("call_1", "weather", `{"city":"Paris"}`)
		a.ends("response.completed", "")
	})
	live := w.stream("POST", "/v1/responses", `{"model":"triage","input":"hello","stream":true,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]}`)
	last := streams(t, live)
	path := fmt.Sprintf("/v1/responses/%v?stream=true", last["id"])
	suffixes := func(all []object) {
		t.Helper()
		for after := range all {
			rest := w.stream("GET", fmt.Sprintf("%s&starting_after=%d", path, after), "")
			if from := min(after+1, len(all)-1); !reflect.DeepEqual(rest, all[from:]) {
				t.Errorf("after %d: %s", after, kinds(rest))
			}
		}
	}
	suffixes(live)
	w.dropChunks()
	later := w.stream("GET", path, "")
	if got := streams(t, later); !reflect.DeepEqual(got, last) {
		t.Errorf("without its chunks the response is\n%v\nand not\n%v", got, last)
	}
	deltas := map[string]int{}
	for _, e := range later {
		if e["delta"] != nil {
			deltas[e["delta"].(string)]++
		}
	}
	if want := map[string]int{"Let me see.": 1, "Let me look.": 1, `{"city":"Paris"}`: 1}; !reflect.DeepEqual(deltas, want) {
		t.Errorf("%v", deltas)
	}
	if again := w.stream("GET", path, ""); !reflect.DeepEqual(again, later) {
		t.Errorf("the second replay has %s, and the first %s", kinds(again), kinds(later))
	}
	suffixes(later)
}

// A reader that is cut off resumes at the number that it has seen, also while the response is
// being written, and misses nothing.
func TestReplay_WhileItRuns(t *testing.T) {
	t.Parallel()
	w := start(t)
	half, release := make(chan struct{}), make(chan struct{})
	w.model.answers(func(a *answer, _ map[string]any) {
		a.says("One, ")
		close(half)
		select {
		case <-release:
		case <-a.r.Context().Done():
		}
		a.says("two.")
		a.ends("response.completed", "")
	})
	id := w.must("POST", "/v1/responses", `{"model":"triage","input":"hello","background":true}`)["id"]
	<-half
	reader := make(chan []object)
	go func() {
		reader <- w.stream("GET", fmt.Sprintf("/v1/responses/%v?stream=true&starting_after=1", id), "")
	}()
	close(release)
	resumed := <-reader
	all := w.stream("GET", fmt.Sprintf("/v1/responses/%v?stream=true", id), "")
	streams(t, all)
	if !reflect.DeepEqual(resumed, all[2:]) {
		t.Errorf("%s, and not %s", kinds(resumed), kinds(all[2:]))
	}
}

// A stream ends cleanly when the server stops in the middle of an answer, with an error that has the
// number of the event before. The run goes on at the next start, and the rest of the stream has the
// numbers that follow.
func TestReplay_AcrossRestart(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	at := func(o *skein.Options) { o.Store, o.Volatile = store, false }
	var id any
	var seen []object
	var last any // the number that a client resumes after
	t.Run("before", func(t *testing.T) {
		w := start(t, at)
		w.model.answers(func(a *answer, _ map[string]any) {
			a.says("One, ")
			<-a.r.Context().Done()
		})
		id = w.must("POST", "/v1/responses", `{"model":"triage","input":"hello","background":true}`)["id"]
		res, end := w.send("GET", fmt.Sprintf("/v1/responses/%v?stream=true", id), "")
		defer end()
		stopped, told := make(chan error, 1), false
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			switch {
			case data == "[DONE]":
				t.Error("a stream that was cut off looks complete")
				continue
			case !ok:
				continue
			}
			e := decoded(t, []byte(data))
			if last = e["sequence_number"]; e["type"] == "error" {
				if before := seen[len(seen)-1]["sequence_number"]; last != before || !strings.Contains(data, "resume the stream") {
					t.Errorf("after the event %v: %s", before, data)
				}
				told = true
				continue
			}
			if seen = append(seen, e); e["delta"] == "One, " {
				go func() { stopped <- w.s.Stop(context.Background()) }()
			}
		}
		if err := lines.Err(); err != nil {
			t.Errorf("the stream does not end cleanly: %v", err)
		}
		w.s.Must(<-stopped)
		if !told {
			t.Error("the stream does not say that it is cut off")
		}
	})
	t.Run("after", func(t *testing.T) {
		w := start(t, at)
		w.model.answers(func(a *answer, _ map[string]any) {
			a.says("One, ", "two.")
			a.ends("response.completed", "")
		})
		rest := w.stream("GET", fmt.Sprintf("/v1/responses/%v?stream=true&starting_after=%v", id, last), "")
		all := append(seen, rest...)
		end := streams(t, all)
		conforms(t, end)
		if texts(end["output"]) != "One, two." {
			t.Errorf("%v", end["output"])
		}
		if again := w.stream("GET", fmt.Sprintf("/v1/responses/%v?stream=true", id), ""); !reflect.DeepEqual(again, all) {
			t.Errorf("again: %s\nand before: %s", kinds(again), kinds(all))
		}
	})
}
