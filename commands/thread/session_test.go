package thread

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

func sessionID(n int) string { return fmt.Sprintf("sess_%04x", n) }

func startSession(n int) events.StartSession { return events.StartSession{SessionID: sessionID(n)} }

func (k *story) completed(n int, errorText string) []events.Event {
	k.t.Helper()
	return k.do(events.CompleteSession{SessionID: sessionID(n), ErrorText: errorText})
}

// mergeIn returns a merge of a session.
func mergeIn(session events.MergeSession) events.MergeState {
	d := merge(setKey("a", `1`))
	d.Session = &session
	return d
}

// A session starts once and completes once. Repeats change nothing; what never started cannot
// complete, and what has completed cannot start.
func TestSession_StartAndComplete(t *testing.T) {
	k := begun(t)
	at := "2026-02-20T12:00:00.250000Z"
	want(t, k.do(events.StartSession{SessionID: "sess_a1", StartedAt: at}),
		fact{events.SessionStartedType, "sess_a1", "", events.SessionStarted{ID: "sess_a1", StartedAt: at}})
	wantMade(t, k.do(events.StartSession{SessionID: "sess_a1"}), "")
	want(t, k.do(events.CompleteSession{SessionID: "sess_a1"}),
		fact{events.SessionCompletedType, "sess_a1", "", events.SessionCompleted{ID: "sess_a1", StartedAt: at, Outcome: events.SessionDone}})
	wantMade(t, k.do(events.CompleteSession{SessionID: "sess_a1", ErrorText: "too late"}), "")
	if e := k.refuse(events.StartSession{SessionID: "sess_a1"}); e.Code != events.AlreadyExists {
		t.Errorf("a session that has completed started again: %v", e)
	}
	wantRefusal(t, k.refuse(events.CompleteSession{SessionID: "sess_b2"}), events.NotFound, events.ErrorDetails{Entity: "session", ID: "sess_b2"})
	wantRefusal(t, k.refuse(events.StartSession{SessionID: "sess_b2", StartedAt: "2026-13-01T00:00:00Z"}), events.InvalidRequest, events.ErrorDetails{Path: "/data/startedAt"})
	start := k.do(startSession(7))[0].Time.String()
	want(t, k.completed(7, "the model is away"), fact{events.SessionCompletedType, sessionID(7), "", events.SessionCompleted{
		ID: sessionID(7), StartedAt: start, Outcome: events.SessionFailed, ErrorText: "the model is away",
	}})
}

// A merge starts its session, and completes it, in its own commit. A merge after the end
// neither starts nor completes it again.
func TestMergeState_Session(t *testing.T) {
	k := begun(t)
	wantMade(t, k.do(mergeIn(events.MergeSession{ID: "sess_1"})), "context.created state.renewed session.started state.changed")
	wantMade(t, k.do(mergeIn(events.MergeSession{ID: "sess_1"})), "state.changed")
	wantMade(t, k.do(mergeIn(events.MergeSession{ID: "sess_1", Completed: true})), "state.changed session.completed")
	wantMade(t, k.do(mergeIn(events.MergeSession{ID: "sess_1", Completed: true})), "state.changed")
	made := k.do(mergeIn(events.MergeSession{ID: "sess_2", StartedAt: "2026-02-20T10:00:00Z", Completed: true, ErrorText: "no"}))
	wantMade(t, made, "session.started state.changed session.completed")
	if d := made[2].Data.(events.SessionCompleted); d.Outcome != events.SessionFailed || d.ErrorText != "no" || d.StartedAt != "2026-02-20T10:00:00.000000Z" {
		t.Errorf("it completed as %+v", d)
	}
	wantRefusal(t, k.refuse(mergeIn(events.MergeSession{ID: "sess_3", StartedAt: "2026-02-30T10:00:00Z"})),
		events.InvalidRequest, events.ErrorDetails{Path: "/data/session/startedAt"})
	big := mergeIn(events.MergeSession{ID: "sess_4"})
	big.Operations = append(big.Operations, push("a", `1`, 0)) // no list
	k.refuse(big)
	if e := k.refuse(events.CompleteSession{SessionID: "sess_4"}); e.Code != events.NotFound {
		t.Errorf("the session of a refused merge started: %v", e)
	}
}

// Requests whose process was killed never complete. A thread keeps the last hundred of them: the
// oldest completes with an unknown outcome in the commit that starts a further one, and the
// snapshot has the same bounds.
func TestSession_OpenOnesAreBounded(t *testing.T) {
	k := begun(t)
	first := k.do(startSession(0))[0].Time.String()
	for n := range events.MaxOpenSessions {
		k.do(startSession(n))
	}
	made := k.do(startSession(100))
	want(t, made,
		fact{events.SessionCompletedType, sessionID(0), "", events.SessionCompleted{ID: sessionID(0), StartedAt: first, Outcome: events.SessionUnknown}},
		fact{events.SessionStartedType, sessionID(100), "", events.SessionStarted{ID: sessionID(100), StartedAt: made[1].Time.String()}})
	wantMade(t, k.completed(0, ""), "") // it was alive after all
	d := mergeIn(events.MergeSession{ID: sessionID(101), Completed: true})
	wantMade(t, k.do(d), "context.created state.renewed session.completed session.started state.changed session.completed")
	wantMade(t, k.do(startSession(102)), "session.started") // the merge left one place
	for n := range 1000 {
		k.do(startSession(1000 + n))
	}
	open, done := k.state.Sessions.Open, k.state.Sessions.Done
	if len(open) != events.MaxOpenSessions || len(done) != maxDoneSessions || open[0].ID != sessionID(1900) || done[len(done)-1] != sessionID(1899) {
		t.Errorf("%d are open from %s on, and %d completed", len(open), open[0].ID, len(done))
	}
	if size := k.state.Sessions.size(); size > 16<<10 {
		t.Errorf("sessions occupy %d bytes", size)
	}
	raw, err := k.state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeState(raw)
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.Encode()
	if err != nil || string(again) != string(raw) || len(back.Sessions.Open) != len(open) {
		t.Errorf("the snapshot differs after decoding: %v", err)
	}
}

