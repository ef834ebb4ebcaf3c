package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

// forgeries is what a forger could add to a thread with a right chain, and what
// no command would have made.
func forgeries(def string) []forgedEvent {
	const self = "THREAD"
	other := "T-0190a000-0000-7000-8000-00000000dead"
	cond, link, move := []Kind{KindCondition}, []Kind{KindLink}, []Kind{KindTransition}
	either := []Kind{KindCondition, KindLink}
	no := false
	ctx := func(id string, key *string, def bool) events.ContextCreated {
		return events.ContextCreated{ID: id, Key: key, Status: "open", Default: def, Content: raw("null")}
	}
	msg := func(id string, index int64) events.ItemCreated {
		return events.ItemCreated{ID: id, ContextID: def, Index: index, Type: "message", Role: "user", Status: "stored", Content: raw("[]")}
	}
	with := func(i events.ItemCreated, change func(*events.ItemCreated)) events.ItemCreated {
		change(&i)
		return i
	}
	step := events.StepCreated{ID: "stp_9", ExecutionID: "exe_1", Iteration: 1, EventID: "itm_r1", Status: "running"}
	effect := func(id string, when string) events.EffectScheduled {
		return events.EffectScheduled{ID: id, Name: "remind", ScheduledAt: when}
	}
	const eff = "0190a000-0000-7000-8000-00000000e009"
	file := func(path string) events.FileWritten {
		return events.FileWritten{Path: path, MimeType: "text/plain", External: "s3://x"}
	}
	return []forgedEvent{
		{"a thread created twice", whole, events.ThreadCreatedType, self, "", events.ThreadCreated{ID: self, Status: "open"}, either},
		{"resolved by another key", whole, events.ThreadResolvedType, self, "", events.ThreadResolved{Key: "evil"}, cond},
		{"a move that is not allowed", whole, events.ThreadStatusChangedType, self, "", events.ThreadStatusChanged{From: "open", To: "closed"}, move},
		{"a move from another state", whole, events.ThreadStatusChangedType, self, "", events.ThreadStatusChanged{From: "failed", To: "open"}, link},
		{"a move of another thread", whole, events.ThreadStatusChangedType, other, "", events.ThreadStatusChanged{From: "open", To: "streaming"}, cond},
		{"finished twice", whole, events.ThreadFinishedType, self, "exe_1", events.ThreadFinished{ExecutionID: "exe_1", Status: "completed"}, link},
		{"finished, of no execution", whole, events.ThreadFinishedType, self, "exe_9", events.ThreadFinished{ExecutionID: "exe_9", Status: "completed"}, link},
		{"finished while it executes", running, events.ThreadFinishedType, self, "exe_1", events.ThreadFinished{ExecutionID: "exe_1", Status: "completed"}, link},
		{"a profile that changes nothing", whole, events.ProfileChangedType, self, "", events.ProfileChanged{}, cond},
		{"a profile of another", whole, events.ProfileChangedType, "itm_u1", "", events.ProfileChanged{Title: to("x")}, cond},
		{"an agent after another one", whole, events.AgentAssignedType, self, "", events.AgentAssigned{AgentID: "evil", From: "triage"}, cond},
		{"an agent of no run", whole, events.AgentAssignedType, self, "exe_1", events.AgentAssigned{AgentID: "evil", From: "billing"}, cond},
		{"a skill of no run", whole, events.SkillActivatedType, self, "exe_9", events.SkillActivated{Name: "pdf"}, cond},
		{"it works for itself", whole, events.SubthreadAddedType, self, "", events.SubthreadAdded{ThreadID: self}, cond},
		{"no thread works for it", whole, events.SubthreadAddedType, self, "", events.SubthreadAdded{ThreadID: other}, link},
		{"tied to itself", whole, events.RelationshipAddedType, self, "", events.RelationshipAdded{ThreadID: self, Type: "fork", Role: "parent"}, cond},
		{"tied to no thread", whole, events.RelationshipAddedType, self, "", events.RelationshipAdded{ThreadID: other, Type: "fork", Role: "parent"}, link},
		{"tied at no item", whole, events.RelationshipAddedType, self, "", events.RelationshipAdded{ThreadID: other, Type: "fork", Role: "parent", MessageIndex: to(int64(77))}, either},
		{"tied at an unknown item", whole, events.RelationshipAddedType, self, "", events.RelationshipAdded{ThreadID: other, Type: "fork", Role: "parent", ItemID: "itm_9"}, either},
		{"untied from no thread", whole, events.RelationshipRemovedType, self, "", events.RelationshipRemoved{ThreadID: other, Type: "fork", Role: "parent"}, cond},
		{"a writer until no time", whole, events.WriterClaimedType, self, "", events.WriterClaimed{Holder: "evil", TokenDigest: "d", TTLMs: 1000, Until: "2020-01-01T00:00:00.000000Z"}, either},
		{"a writer that holds nothing is renewed", whole, events.WriterRenewedType, self, "", events.WriterRenewed{Until: "2020-01-01T00:00:00.000000Z"}, either},
		{"a writer that holds nothing is released", whole, events.WriterReleasedType, self, "", events.WriterReleased{Holder: "evil"}, either},
		{"shared without a token", whole, events.ShareCreatedType, "shr_1", "", events.ShareCreated{ID: "shr_1"}, cond},
		{"unshared, never shared", whole, events.ShareRevokedType, "shr_1", "", events.ShareRevoked{ID: "shr_1"}, cond},
		{"a key claimed later", whole, events.KeyClaimedType, self, "", events.KeyClaimed{Key: "evil", ThreadID: self}, either},
		{"a key claimed for another", whole, events.KeyClaimedType, self, "", events.KeyClaimed{Key: "evil", ThreadID: other}, either},
		{"a key released that is not held", whole, events.KeyReleasedType, self, "", events.KeyReleased{Key: "evil", ThreadID: self}, cond},
		{"a refusal for another thread", whole, events.CommandRejectedType, self, "", events.CommandRejected{Command: "item.create", ThreadID: other, Code: "not_found", Message: "no"}, cond},
		{"a refusal about an item", whole, events.CommandRejectedType, "itm_u1", "", events.CommandRejected{Command: "item.create", ThreadID: self, Code: "not_found", Message: "no"}, cond},
		{"a definition on a thread", whole, events.DefinitionChangedType, "agent/a", "", events.DefinitionChanged{Kind: "agent", Name: "a", Version: 1, Digest: "x", Definition: raw(`{}`)}, cond},
		{"destroyed, about an item", whole, events.LifecycleDestroyedType, "itm_u1", "", events.LifecycleDestroyed{}, cond},
		{"deleted amid a run", running, events.LifecycleDeletedType, self, "", events.LifecycleDeleted{}, cond},
		{"archived amid a run", running, events.LifecycleArchivedType, self, "", events.LifecycleArchived{Object: "acme/" + self + "/1", Digest: strings.Repeat("0", 64), Commits: 1, Bytes: 1, FirstSeq: 1 << 40, LastSeq: 1 << 40, Chain: strings.Repeat("0", 64)}, []Kind{KindArchive, KindCondition}},
		{"archived with another chain", whole, events.LifecycleArchivedType, self, "", events.LifecycleArchived{Object: "acme/" + self + "/1", Digest: strings.Repeat("0", 64), Commits: 1, Bytes: 1, FirstSeq: 1 << 40, LastSeq: 1 << 40, Chain: strings.Repeat("0", 64)}, []Kind{KindArchive, KindCondition}},

		{"a second default context", whole, events.ContextCreatedType, "ctx_9", "", ctx("ctx_9", nil, true), cond},
		{"a context made twice", whole, events.ContextCreatedType, "ctx_a", "", ctx("ctx_a", nil, false), link},
		{"a context's key used twice", whole, events.ContextCreatedType, "ctx_9", "", ctx("ctx_9", to("a"), false), cond},
		{"a context that begins closed", whole, events.ContextCreatedType, "ctx_9", "", events.ContextCreated{ID: "ctx_9", Status: "closed", Content: raw("null")}, link},
		{"a context resolved by another key", whole, events.ContextResolvedType, "ctx_a", "", events.ContextResolved{Key: to("evil")}, cond},
		{"a context resolved as new", whole, events.ContextResolvedType, "ctx_a", "", events.ContextResolved{Key: to("a"), Created: true}, cond},
		{"an unknown context resolved", whole, events.ContextResolvedType, "ctx_9", "", events.ContextResolved{}, link},
		{"an unknown context moved", whole, events.ContextStatusChangedType, "ctx_9", "", events.ContextStatusChanged{From: "open", To: "closed"}, link},
		{"a context moved from another state", whole, events.ContextStatusChangedType, "ctx_a", "", events.ContextStatusChanged{From: "streaming", To: "open"}, link},
		{"the state of an unknown context", whole, events.StateChangedType, "ctx_9", "", events.StateChanged{Content: raw(`1`)}, cond},
		{"a state with content and patch", whole, events.StateChangedType, "ctx_a", "", events.StateChanged{Content: raw(`1`), Patch: raw(`{}`)}, cond},
		{"a state with neither", whole, events.StateChangedType, "ctx_a", "", events.StateChanged{}, cond},
		{"a state with a life that is none renewed", whole, events.StateRenewedType, "ctx_a", "", events.StateRenewed{Life: 1, Until: "2026-02-20T13:00:00.000000Z", IdleSeconds: 3600}, either},
		{"a session that is none", whole, events.SessionStartedType, "sess_1", "", events.SessionStarted{ID: "sess_2", StartedAt: "2026-02-20T13:00:00.000000Z"}, cond},
		{"a session that never started", whole, events.SessionCompletedType, "sess_9", "", events.SessionCompleted{ID: "sess_9", StartedAt: "2026-02-20T13:00:00.000000Z", Outcome: "completed"}, either},
		{"a life that never was released", whole, events.StateReleasedType, "ctx_a", "", events.StateReleased{Life: 1, Listener: "evil"}, either},
		{"operations on a context that is no life", whole, events.StateChangedType, "ctx_a", "", events.StateChanged{Operations: []events.StateOperation{{Op: events.ClearOp}}, Life: 1}, either},
		{"an unknown context's state closed", whole, events.StateClosedType, "ctx_9", "", events.StateClosed{}, cond},

		{"an index used twice", whole, events.ItemCreatedType, "itm_9", "", msg("itm_9", 0), cond},
		{"an index skipped", whole, events.ItemCreatedType, "itm_9", "", msg("itm_9", 2), cond},
		{"an item made twice", whole, events.ItemCreatedType, "itm_u1", "", msg("itm_u1", 1), link},
		{"an item in no context", whole, events.ItemCreatedType, "itm_9", "", with(msg("itm_9", 1), func(i *events.ItemCreated) { i.ContextID = "ctx_9" }), link},
		{"an unknown parent", whole, events.ItemCreatedType, "itm_9", "", with(msg("itm_9", 1), func(i *events.ItemCreated) { i.ParentItemID = "itm_8" }), cond},
		{"an item of no execution", whole, events.ItemCreatedType, "itm_9", "exe_9", msg("itm_9", 1), cond},
		{"a message that is a call's part", whole, events.ItemCreatedType, "itm_9", "", with(msg("itm_9", 1), func(i *events.ItemCreated) { i.CallOf = to(int64(0)) }), cond},
		{"an unknown item moved", whole, events.ItemStatusChangedType, "itm_9", "", events.ItemStatusChanged{From: "stored", To: "pending"}, link},
		{"an item moved from another state", whole, events.ItemStatusChangedType, "itm_u1", "", events.ItemStatusChanged{From: "pending", To: "completed"}, link},
		{"an item moved by no execution", whole, events.ItemStatusChangedType, "itm_u1", "exe_9", events.ItemStatusChanged{From: "stored", To: "pending"}, cond},
		{"an unknown item edited", whole, events.MessageEditedType, "itm_9", "", events.MessageEdited{Metadata: raw(`{}`)}, link},
		{"an edit of another place", whole, events.MessageEditedType, "itm_u1", "", events.MessageEdited{Index: 5, Metadata: raw(`{}`)}, cond},
		{"an edit that says what was otherwise", whole, events.MessageEditedType, "itm_u1", "", events.MessageEdited{Silent: &no, WasSilent: &no}, cond},
		{"an edit that does not say what was", whole, events.MessageEditedType, "itm_u1", "", events.MessageEdited{Silent: &no}, cond},
		{"another item edited by a run", running, events.MessageEditedType, "itm_r9", "exe_1", events.MessageEdited{Parts: []events.PlacedPart{{Place: 0, Part: raw(`{"type":"x"}`)}}}, either},
		{"an unknown item deleted", whole, events.MessageDeletedType, "itm_9", "", events.MessageDeleted{ContextID: def, Type: "message"}, either},
		{"an item deleted in another place", whole, events.MessageDeletedType, "itm_u1", "", events.MessageDeleted{ContextID: "ctx_a", Type: "message"}, cond},
		{"a history inherited by a thread that has items", whole, events.HistoryInheritedType, self, "", events.HistoryInherited{
			ThreadID: other, Version: 1, ContextID: "ctx_a", NextIndex: 16, Pages: []events.HistoryPart{{Digest: strings.Repeat("0", 64)}},
		}, cond},
		{"a history cut where it does not reach", whole, events.HistoryTruncatedType, self, "", events.HistoryTruncated{FromIndex: 50}, cond},

		{"an execution made twice", whole, events.ExecutionCreatedType, "exe_1", "exe_1", events.ExecutionCreated{ID: "exe_1", ContextID: "ctx_a", TriggerItemID: "itm_u1", ReactionItemID: "itm_r9", Status: "executing"}, link},
		{"an execution of no item", whole, events.ExecutionCreatedType, "exe_9", "exe_9", events.ExecutionCreated{ID: "exe_9", ContextID: "ctx_a", TriggerItemID: "itm_9", ReactionItemID: "itm_r9", Status: "executing"}, link},
		{"an execution in no context", whole, events.ExecutionCreatedType, "exe_9", "exe_9", events.ExecutionCreated{ID: "exe_9", ContextID: "ctx_9", TriggerItemID: "itm_u1", ReactionItemID: "itm_r9", Status: "executing"}, link},
		{"an execution of another", whole, events.ExecutionCreatedType, "exe_9", "exe_1", events.ExecutionCreated{ID: "exe_9", ContextID: "ctx_a", TriggerItemID: "itm_u1", ReactionItemID: "itm_r9", Status: "executing"}, cond},
		{"an unknown execution ended", whole, events.ExecutionStatusChangedType, "exe_9", "exe_9", events.ExecutionStatusChanged{From: "executing", To: "failed"}, link},
		{"an execution that goes on", whole, events.ExecutionStatusChangedType, "exe_1", "exe_1", events.ExecutionStatusChanged{From: "completed", To: "executing"}, move},
		{"an execution that shows in another item", running, events.ExecutionStatusChangedType, "exe_1", "exe_1", events.ExecutionStatusChanged{From: "executing", To: "failed", ReactionItemID: "itm_u1"}, cond},
		{"a step of no execution", whole, events.StepCreatedType, "stp_9", "exe_9", events.StepCreated{ID: "stp_9", ExecutionID: "exe_9", EventID: "itm_r1", Status: "running"}, link},
		{"a step of another execution's flow", whole, events.StepCreatedType, "stp_9", "exe_9", step, cond},
		{"a step made twice", whole, events.StepCreatedType, "stp_1", "exe_1", events.StepCreated{ID: "stp_1", ExecutionID: "exe_1", EventID: "itm_r1", Status: "running"}, link},
		{"a step that begins as over", whole, events.StepCreatedType, "stp_9", "exe_1", events.StepCreated{ID: "stp_9", ExecutionID: "exe_1", EventID: "itm_r1", Status: "completed"}, link},
		{"an unknown step ended", whole, events.StepStatusChangedType, "stp_9", "exe_1", events.StepStatusChanged{ExecutionID: "exe_1", From: "running", To: "failed"}, link},
		{"a step that goes on", whole, events.StepStatusChangedType, "stp_1", "exe_1", events.StepStatusChanged{ExecutionID: "exe_1", From: "completed", To: "running"}, move},
		{"a part made twice", whole, events.PartCreatedType, "stp_1:0", "exe_1", events.PartCreated{Key: "stp_1:0", StepID: "stp_1", Type: "x", Part: raw(`{}`)}, link},
		{"a part of no step", whole, events.PartCreatedType, "stp_9:0", "exe_1", events.PartCreated{Key: "stp_9:0", StepID: "stp_9", Type: "x", Part: raw(`{}`)}, link},
		{"an unknown part", whole, events.PartUpdatedType, "stp_1:7", "exe_1", events.PartUpdated{Key: "stp_1:7", StepID: "stp_1", Idx: 7, Type: "x", Part: raw(`{}`)}, link},
		{"a part under another key", whole, events.PartUpdatedType, "stp_1:0", "exe_1", events.PartUpdated{Key: "stp_1:0", StepID: "stp_1", Idx: 3, Type: "x", Part: raw(`{}`)}, link},
		{"a part of another execution's flow", whole, events.PartUpdatedType, "stp_1:0", "exe_9", events.PartUpdated{Key: "stp_1:0", StepID: "stp_1", Type: "x", Part: raw(`{}`)}, cond},
		{"a chunk in the log", whole, events.ChunkEmittedType, "exe_1", "exe_1", nil, cond},
		{"a record of no execution", whole, events.TraceRecordedType, "exe_9", "exe_9", events.TraceRecorded{Kind: "log", ExecutionID: "exe_9"}, cond},
		{"a record about another", whole, events.TraceRecordedType, self, "exe_1", events.TraceRecorded{Kind: "log", ExecutionID: "exe_1"}, cond},

		{"a run of no execution", whole, events.RunRequestedType, "exe_9", "exe_9", events.RunRequested{AgentID: "evil"}, cond},
		{"a run of what is over", whole, events.RunRequestedType, "exe_1", "exe_1", events.RunRequested{AgentID: "evil"}, cond},
		{"a run by another agent", running, events.RunRequestedType, "exe_1", "exe_1", events.RunRequested{AgentID: "evil"}, cond},
		{"a run of no thread's call", running, events.RunRequestedType, "exe_1", "exe_1", events.RunRequested{AgentID: "triage", Parent: &events.Parent{ThreadID: other, ExecutionID: "exe_1", CallID: "c"}}, either},
		{"a claim of no execution", running, events.RunClaimedType, "exe_9", "exe_9", events.RunClaimed{Worker: "evil", Token: 2}, cond},
		{"a claim of what nobody runs", whole, events.RunClaimedType, "exe_1", "exe_1", events.RunClaimed{Worker: "evil", Token: 1}, cond},
		{"a claim with an old token", running, events.RunClaimedType, "exe_1", "exe_1", events.RunClaimed{Worker: "evil", Token: 1}, cond},
		{"a claim with a token too high", running, events.RunClaimedType, "exe_1", "exe_1", events.RunClaimed{Worker: "evil", Token: 9}, cond},
		{"parked by another claim", running, events.RunParkedType, "exe_1", "exe_1", events.RunParked{Token: 9, Calls: []string{"call_1"}}, cond},
		{"parked for another call", running, events.RunParkedType, "exe_1", "exe_1", events.RunParked{Token: 1, Calls: []string{"call_2"}}, cond},
		{"parked without a call that can be made", running, events.RunParkedType, "exe_1", "exe_1", events.RunParked{Token: 1, Calls: []string{"call_1"}, Unmade: []string{"call_2"}}, cond},
		{"suspended for no call", running, events.RunSuspendedType, "exe_1", "exe_1", events.RunSuspended{Calls: []string{"call_9"}}, cond},
		{"suspended for what ended", running, events.RunSuspendedType, "exe_1", "exe_1", events.RunSuspended{Calls: []string{"call_2"}}, cond},
		{"resumed for what did not wait", running, events.RunResumedType, "exe_1", "exe_1", events.RunResumed{Calls: []string{"call_2"}}, cond},
		{"resumed for nothing", running, events.RunResumedType, "exe_1", "exe_1", events.RunResumed{Calls: []string{}}, cond},
		{"stopped, of what is over", whole, events.RunStoppedType, "exe_1", "exe_1", events.RunStopped{}, cond},
		{"awaiting what is no call", running, events.RunAwaitedType, "exe_1", "exe_1", events.RunAwaited{For: []events.WaitFor{{Kind: events.ToolWorker, Name: "refund", CallID: "call_9"}}}, cond},
		{"awaiting, of what is over", whole, events.RunAwaitedType, "exe_1", "exe_1", events.RunAwaited{For: []events.WaitFor{}}, cond},
		{"limited, of what is over", whole, events.RunLimitedType, "exe_1", "exe_1", events.RunLimited{Rights: &events.Rights{User: "evil"}}, cond},
		{"turned, without sides", running, events.RunTurnedType, "exe_1", "exe_1", events.RunTurned{Side: "side_b"}, []Kind{KindCondition, KindSchema}},
		{"an approval asked for of no call", running, events.ApprovalRequestedType, "call_9", "exe_1", events.ApprovalRequested{CallID: "call_9", Name: "refund"}, cond},
		{"an approval asked for twice", running, events.ApprovalRequestedType, "call_1", "exe_1", events.ApprovalRequested{CallID: "call_1", Name: "refund"}, cond},
		{"an approval asked for of what ended", running, events.ApprovalRequestedType, "call_2", "exe_1", events.ApprovalRequested{CallID: "call_2", Name: "find"}, cond},
		{"granted without a request", running, events.ApprovalGrantedType, "call_2", "exe_1", events.ApprovalGranted{CallID: "call_2"}, cond},
		{"granted, of no run", whole, events.ApprovalGrantedType, "call_1", "exe_1", events.ApprovalGranted{CallID: "call_1"}, cond},
		{"granted, about another call", running, events.ApprovalGrantedType, "call_2", "exe_1", events.ApprovalGranted{CallID: "call_1"}, cond},
		{"denied without a request", running, events.ApprovalDeniedType, "call_2", "exe_1", events.ApprovalDenied{CallID: "call_2"}, cond},
		{"resolved without a request", running, events.ApprovalResolvedType, "call_2", "exe_1", events.ApprovalResolved{CallID: "call_2", Result: raw(`1`)}, cond},
		{"resolved, of no run", whole, events.ApprovalResolvedType, "call_1", "exe_1", events.ApprovalResolved{CallID: "call_1", Result: raw(`1`)}, cond},
		{"stopped now, and cancelled", running, events.RunStoppedType, "exe_1", "exe_1", events.RunStopped{Abort: true, Now: true}, cond},
		{"stopped, and what it streamed discarded", running, events.RunStoppedType, "exe_1", "exe_1", events.RunStopped{Discard: true}, cond},
		{"denied, of no execution", running, events.ApprovalDeniedType, "call_1", "exe_9", events.ApprovalDenied{CallID: "call_1"}, cond},
		{"queued with another's number", running, events.QueuePushedType, "queued-9", "", events.QueuePushed{ID: "queued-9", Item: raw(`{"type":"message"}`), MessageID: 99}, cond},
		{"queued for no context", running, events.QueuePushedType, "queued-9", "", events.QueuePushed{ID: "queued-9", Item: raw(`{"type":"message"}`), MessageID: 3, ContextID: "ctx_9"}, cond},
		{"taken from the queue, and not there", running, events.QueueDrainedType, "queued-9", "", events.QueueDrained{IDs: []string{"queued-9"}}, cond},
		{"nothing taken from the queue", running, events.QueueDrainedType, "queued-9", "", events.QueueDrained{IDs: []string{}}, cond},
		{"removed from the queue, and not there", running, events.QueueRemovedType, "queued-9", "", events.QueueRemoved{ID: "queued-9"}, cond},
		{"edited in the queue, and not there", running, events.QueueEditedType, "queued-9", "", events.QueueEdited{ID: "queued-9", Item: raw(`{"type":"message"}`)}, cond},
		{"moved in the queue, and not there", running, events.QueueMovedType, "queued-9", "", events.QueueMoved{ID: "queued-9"}, cond},

		{"an effect scheduled twice", whole, events.EffectScheduledType, effectOne, effectOne, effect(effectOne, fromNow(time.Hour)), cond},
		{"an effect due before it was scheduled", whole, events.EffectScheduledType, eff, eff, effect(eff, fromNow(-48*time.Hour)), cond},
		{"an effect due in twenty years", whole, events.EffectScheduledType, eff, eff, effect(eff, fromNow(20*365*24*time.Hour)), cond},
		{"an effect cancelled, never scheduled", whole, events.EffectCancelledType, eff, eff, events.EffectCancelled{}, cond},
		{"an effect started, never scheduled", whole, events.EffectStartedType, eff, eff, events.EffectStarted{Firing: 1, Attempt: 1, Claim: 1}, cond},
		{"an effect's attempt skipped", whole, events.EffectStartedType, effectOne, effectOne, events.EffectStarted{Firing: 1, Attempt: 2, Claim: 1}, cond},
		{"an effect's other firing", whole, events.EffectStartedType, effectOne, effectOne, events.EffectStarted{Firing: 2, Attempt: 1, Claim: 1}, cond},
		{"an effect done, never scheduled", whole, events.EffectCompletedType, eff, eff, events.EffectCompleted{Firing: 1, Attempt: 1}, cond},
		{"an effect done, never started", whole, events.EffectCompletedType, effectOne, effectOne, events.EffectCompleted{Firing: 1, Attempt: 1}, cond},
		{"an effect failed, never scheduled", whole, events.EffectFailedType, eff, eff, events.EffectFailed{Firing: 1, Attempt: 1, ErrorText: "x"}, cond},
		{"an effect failed, never started", whole, events.EffectFailedType, effectOne, effectOne, events.EffectFailed{Firing: 1, Attempt: 1, ErrorText: "x"}, cond},

		{"a file in no directory", whole, events.FileWrittenType, self, "", file("/nowhere/f"), cond},
		{"a file over a directory", whole, events.FileWrittenType, self, "", file("/d"), cond},
		{"a file with ..", whole, events.FileWrittenType, self, "", file("/d/../x"), cond},
		{"a file with a path of another form", whole, events.FileWrittenType, self, "", file("d//f"), cond},
		{"a file that was there, as new", whole, events.FileWrittenType, self, "", file("/g"), cond},
		{"a file below a file", whole, events.FileWrittenType, self, "", file("/g/f"), cond},
		{"a file deleted that is not there", whole, events.FileDeletedType, self, "", events.FileDeleted{Path: "/nothing"}, cond},
		{"a directory deleted as a file", whole, events.FileDeletedType, self, "", events.FileDeleted{Path: "/d"}, cond},
		{"a file deleted with ..", whole, events.FileDeletedType, self, "", events.FileDeleted{Path: "/d/../g"}, cond},
		{"a directory made twice", whole, events.DirectoryCreatedType, self, "", events.DirectoryCreated{Path: "/d"}, cond},
		{"a directory in no directory", whole, events.DirectoryCreatedType, self, "", events.DirectoryCreated{Path: "/x/y"}, cond},
		{"the root made", whole, events.DirectoryCreatedType, self, "", events.DirectoryCreated{Path: "/"}, cond},
		{"a directory with ..", whole, events.DirectoryCreatedType, self, "", events.DirectoryCreated{Path: "/.."}, cond},
		{"a full directory removed", whole, events.DirectoryRemovedType, self, "", events.DirectoryRemoved{Path: "/d"}, cond},
		{"a directory removed that is not there", whole, events.DirectoryRemovedType, self, "", events.DirectoryRemoved{Path: "/x"}, cond},
		{"a file removed as a directory", whole, events.DirectoryRemovedType, self, "", events.DirectoryRemoved{Path: "/g"}, cond},
		{"the root removed", whole, events.DirectoryRemovedType, self, "", events.DirectoryRemoved{Path: "/"}, cond},
	}
}

