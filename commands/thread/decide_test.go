package thread

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

// minimal returns the least data of each command, on the thread of begun; of a command
// that onBegun does not have, the example of its row.
func minimal() map[string]any {
	payloads := map[string]any{}
	for _, row := range events.Commands() {
		payloads[row.Name] = row.Example
	}
	maps.Copy(payloads, onBegun())
	return payloads
}

func onBegun() map[string]any {
	idx := to(int64(1))
	return map[string]any{
		"thread.create":    events.CreateThread{},
		"thread.resolve":   events.ResolveThread{Key: "k"},
		"thread.status":    events.SetThreadStatus{To: events.ThreadStreaming},
		"thread.update":    events.UpdateThread{Title: to("")},
		"thread.finish":    events.FinishThread{ExecutionID: "exe_1"},
		"thread.delete":    events.DeleteThread{},
		"thread.fork":      events.ForkThread{MessageIndex: to(int64(0)), Key: "fork"},
		"thread.truncate":  events.TruncateThread{MessageIndex: to(int64(0)), Interrupt: true},
		"thread.commit":    events.CommitThread{Commands: []events.SubCommand{{Command: "thread.status"}}},
		"context.create":   events.CreateContext{},
		"context.resolve":  events.ResolveContext{},
		"context.status":   events.SetContextStatus{To: events.ContextStreaming},
		"context.set":      events.SetContext{Content: raw(`1`)},
		"item.create":      message("", "x"),
		"item.status":      events.SetItemStatus{ItemID: "itm_user", To: events.ItemPending},
		"message.edit":     events.EditMessage{ItemID: "itm_user", Silent: to(true)},
		"message.delete":   events.DeleteMessage{ItemID: "itm_user"},
		"message.add":      events.AddMessage{Role: events.FromUser},
		"message.update":   events.UpdateMessage{MessageID: "itm_user", MessageUpdates: events.MessageUpdates{Content: to("x")}},
		"trace.record":     events.RecordTrace{Kind: events.TraceLog, Text: "x"},
		"execution.create": events.CreateExecution{TriggerItemID: "itm_user"},
		"execution.status": events.SetExecutionStatus{ExecutionID: "exe_1", To: events.ExecutionCompleted},
		"step.create":      events.CreateStep{ExecutionID: "exe_1"},
		"step.status":      events.SetStepStatus{StepID: "stp_1", To: events.StepCompleted},
		"part.put":         events.PutPart{StepID: "stp_1", Idx: idx},
		"thread.react":     events.ReactThread{Text: to("hello")},
		"run.stop":         events.StopRun{},
		"run.cancel":       events.CancelRun{},
		"run.turn":         events.TurnRun{Side: events.SideB},
		"approval.grant":   events.GrantApproval{CallID: "call_1"},
		"approval.resolve": events.ResolveApproval{CallID: "call_1", Result: raw(`{"ok":true}`)},
		"approval.deny":    events.DenyApproval{CallID: "call_1"},
		"tool.queue":       events.QueueTool{Name: "find"},
		"agent.assign":     events.AssignAgent{AgentID: "billing"},
		"run.retry":        events.RetryRun{},
		"queue.remove":     events.RemoveQueued{QueuedID: "call_1"},
		"queue.edit":       events.EditQueued{QueuedID: "queued-1", Item: events.NewItem{Type: events.Message, Role: events.User, Content: raw(`[]`)}},
		"queue.move":       events.MoveQueued{QueuedID: "call_1"},
		"effect.schedule":  events.ScheduleEffect{Name: "remind"},
		"effect.cancel":    events.CancelEffect{EffectID: effectID},
		"definition.apply": events.ApplyDefinitions{Definitions: []events.NewDefinition{model("m", "x")}},
		"file.write":       stored("/a", "x"),
		"thread.share":     events.ShareThread{},
		"thread.unshare":   events.UnshareThread{},
		"file.delete":      events.DeleteFile{Path: "/f"},
		"directory.create": events.CreateDirectory{Path: "/d"},
		"directory.remove": events.RemoveDirectory{Path: "/d"},
	}
}

