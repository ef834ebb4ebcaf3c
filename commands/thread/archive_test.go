package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

func (k *story) archived() ArchiveThread {
	return ArchiveThread{Record: events.LifecycleArchived{
		Object: "acme/" + k.thread + "/1", Digest: strings.Repeat("a", 64), Commits: 1, Bytes: 1, FirstSeq: 1, LastSeq: int64(k.state.Seq), Chain: k.state.Chain,
	}}
}

// A thread at rest is archived as it stands, and goes on afterwards.
func TestArchiveThread_AtRest(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	d := k.archived()
	want(t, k.do(d), fact{events.LifecycleArchivedType, threadID, "", d.Record})
	if e := k.refuse(d); e.Code != events.VersionConflict { // something came after what lies in the archive
		t.Errorf("refused with %v", e)
	}
	k.do(events.UpdateThread{Title: to("x")})
}

// A thread with work in progress, or scheduled work, is not archived; the refusal names it.
func TestArchiveThread_Busy(t *testing.T) {
	for why, begin := range map[string]func(*story){
		"an execution is in progress": func(k *story) { k.do(events.ReactThread{Text: to("hello")}) },
		"it is streaming":             func(k *story) { k.do(events.SetThreadStatus{To: events.ThreadStreaming}) },
		"messages wait for the agent": func(k *story) { k.waitsWhileIdle() },
		"effects are scheduled":       func(k *story) { k.do(events.ScheduleEffect{Name: "remind"}) },
		"an execution is in progress\x00": func(k *story) { // somebody outside runs it
			k.do(message("itm_u", "x"))
			k.do(events.CreateExecution{TriggerItemID: "itm_u"})
		},
	} {
		k := newStory(t)
		k.do(events.CreateThread{AgentID: "triage"})
		begin(k)
		why = strings.TrimSuffix(why, "\x00")
		if got := k.state.Busy(); got != why {
			t.Errorf("busy because %q, want %q", got, why)
		}
		if e := k.refuse(k.archived()); e.Code != events.Unavailable || !strings.Contains(e.Message, why) {
			t.Errorf("%s: refused with %v", why, e)
		}
	}
}

// waitsWhileIdle leaves a message waiting on a thread on which nothing runs: its context is closed.
func (k *story) waitsWhileIdle() {
	k.t.Helper()
	k.do(events.SetThreadStatus{To: events.ThreadStreaming})
	k.do(events.ReactThread{Text: to("later")})
	k.do(events.SetContextStatus{To: events.ContextClosed})
	k.do(events.SetThreadStatus{To: events.ThreadOpen})
}
