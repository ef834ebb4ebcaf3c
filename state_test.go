package skein_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

const visitor = "thrd_abc123def456789012345678901"

func setKey(key, value string) events.StateOperation {
	return events.StateOperation{Op: events.SetOp, Key: key, Value: events.JSON(value)}
}

func pushTo(key, value string) events.StateOperation {
	return events.StateOperation{Op: events.PushOp, Key: key, Value: events.JSON(value)}
}

// mergeState merges operations into the visitor's state, and creates the thread.
func mergeState(t *testing.T, c *client.Client, operations ...events.StateOperation) *events.Reply {
	t.Helper()
	reply, err := c.Send(t.Context(), visitor, events.MergeState{Operations: operations, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func getState(t *testing.T, c *client.Client, d events.GetState) *events.StateValues {
	t.Helper()
	if d.ThreadID == "" {
		d.ThreadID = visitor
	}
	v, err := client.Read(t.Context(), c, d)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A merge makes the thread of an id that nobody has used, and each read shows what was merged
// before it, also without minSeq.
func TestState_MergeAndGet(t *testing.T) {
	s := skeintest.Start(t)
	c := s.Client("acme")
	if _, err := client.Read(t.Context(), c, events.GetState{ThreadID: visitor}); events.AsError(err).Code != events.NotFound {
		t.Errorf("a thread that is not there: %v", err)
	}
	if _, err := c.Send(t.Context(), visitor, events.MergeState{Operations: []events.StateOperation{setKey("a", `1`)}}); events.AsError(err).Code != events.NotFound {
		t.Errorf("a merge that may not create: %v", err)
	}
	reply := mergeState(t, c, setKey("a", `1`), pushTo("m", `"x"`))
	if r := reply.Result; r == nil || r.Life != 1 || r.Size == nil || *r.Size != 2 {
		t.Errorf("merged with the result %+v", reply.Result)
	}
	for i := range 20 {
		mergeState(t, c, pushTo("m", fmt.Sprint(i)))
		if v := getState(t, c, events.GetState{}); !strings.HasSuffix(string(v.Values), fmt.Sprintf(",%d]}", i)) {
			t.Fatalf("after push %d the state is %s", i, v.Values)
		}
	}
	v := getState(t, c, events.GetState{Keys: []string{"a", "z"}})
	if string(v.Values) != `{"a":1}` || v.Life != 1 || !v.Loaded || v.ExpiresAt == "" {
		t.Errorf("read %+v", v)
	}
	if was := getState(t, c, events.GetState{At: &events.At{Version: &reply.Version}}); string(was.Values) != `{"a":1,"m":["x"]}` {
		t.Errorf("at version %d it was %s", reply.Version, was.Values)
	}
	if shown, err := client.Read(t.Context(), c.WithMinSeq(v.Seq), events.GetContext{ThreadID: visitor, ContextID: v.ContextID}); err != nil ||
		*shown.Key != "skein.state.1" || !strings.HasPrefix(string(shown.Content), `{"a":1,`) || shown.Status != events.ContextOpen {
		t.Errorf("the life's context is %+v, %v", shown, err)
	}
	if next, err := c.Send(t.Context(), visitor, events.DestroyState{}); err != nil || next.Result.Life != 1 {
		t.Fatal(next, err)
	}
	if v := getState(t, c, events.GetState{}); string(v.Values) != `{}` || v.Life != 0 || v.Loaded {
		t.Errorf("after the end of the life: %+v", v)
	}
	shown, err := client.Read(t.Context(), c.WithMinSeq(getState(t, c, events.GetState{}).Seq), events.GetContext{ThreadID: visitor, ContextID: v.ContextID})
	if err != nil || string(shown.Content) != `null` || shown.Status != events.ContextClosed {
		t.Errorf("the context of the last life is %+v, %v", shown, err)
	}
}

// AG-3, AG-18, AG-48: a life ends after its idle hour, once, also while nobody touches it; its
// values stay while an application that listens has not released them, for three days at most.
func TestState_LivesEnd(t *testing.T) {
	s := skeintest.Start(t)
	c := s.Client("acme")
	count := func(of events.Type) int {
		list, err := c.UpToDate(t.Context())
		s.Must(err)
		got, err := client.Read(t.Context(), list, events.ListEvents{ThreadID: visitor, Types: []string{string(of)}})
		s.Must(err)
		return len(got.Events)
	}
	want := func(destroyed, closed int) {
		t.Helper()
		if d, n := count(events.LifecycleDestroyedType), count(events.StateClosedType); d != destroyed || n != closed {
			t.Errorf("%d lives have ended and %d are cleared, want %d and %d", d, n, destroyed, closed)
		}
	}
	mergeState(t, c, setKey("a", `1`))
	s.Advance(time.Hour)
	want(0, 0) // renewals may have been missed
	s.Advance(3 * time.Minute)
	want(1, 1)
	s.Advance(24 * time.Hour)
	want(1, 1)
	_, err := c.Send(t.Context(), visitor, events.MergeState{Operations: []events.StateOperation{setKey("b", `2`)}, Listeners: []string{"shop"}})
	s.Must(err)
	s.Advance(24 * time.Hour)
	want(2, 1)
	if v := getState(t, c, events.GetState{Life: 2}); string(v.Values) != `{"b":2}` || !v.Ended {
		t.Errorf("the life that is listened to shows %+v", v)
	}
	s.Advance(events.ListenerPatience)
	want(2, 2)
}