// Every command of the catalog has its case, and makes no event but those that
// its row lists. thread.commit is taken apart before it comes here.
func TestEveryCommandIsDecided(t *testing.T) {
	payloads := minimal()
	for _, row := range events.Commands() {
		t.Run(row.Name, func(t *testing.T) {
			data, ok := payloads[row.Name]
			if !ok || reflect.TypeOf(data) != reflect.TypeOf(row.New()) {
				t.Fatalf("no payload of type %T here", row.New())
			}
			if row.Name == "thread.commit" || row.Unlogged {
				return
			}
			k := begun(t)
			if row.Creates {
				k = newStory(t)
			}
			switch row.Name {
			case "run.stop", "run.cancel":
				k.do(events.ReactThread{Text: to("hello")})
			case "run.retry":
				w := k.reacting("triage")
				k.do(FailRun{ExecutionID: w.execution, Token: w.token, ErrorText: "the model is away"})
			case "queue.remove", "queue.move":
				k.do(events.ReactThread{Text: to("hello")})
				k.do(events.QueueTool{CallID: "call_1", Name: "find"})
			case "queue.edit":
				k.do(events.ReactThread{Text: to("hello")})
				waiting := k.do(events.ReactThread{Text: to("and?")})[0].Subject
				data = events.EditQueued{QueuedID: waiting, Item: data.(events.EditQueued).Item}
			case "writer.renew", "writer.release":
				c := k.command(events.ClaimWriter{Holder: "a"})
				if _, err := k.try(c); err != nil {
					t.Fatal(err)
				}
				k.now += 20_000_000
				if data = any(events.ReleaseWriter{Token: c.Token}); row.Name == "writer.renew" {
					data = events.RenewWriter{Token: c.Token}
				}
			case "thread.truncate":
				k.do(message("", "y"))
			case "run.turn", "approval.grant", "approval.deny", "approval.resolve":
				k.waiting()
			}
			if row.Tenant {
				k = newTenant(t)
			}
			if row.Name == "thread.finish" {
				k.do(events.SetExecutionStatus{ExecutionID: "exe_1", To: events.ExecutionFailed})
			}
			switch row.Name { // what is not there is not taken away
			case "effect.cancel":
				k.do(events.ScheduleEffect{ID: effectID, Name: "remind"})
			case "thread.unshare":
				data = events.UnshareThread{ShareID: k.do(events.ShareThread{})[0].Subject}
			case "file.delete":
				k.do(stored("/f", "x"))
			case "directory.remove":
				k.do(events.CreateDirectory{Path: "/d"})
			case "state.touch", "state.destroy", "state.release":
				k.do(events.MergeState{Operations: merge(setKey("a", `1`)).Operations, Listeners: []string{"shop"}})
				k.pass(2 * time.Minute)
			}
			if row.Name == "session.complete" {
				k.do(events.StartSession{SessionID: data.(events.CompleteSession).SessionID})
			}
			if row.Name == "state.release" {
				k.do(events.DestroyState{})
			}
			var made []events.Event
			if c := k.command(data); c.Groups() {
				made = k.group(c)
			} else {
				made = k.do(data)
			}
			if len(made) == 0 {
				t.Error("it made no event")
			}
			for _, e := range made {
				if !slices.Contains(row.Events, e.Type) {
					t.Errorf("it made %s, and its row lists %v", e.Type, row.Events)
				}
			}
		})
	}
	if len(payloads) != len(events.Commands()) {
		t.Errorf("%d payloads for %d commands", len(payloads), len(events.Commands()))
	}
}

// A command that only works on a thread that is there is refused on one that
// was never made, and on one that was deleted, whatever version it expects.
func TestNoThread(t *testing.T) {
	gone := begun(t)
	gone.do(events.DeleteThread{})
	for name, data := range minimal() {
		row, _ := events.LookupCommand(name)
		if row.Creates || row.Tenant {
			continue
		}
		for _, k := range []*story{newStory(t), gone} {
			for _, expected := range []*int64{nil, to(int64(3))} {
				c := k.command(data)
				c.Expected = expected
				_, err := k.try(c)
				if err == nil {
					t.Fatalf("%s was done on a thread that is not there", name)
				}
				wantRefusal(t, events.AsError(err), events.NotFound, events.ErrorDetails{Entity: "thread", ID: threadID})
			}
		}
	}
	for _, data := range []any{events.CreateThread{}, events.ResolveThread{Key: "k"}} {
		wantRefusal(t, gone.refuse(data), events.AlreadyExists, *events.TakenByDeleted(threadID).Details)
	}
}

