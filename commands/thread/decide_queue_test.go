package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// What waits for the agent never keeps the run before it from ending, whatever
// happened to the thread meanwhile: it is held against the thread when it comes,
// and what changed since is left out of it.
func TestWaitingMessageHoldsNoRun(t *testing.T) {
	waiting := func(id string) events.NewItem {
		return events.NewItem{ID: id, Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":"and?"}]`)}
	}
	busy := func(t *testing.T) *work {
		k := newStory(t)
		k.do(events.CreateThread{AgentID: "triage"})
		k.do(message("itm_old", "long ago"))
		return k.reacting("")
	}
	ends := func(t *testing.T, w *work) []events.Event {
		t.Helper()
		made := w.do(w.reaction())
		if !strings.Contains(kinds(made), "thread.finished") {
			t.Error(kinds(made))
		}
		return made
	}
	starts := func(t *testing.T, w *work) events.ItemCreated {
		t.Helper()
		for _, e := range ends(t, w) {
			if d, ok := e.Data.(events.ItemCreated); ok && d.Role == events.User {
				return d
			}
		}
		t.Fatal("what waited was not started")
		return events.ItemCreated{}
	}
	t.Run("an id that waits is taken", func(t *testing.T) {
		w := busy(t)
		item := waiting("itm_new")
		w.do(events.ReactThread{Item: &item})
		if e := w.refuse(events.ReactThread{Item: &item}); e.Code != events.AlreadyExists {
			t.Error(e)
		}
		if e := w.refuse(message("itm_new", "again")); e.Code != events.AlreadyExists {
			t.Error(e)
		}
		if d := starts(t, w); d.ID != "itm_new" {
			t.Errorf("it became %s", d.ID)
		}
	})
	t.Run("a parent that is not there", func(t *testing.T) {
		w := busy(t)
		item := waiting("")
		item.ParentItemID = "itm_none"
		if e := w.refuse(events.ReactThread{Item: &item}); e.Code != events.NotFound {
			t.Error(e)
		}
		ends(t, w)
	})
	t.Run("a parent that is deleted meanwhile", func(t *testing.T) {
		w := busy(t)
		item := waiting("")
		item.ParentItemID = "itm_old"
		w.do(events.ReactThread{Item: &item})
		w.do(events.DeleteMessage{ItemID: "itm_old"})
		if d := starts(t, w); d.ParentItemID != "" {
			t.Errorf("its parent is %s", d.ParentItemID)
		}
	})
	t.Run("a time that is none", func(t *testing.T) {
		w := busy(t)
		item := waiting("")
		item.CreatedAt = "2026-02-30T00:00:00.000Z"
		if e := w.refuse(events.ReactThread{Item: &item}); e.Code != events.InvalidRequest {
			t.Error(e)
		}
		ends(t, w)
	})
	t.Run("no context is open", func(t *testing.T) {
		w := busy(t)
		w.do(events.ReactThread{Text: to("and?")})
		w.do(events.SetContextStatus{To: events.ContextClosed})
		if made := ends(t, w); strings.Contains(kinds(made), "queue.drained") || w.state.Status != events.ThreadOpen {
			t.Errorf("%s; the thread is %s", kinds(made), w.state.Status)
		}
	})
	t.Run("its answer is deleted", func(t *testing.T) {
		w := busy(t)
		w.do(w.reaction("call_1"))
		w.do(w.results("call_1"))
		x, _ := w.state.execution(w.execution)
		w.do(events.DeleteMessage{ItemID: x.Reaction})
		w.do(w.reaction("call_2"))
		w.do(w.results("call_2"))
		ends(t, w)
	})
}
