package skein_test

import (
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// The session of a merge is in the merge's own commit, on the timeline as in the log, and
// survives a rebuild of the read models, an export and a snapshot as other events do.
func TestSession_OfAMerge(t *testing.T) {
	s := skeintest.Start(t)
	c := s.Client("acme")
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{Types: []string{"session.*"}})
	s.Must(err)
	defer line.Close()
	reply, err := c.Send(t.Context(), visitor, events.MergeState{
		Operations: []events.StateOperation{setKey("a", `1`)}, Create: true,
		Session: &events.MergeSession{ID: "sess_01", StartedAt: "2026-02-20T12:00:00.5Z", Completed: true},
	})
	s.Must(err)
	if r := reply.Result; r == nil || r.SessionID != "sess_01" || r.Life != 1 {
		t.Errorf("merged with the result %+v", reply.Result)
	}
	for _, want := range []events.Type{events.SessionStartedType, events.SessionCompletedType} {
		e, err := line.Next(t.Context())
		s.Must(err)
		if e.Type != want || e.Subject != "sess_01" || e.Seq != reply.Seq {
			t.Errorf("the timeline shows %s of %s in commit %d", e.Type, e.Subject, e.Seq)
		}
	}
	for name, d := range map[string]any{
		"/data/sessionId":  events.StartSession{SessionID: "sess_0A"},
		"/data/session/id": events.MergeState{Operations: []events.StateOperation{setKey("a", `1`)}, Session: &events.MergeSession{ID: "thrd_1"}},
		"/data/session/errorText": events.MergeState{
			Operations: []events.StateOperation{setKey("a", `1`)}, Session: &events.MergeSession{ID: "sess_2", ErrorText: "no"},
		},
	} {
		var err error
		switch d := d.(type) {
		case events.StartSession:
			_, err = c.Send(t.Context(), visitor, d)
		case events.MergeState:
			_, err = c.Send(t.Context(), visitor, d)
		}
		if e := events.AsError(err); err == nil || e.Code != events.InvalidRequest || e.Details == nil || e.Details.Path != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	other, err := c.Send(t.Context(), "", events.CreateThread{})
	s.Must(err)
	_, err = c.Send(t.Context(), visitor, events.StartSession{SessionID: "sess_03"})
	s.Must(err)
	if _, err := c.Send(t.Context(), other.ThreadID, events.CompleteSession{SessionID: "sess_03"}); events.AsError(err).Code != events.NotFound {
		t.Errorf("a session of another thread completed: %v", err)
	}
	_, err = c.Send(t.Context(), visitor, events.CompleteSession{SessionID: "sess_03"})
	s.Must(err)
}