// Every event of the catalog can be forged with a right chain, and is found: what
// could not have followed, whatever it is.
func TestTampering_ForgedEvents(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	p.stopRelay()
	left := map[events.Type]bool{}
	for _, row := range events.Catalog() {
		left[row.Type] = true
	}
	sample := whole(t, threadOne)
	for _, f := range forgeries(sample.state.ContextID()) {
		delete(left, f.typ)
		id := p.next()
		k := f.base(t, id)
		f.data = ownNames(f.data, id, k.state.ContextID(), sample.state.ContextID())
		list := f.add(t, k)
		p.plant(f.name, id, list, len(list)-1, f.kinds...)
	}
	for range 3 { // what nobody touched
		p.write(whole(t, p.next()).messages(), 0)
		p.write(running(t, p.next()).messages(), 0)
	}
	p.look(Options{LogOnly: true, Checks: []Check{}})
	for typ := range left {
		t.Errorf("%s is forged in no case", typ)
	}
}

// ownNames puts a thread's own names where a forgery speaks of them.
func ownNames(data any, id, context, instead string) any {
	switch d := data.(type) {
	case events.ThreadCreated:
		d.ID = id
		return d
	case events.SubthreadAdded:
		d.ThreadID = strings.ReplaceAll(d.ThreadID, "THREAD", id)
		return d
	case events.RelationshipAdded:
		d.ThreadID = strings.ReplaceAll(d.ThreadID, "THREAD", id)
		return d
	case events.KeyClaimed:
		d.ThreadID = strings.ReplaceAll(d.ThreadID, "THREAD", id)
		return d
	case events.KeyReleased:
		d.ThreadID = strings.ReplaceAll(d.ThreadID, "THREAD", id)
		return d
	case events.CommandRejected:
		d.ThreadID = strings.ReplaceAll(d.ThreadID, "THREAD", id)
		return d
	case events.LifecycleArchived:
		d.Object = strings.ReplaceAll(d.Object, "THREAD", id)
		return d
	case events.ItemCreated:
		d.ContextID = strings.ReplaceAll(d.ContextID, instead, context)
		return d
	case events.MessageDeleted:
		d.ContextID = strings.ReplaceAll(d.ContextID, instead, context)
		return d
	}
	return data
}