func TestWhatIsNoCommandIsRefused(t *testing.T) {
	k := begun(t)
	_, err := k.try(&Command{ID: "c", Tenant: tenant, ThreadID: threadID, Parts: []Part{{Name: "thread.fly", Data: 7}}})
	wantRefusal(t, events.AsError(err), events.InvalidRequest, events.ErrorDetails{Path: "/data"})
}

// What comes with a command stands on each of its events; ids and times are
// derived from it and from nothing else (EK-124).
func TestEnvelope(t *testing.T) {
	k := begun(t)
	version := k.state.Version
	c := k.command(events.CreateItem{Item: events.NewItem{Type: events.ItemReference}}, events.CreateStep{ExecutionID: "exe_1"})
	c.Actor, c.Trace, c.Cause = "user:zoë", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "cause-1"
	again, err := Decide(k.state, c)
	if err != nil {
		t.Fatal(err)
	}
	made, err := k.try(c)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(made, again) {
		t.Errorf("the same command on the same state made\n%+v, and then\n%+v", again, made)
	}
	for i, e := range made {
		if e.ID != events.EventID(tenant, threadID, c.ID, i) || e.Version != version+int64(i)+1 || e.Time != c.Time ||
			e.Tenant != tenant || e.ThreadID != threadID || e.CommandID != c.ID || e.CommandIndex != i+1 ||
			e.Actor != c.Actor || e.TraceParent != c.Trace || e.Causation != c.Cause {
			t.Errorf("event %d of the command: %+v", i, e)
		}
	}
	item := events.DeriveID(events.ItemPrefix, c.Time, tenant, threadID, c.ID, 1)
	step := events.DeriveID(events.StepPrefix, c.Time, tenant, threadID, c.ID, 2)
	if made[0].Subject != item || made[1].Subject != step || made[1].Correlation != "exe_1" {
		t.Errorf("subjects are %s and %s (of %q), want %s and %s", made[0].Subject, made[1].Subject, made[1].Correlation, item, step)
	}
}

// A clock that stands or goes back does not take the thread's time with it.
func TestTime_NeverGoesBack(t *testing.T) {
	k := newStory(t)
	last := events.Time(0)
	for i, now := range []events.Time{dawn, dawn, dawn - 5_000_000, dawn + 1, dawn + 10} {
		var data any = events.UpdateThread{Title: to("x")}
		if i == 0 {
			data = events.CreateThread{}
		}
		c := k.command(data)
		c.Time = now
		made, err := k.try(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range made {
			if e.Time != max(now, last+1) {
				t.Errorf("at %d, with the last event at %d, the time is %d", now, last, e.Time)
			}
		}
		last = made[0].Time
	}
}

func TestDecide_ExpectedVersion(t *testing.T) {
	k := begun(t)
	for _, expected := range []int64{0, k.state.Version - 1, k.state.Version + 1} {
		c := k.command(events.UpdateThread{Title: to("x")})
		c.Expected = &expected
		_, err := k.try(c)
		if err == nil {
			t.Fatalf("done with version %d expected, at %d", expected, k.state.Version)
		}
		wantRefusal(t, events.AsError(err), events.VersionConflict, events.ErrorDetails{CurrentVersion: to(k.state.Version)})
	}
	c := k.command(events.UpdateThread{Title: to("x")})
	c.Expected = to(k.state.Version)
	if _, err := k.try(c); err != nil {
		t.Error(err)
	}
	fresh := newStory(t)
	for expected, code := range map[int64]events.Code{0: "", 1: events.VersionConflict} {
		c := fresh.command(events.CreateThread{})
		c.Expected = &expected
		_, err := Decide(fresh.state, c)
		if err != nil {
			if got := events.AsError(err).Code; got != code {
				t.Errorf("a new thread with version %d expected: %v", expected, err)
			}
		} else if code != "" {
			t.Errorf("a new thread was made with version %d expected", expected)
		}
	}
}
