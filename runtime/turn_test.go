package runtime

import (
	"context"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A turn of three steps and two calls, in the order of EK 7: EK-109..EK-119.
func TestTurn(t *testing.T) {
	w := newWorld(t)
	var asked []*ToolInput
	find := tool{ToolSpec{Name: "find"}, func(_ context.Context, in *ToolInput) (ToolResult, error) {
		asked = append(asked, in)
		return Done(object("order", 42)), nil
	}}
	w.agent("triage", script(says("a", call("c1", "find", `{"n":1}`)), says("b", call("c2", "find", `{"n":2}`)), says("c")), find)
	w.work(Config{})
	id, execution := w.begin("triage", "Where is my order?")
	all := w.finished(id, execution)
	want := strings.Join(strings.Fields(`thread.created context.created
		context.resolved item.created thread.status.changed context.status.changed execution.created run.requested
		run.claimed step.created
		part.created part.created item.created item.created trace.recorded
		part.updated item.created message.edited trace.recorded step.status.changed step.created
		part.created part.created message.edited item.created trace.recorded
		part.updated item.created message.edited trace.recorded step.status.changed step.created
		part.created message.edited trace.recorded step.status.changed item.status.changed execution.status.changed
		thread.finished context.status.changed thread.status.changed`), " ")
	if got := kinds(all); got != want {
		t.Errorf("it made\n%s\nnot\n%s", got, want)
	}
	if len(asked) != 2 || string(asked[1].Arguments) != `{"n":2}` || asked[0].Key == asked[1].Key {
		t.Errorf("the tool was asked %+v", asked)
	}
	if err := events.ValidateTimeline(all); err != nil {
		t.Error(err)
	}
}
