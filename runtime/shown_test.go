package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// What a step records does not grow with the thread: of what the model was shown it names the
// last items, and tells all of them by their number and a digest. A short thread's are all named.
func TestStep_RecordDoesNotGrowWithTheThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var received [][]string
	w.agent("a", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		var ids []string
		for _, i := range in.Items {
			ids = append(ids, i.ID)
		}
		received = append(received, ids)
		got := says("fine")
		if len(received)%2 == 0 { // a reactor may say itself what it has shown
			got.MessagesForModel = &Shown{Items: ids, Digest: "d"}
		}
		return got, nil
	}))
	w.work(Config{})
	var sizes []int
	for _, n := range []int{20, 200, 900} {
		id := w.thread("a")
		items := make([]events.NewItem, n)
		for i := range items {
			items[i] = events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON(fmt.Sprintf(`[{"type":"input_text","text":"m%d"}]`, i))}
		}
		w.must("item.append", id, events.AppendItems{Items: items})
		for range 2 {
			execution := w.must("thread.react", id, events.ReactThread{Text: new("go on")}).Result.ExecutionID
			all := w.finished(id, execution)
			ids := received[len(received)-1]
			shown := shownOf(t, all, execution)
			if len(ids) < n || shown.Items[len(shown.Items)-1] != ids[len(ids)-1] {
				t.Fatalf("of %d items, %d are shown, the last ones %v", n, len(ids), shown.Items)
			}
			if n == 20 {
				if len(shown.Items) != len(ids) || shown.Count != 0 || shown.First != "" || shown.IDsDigest != "" {
					t.Errorf("of %d items: %+v", len(ids), shown)
				}
				continue
			}
			h := sha256.New()
			for _, id := range ids {
				fmt.Fprintln(h, id)
			}
			if len(shown.Items) != events.ShownItems || shown.First != ids[0] || shown.Count != int64(len(ids)) || shown.IDsDigest != hex.EncodeToString(h.Sum(nil)) {
				t.Errorf("of %d items: %+v", len(ids), shown)
			}
			raw, err := json.Marshal(shown)
			if err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, len(raw))
		}
	}
	if sizes[0] != sizes[2] || sizes[1] != sizes[3] {
		t.Errorf("records have %d bytes", sizes)
	}
}

// shownOf returns what the last step of an execution records of what its model was shown.
func shownOf(t *testing.T, all []events.Event, execution string) (shown events.Shown) {
	t.Helper()
	for i := range all {
		if d, is := all[i].Data.(events.TraceRecorded); is && d.ExecutionID == execution && d.Shown != nil {
			shown = *d.Shown
		}
	}
	if len(shown.Items) == 0 {
		t.Fatal("no step records what its model was shown")
	}
	return shown
}
