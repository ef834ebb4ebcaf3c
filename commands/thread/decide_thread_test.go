package thread

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

// A thread begins open, with its default context, and holds its key (EK-16,
// EK-17, EK-18, EK-25, EK-26, EK-136, EK-133).
func TestCreateThread(t *testing.T) {
	k := newStory(t)
	c := k.command(events.CreateThread{
		Key: "support/42", AgentID: "triage", UserID: "u-1", Title: "Order", Metadata: raw(`{"n":1.50}`), Env: raw(`{}`),
		Context: raw(`{"a":1}`), MainThreadID: otherID,
	})
	made, err := k.try(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx := events.DeriveID(events.ContextPrefix, c.Time, tenant, threadID, c.ID, 1)
	want(t, made,
		fact{events.ThreadCreatedType, threadID, "", events.ThreadCreated{
			ID: threadID, Key: to("support/42"), Status: events.ThreadOpen, AgentID: "triage", UserID: "u-1", Title: "Order",
			Metadata: raw(`{"n":1.50}`), Env: raw(`{}`), MainThreadID: otherID,
		}},
		fact{events.ContextCreatedType, ctx, "", events.ContextCreated{ID: ctx, Status: events.ContextOpen, Default: true, Content: raw(`{"a":1}`)}},
		fact{events.KeyClaimedType, threadID, "", events.KeyClaimed{Key: "support/42", ThreadID: threadID}},
	)
	if k.state.ContextID() != ctx || !k.state.Exists() {
		t.Errorf("the default context is %q, want %q", k.state.ContextID(), ctx)
	}
	wantRefusal(t, k.refuse(events.CreateThread{}), events.AlreadyExists, events.ErrorDetails{Entity: "thread", ID: threadID})
}

func TestCreateThread_WithoutKey(t *testing.T) {
	k := newStory(t)
	made := k.do(events.CreateThread{})
	ctx := k.state.ContextID()
	want(t, made,
		fact{events.ThreadCreatedType, threadID, "", events.ThreadCreated{ID: threadID, Status: events.ThreadOpen}},
		fact{events.ContextCreatedType, ctx, "", events.ContextCreated{ID: ctx, Status: events.ContextOpen, Default: true, Content: raw(`null`)}},
	)
}

// A resolved thread is made once and found from then on (EK-137).
func TestResolveThread(t *testing.T) {
	k := newStory(t)
	made := k.do(events.ResolveThread{Key: "k", Title: "Order"})
	if len(made) != 4 || made[0].Type != events.ThreadCreatedType || made[2].Type != events.KeyClaimedType {
		t.Fatalf("made %+v", facts(made))
	}
	if title := made[0].Data.(events.ThreadCreated).Title; title != "Order" {
		t.Errorf("its title is %q", title)
	}
	want(t, made[3:], fact{events.ThreadResolvedType, threadID, "", events.ThreadResolved{Key: "k", Created: true}})
	want(t, k.do(events.ResolveThread{Key: "k", Title: "other"}),
		fact{events.ThreadResolvedType, threadID, "", events.ThreadResolved{Key: "k"}})
}

func TestUpdateThread(t *testing.T) {
	k := begun(t)
	all := events.UpdateThread{
		Title: to(""), Archived: to(true), Draft: to("Dear"), AutoSubmitDraft: to(false), AgentMode: to("smart"),
		MaxTokens: to(int64(7)), UserID: to("u"), Metadata: raw(`{}`), Env: raw(`{}`),
	}
	want(t, k.do(all), fact{events.ProfileChangedType, threadID, "", profileOf(all)})
	for _, one := range []events.UpdateThread{
		{Title: all.Title}, {Archived: all.Archived}, {Draft: all.Draft}, {AutoSubmitDraft: all.AutoSubmitDraft}, {AgentMode: all.AgentMode},
		{MaxTokens: all.MaxTokens}, {UserID: all.UserID}, {Metadata: all.Metadata}, {Env: all.Env},
	} {
		want(t, k.do(one), fact{events.ProfileChangedType, threadID, "", profileOf(one)})
	}
	wantRefusal(t, k.refuse(events.UpdateThread{}), events.InvalidRequest, events.ErrorDetails{Path: "/data"})
}

// A react is over once, after its execution ended, and as it ended (EK-148).
func TestFinishThread(t *testing.T) {
	k := begun(t)
	finish := events.FinishThread{ExecutionID: "exe_1", Reason: "done"}
	wantRefusal(t, k.refuse(finish), events.InvalidRequest, events.ErrorDetails{Path: "/data/executionId"})
	k.do(events.SetExecutionStatus{ExecutionID: "exe_1", To: events.ExecutionFailed})
	want(t, k.do(finish), fact{events.ThreadFinishedType, threadID, "exe_1",
		events.ThreadFinished{ExecutionID: "exe_1", Status: events.ExecutionFailed, Reason: "done"}})
	wantRefusal(t, k.refuse(finish), events.AlreadyExists, events.ErrorDetails{Entity: "thread.finished of execution", ID: "exe_1"})
	wantRefusal(t, k.refuse(events.FinishThread{ExecutionID: "exe_2"}), events.NotFound, events.ErrorDetails{Entity: "execution", ID: "exe_2"})
}

// A deleted thread releases its key, and nothing in it is found any more (C-6).
func TestDeleteThread(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{Key: "k", Context: raw(`"secret"`)})
	k.do(message("itm_user", "hello"))
	want(t, k.do(events.DeleteThread{Purge: true}),
		fact{events.KeyReleasedType, threadID, "", events.KeyReleased{Key: "k", ThreadID: threadID}},
		fact{events.LifecycleDeletedType, threadID, "", events.LifecycleDeleted{Purge: true}},
	)
	if k.state.Exists() || k.state.Bytes() > 1200 {
		t.Errorf("exists %v, and takes %d bytes", k.state.Exists(), k.state.Bytes())
	}
	plain := newStory(t)
	plain.do(events.CreateThread{})
	want(t, plain.do(events.DeleteThread{}), fact{events.LifecycleDeletedType, threadID, "", events.LifecycleDeleted{}})
}

// A refusal is recorded on the thread that was named, if it is there, and on
// the tenant otherwise.
func TestRejectCommand(t *testing.T) {
	rejected := events.CommandRejected{Command: "thread.status", ThreadID: threadID, Code: events.IllegalTransition, Message: "no"}
	k := begun(t)
	want(t, k.do(rejected), fact{events.CommandRejectedType, threadID, "", rejected})
	wantRefusal(t, newStory(t).refuse(rejected), events.NotFound, events.ErrorDetails{Entity: "thread", ID: threadID})
	whole := newStory(t)
	whole.thread = events.TenantAggregate
	want(t, whole.do(rejected), fact{events.CommandRejectedType, events.TenantAggregate, "", rejected})
}

// profileOf returns the event of a change that a caller makes.
func profileOf(d events.UpdateThread) events.ProfileChanged {
	return events.ProfileChanged{
		Title: d.Title, Archived: d.Archived, Draft: d.Draft, AutoSubmitDraft: d.AutoSubmitDraft, AgentMode: d.AgentMode,
		MaxTokens: d.MaxTokens, UserID: d.UserID, Metadata: d.Metadata, Env: d.Env, Policy: d.Policy,
	}
}
