package runstream_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// An execution as the reply says that it began is what the log folds to at that version, also for the
// repeat of a command whose run has ended since.
func TestBegin(t *testing.T) {
	s := skeintest.Start(t)
	s.Must(s.Reactor("echo", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
		return skein.Answer("done"), nil
	}))
	c := s.Client("acme")
	settings := &events.RunSettings{Metadata: events.JSON(`{"of":"a client"}`)}
	create, err := client.Sub("thread.create", events.CreateThread{})
	s.Must(err)
	item := events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hello"}]`)}
	react, err := client.Sub("thread.react", events.ReactThread{Item: &item, AgentID: "echo", Policy: events.Enqueue, ExecutionID: "exe_first", Settings: settings})
	s.Must(err)
	first, err := c.Commit(t.Context(), "", []events.SubCommand{create, react}, client.CommandID("one"))
	s.Must(err)
	at, err := client.Read(t.Context(), c, events.GetExecution{ThreadID: first.ThreadID, ExecutionID: "exe_first", At: &events.At{Version: &first.Version}})
	s.Must(err)
	for _, when := range []string{"at once", "when it has ended"} {
		x := &events.Execution{ID: "exe_first", AgentID: "echo", Settings: settings}
		repeated, err := c.Commit(t.Context(), "", []events.SubCommand{create, react}, client.CommandID("one"))
		s.Must(err)
		if !runstream.Begin(x, repeated) || !reflect.DeepEqual(x, at) {
			t.Errorf("%s: %+v, not %+v", when, x, at)
		}
		s.WaitIdle()
	}
	if runstream.Begin(&events.Execution{ID: "exe_other"}, first) {
		t.Error("the commit began another run")
	}
	renamed, err := c.Send(t.Context(), first.ThreadID, events.UpdateThread{Title: new("new")})
	s.Must(err)
	if runstream.Begin(&events.Execution{ID: "exe_first"}, renamed) {
		t.Error("the commit began no run")
	}
}