// AG-53: the session of a request is recorded on the execution, on its steps and on what is
// traced of them; also if the message waits first, if a failed run is retried, and if a tool is
// an agent on a thread of its own.
func TestReact_Session(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	var made []events.Event
	do := func(data any) { made = append(made, k.do(data)...) }
	fail := func(execution string) {
		w := &work{story: k, execution: execution}
		made = append(made, w.claim()...)
		if execution == "exe_a" {
			do(events.RecordTrace{Kind: events.TraceLog, ExecutionID: "exe_a", Text: "a line"})
		}
		do(FailRun{ExecutionID: execution, Token: w.token, ErrorText: "no"})
	}
	do(events.ReactThread{Text: to("hello"), ExecutionID: "exe_a", SessionID: "sess_a"})
	do(events.ReactThread{Text: to("and?"), ExecutionID: "exe_b", SessionID: "sess_b"})
	wantRefusal(t, k.refuse(events.RecordTrace{Kind: events.TraceLog, ExecutionID: "exe_a", SessionID: "sess_b", Text: "a line"}),
		events.InvalidRequest, events.ErrorDetails{Path: "/data/sessionId"})
	do(events.RecordTrace{Kind: events.TraceLog, SessionID: "sess_c", Text: "of no run"})
	fail("exe_a") // exe_b follows
	if r, _ := k.state.Run("exe_b"); r.SessionID != "sess_b" {
		t.Errorf("the run that waited answers session %q", r.SessionID)
	}
	fail("exe_b")
	do(events.RetryRun{SessionID: "sess_d"})
	var got []string
	for _, e := range made {
		session := ""
		switch d := e.Data.(type) {
		case events.ExecutionCreated:
			session = d.SessionID
		case events.StepCreated:
			session = d.SessionID
		case events.TraceRecorded:
			session = d.SessionID
		default:
			continue
		}
		got = append(got, string(e.Type)+" "+session)
	}
	if s := strings.Join(got, ", "); s != "execution.created sess_a, trace.recorded sess_c, step.created sess_a, trace.recorded sess_a, "+
		"execution.created sess_b, step.created sess_b, execution.created sess_d" {
		t.Errorf("recorded %s", s)
	}
}

// Events of sessions that no decision makes are faults.
func TestSession_Preconditions(t *testing.T) {
	k := begun(t)
	k.do(events.ReactThread{Text: to("hello"), ExecutionID: "exe_s", SessionID: "sess_a"})
	k.do(events.StartSession{SessionID: "sess_1"})
	at := k.now.String()
	k.do(events.StartSession{SessionID: "sess_2"})
	k.do(events.CompleteSession{SessionID: "sess_2"})
	with := func(name, says, subject string, data any) forgery {
		return forgery{name, func(e *events.Event) { e.Subject, e.Data = subject, data }, says}
	}
	started := func(id string) events.SessionStarted { return events.SessionStarted{ID: id, StartedAt: at} }
	holdsBut(t, k, k.after(events.SessionStartedType, "sess_3", "", started("sess_3")),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		with("no session", "not the id of a session", "sess_X", started("sess_X")),
		with("an open one", "exists already", "sess_1", started("sess_1")),
		with("one that has completed", "exists already", "sess_2", started("sess_2")),
		the("no time", "is no time", func(d *events.SessionStarted) { d.StartedAt = "now" }))
	holdsBut(t, k, k.after(events.SessionCompletedType, "sess_1", "", events.SessionCompleted{ID: "sess_1", StartedAt: at, Outcome: events.SessionDone}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		with("one that has completed", "not in the thread", "sess_2", events.SessionCompleted{ID: "sess_2", StartedAt: at, Outcome: events.SessionDone}),
		the("another start", "it started at", func(d *events.SessionCompleted) { d.StartedAt = "2026-02-20T10:00:00.000000Z" }),
		the("a failure without a reason", "its outcome", func(d *events.SessionCompleted) { d.Outcome = events.SessionFailed }),
		the("an unknown outcome, although few are open", "its outcome", func(d *events.SessionCompleted) { d.Outcome = events.SessionUnknown }))
	holdsBut(t, k, k.after(events.StepCreatedType, "stp_s", "exe_s", events.StepCreated{
		ID: "stp_s", ExecutionID: "exe_s", EventID: "itm_x", Status: events.StepRunning, SessionID: "sess_a",
	}), the("another session", "its run answers session", func(d *events.StepCreated) { d.SessionID = "sess_b" }))
	holdsBut(t, k, k.after(events.TraceRecordedType, "exe_s", "exe_s", events.TraceRecorded{Kind: events.TraceLog, ExecutionID: "exe_s", SessionID: "sess_a"}),
		the("no session", "its run answers session", func(d *events.TraceRecorded) { d.SessionID = "" }))
	for n := range events.MaxOpenSessions - 1 {
		k.do(startSession(n + 10))
	}
	full := k.after(events.SessionStartedType, "sess_3", "", started("sess_3"))
	if err := holds(k.state, []events.Event{full}); err == nil || !strings.Contains(err.Error(), "100 sessions are open") {
		t.Errorf("a session more than the thread has room for: %v", err)
	}
}
