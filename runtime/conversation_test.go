package runtime

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// A reactor receives what the thread shows: edited messages, no deleted ones, the
// context with its patches, and as many of the latest items as its agent permits;
// another worker, which has to read all of it from the log, sends the same.
func TestReactor_ReceivesWhatThreadShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	told := make(chan string, 10)
	a := w.agent("a", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		var texts []string
		for _, i := range in.Items {
			texts = append(texts, string(i.Content))
		}
		state := jsontext.Value(in.Context).Clone()
		_ = state.Canonicalize() // valid JSON
		told <- string(state) + " " + strings.Join(texts, " ")
		return says("fine"), nil
	}))
	a.MaxItems = 3
	id := w.thread("a")
	part := func(text string) events.JSON {
		return events.JSON(`[{"type":"input_text","text":"` + text + `"}]`)
	}
	say := func(name string) {
		w.must("item.create", id, events.CreateItem{Item: events.NewItem{ID: "itm_" + name, Type: events.Message, Role: events.User, Content: part(name)}})
	}
	for _, name := range []string{"one", "two", "three", "four"} {
		say(name)
	}
	w.must("message.edit", id, events.EditMessage{ItemID: "itm_two", Content: part("two, mended")})
	w.must("message.delete", id, events.DeleteMessage{ItemID: "itm_three"})
	w.must("context.set", id, events.SetContext{Content: events.JSON(`{"eur":1,"of":"shop"}`)})
	w.must("context.set", id, events.SetContext{Patch: events.JSON(`{"eur":2,"of":null}`)})
	for n := range 2 {
		_, stop := w.worker(Config{})
		question := fmt.Sprint("question ", n)
		execution := w.must("thread.react", id, events.ReactThread{Text: &question}).Result.ExecutionID
		w.finished(id, execution)
		want := `{"eur":2} ` + string(part("two, mended")) + " " + string(part("four")) + " " + string(part(question))
		if n == 1 {
			want = `{"eur":2} ` + string(part("question 0")) + ` [{"type":"output_text","text":"fine"}] ` + string(part(question))
		}
		if got := <-told; got != want {
			t.Errorf("worker %d sent\n%s\nnot\n%s", n, got, want)
		}
		stop()
		say(fmt.Sprint("deleted", n)) // between the workers, and deleted before the next
		w.must("message.delete", id, events.DeleteMessage{ItemID: fmt.Sprint("itm_deleted", n)})
	}
}
