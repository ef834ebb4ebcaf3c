package events

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Test data: a tenant, a thread, and one complete example of every event, from which the
// golden files are made.
const (
	tenant   = "acme"
	thread   = "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"
	ctxID    = "ctx_0195e5d03c1a7b2e9f441d2e3f405163"
	itemID   = "itm_0195e5d03c1a7b2e9f441d2e3f405164"
	replyID  = "itm_0195e5d03c1a7b2e9f441d2e3f405165"
	execID   = "exe_0195e5d03c1a7b2e9f441d2e3f405166"
	stepID   = "stp_0195e5d03c1a7b2e9f441d2e3f405167"
	otherID  = "T-5928a90d-d53b-488f-a829-4e36442142ee"
	effectID = "0195e5d0-3c1a-4b2e-9f44-1d2e3f405168"
	cmdID    = "0195e5d0-3c1a-7b2e-9f44-1d2e3f405169"
	traceCtx = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

var start = TimeOf(time.Date(2026, 2, 20, 12, 0, 0, 123456789, time.UTC))

func raw(s string) JSON { return JSON(s) }

func to[T any](v T) *T { return &v }

// sample is a complete example of an event and the id of its subject.
type sample struct {
	of      Type
	subject string
	data    any
}

// samples returns the filled examples: those below, and of every other event its row's.
func samples() []sample {
	list := written()
	for _, r := range Catalog() {
		if !slices.ContainsFunc(list, func(s sample) bool { return s.of == r.Type }) {
			list = append(list, sample{r.Type, exampleQuestion, r.Example})
		}
	}
	return list
}

func sampleRights() *Rights {
	return &Rights{User: "ada", Threads: []string{otherID}, None: true, Can: []Capability{CanRead, CanTools}, Code: true}
}

func sampleSettings() *RunSettings {
	return &RunSettings{
		Instructions: "Be brief.", MaxOutputTokens: 512, Temperature: new(0.5), Params: raw(`{"top_p":0.9}`), Metadata: raw(`{"order":"42"}`),
		Tools: []CallerTool{{Name: "weather", Description: "The weather.", Parameters: raw(`{"type":"object"}`), Strict: true}},
	}
}

func written() []sample {
	const iso = "2026-02-20T12:00:00.000Z"
	return []sample{
		{ThreadCreatedType, thread, ThreadCreated{
			ID: thread, Key: to("support/42"), Status: ThreadOpen, AgentID: "triage", UserID: "u-1", Title: "Zoë's \"order\"",
			Metadata: raw(`{"n":1.50,"list":[true,null]}`), Env: raw(`{"tree":"main"}`), MainThreadID: otherID, OriginThreadID: otherID, ForkPointIndex: to(int64(3)),
		}},
		{ThreadResolvedType, thread, ThreadResolved{Key: "support/42", Created: true}},
		{ThreadStatusChangedType, thread, ThreadStatusChanged{From: ThreadOpen, To: ThreadStreaming, Reason: "react"}},
		{ThreadFinishedType, thread, ThreadFinished{ExecutionID: execID, Status: ExecutionCompleted, Reason: "done"}},
		{SubthreadAddedType, thread, SubthreadAdded{ThreadID: otherID}},
		{ContextCreatedType, ctxID, ContextCreated{ID: ctxID, Type: "order", Key: to("main"), Status: ContextOpen, Default: true, Content: raw(`{"a":[1,2,{"b":null}]}`)}},
		{ContextResolvedType, ctxID, ContextResolved{Key: to("main"), Created: true}},
		{ContextStatusChangedType, ctxID, ContextStatusChanged{From: ContextOpen, To: ContextStreaming}},
		{StateChangedType, ctxID, StateChanged{
			Patch: raw(`{"a":null}`), Operations: []StateOperation{{Op: PushOp, Key: "m", Value: raw(`{"n":null}`), Max: 5}, {Op: ClearOp}}, Life: 2, Size: 1, Bytes: 20,
		}},
		{StateRenewedType, ctxID, StateRenewed{Life: 2, Until: "2026-02-20T13:00:00.123456Z", IdleSeconds: 3600, Listeners: []string{"shop"}}},
		{StateReleasedType, ctxID, StateReleased{Life: 2, Listener: "shop", ErrorText: "no"}},
		{StateClosedType, ctxID, StateClosed{Reason: "expired", Life: 2}},
		{SessionStartedType, exampleSession, SessionStarted{ID: exampleSession, StartedAt: "2026-02-20T12:00:00.123456Z"}},
		{SessionCompletedType, exampleSession, SessionCompleted{
			ID: exampleSession, StartedAt: "2026-02-20T12:00:00.123456Z", Outcome: SessionFailed, ErrorText: "no",
		}},
		{ItemCreatedType, itemID, ItemCreated{
			ID: itemID, ContextID: ctxID, Index: 3, Type: Message, Role: User, Status: ItemStored, Channel: Web,
			Content: raw(`[{"type":"input_text","text":"Where is my order?"}]`), CreatedAt: iso,
			ParentItemID: replyID, Depth: 1, Silent: true, Metadata: raw(`{"k":"v"}`), CallOf: to(int64(2)), OutputOf: PartKey(stepID, 1), ReactionItemID: replyID, SourceItemID: replyID, MessageID: to(int64(4)),
		}},
		{ItemStatusChangedType, itemID, ItemStatusChanged{From: ItemStored, To: ItemPending}},
		{ExecutionCreatedType, execID, ExecutionCreated{
			ID: execID, ContextID: ctxID, TriggerItemID: itemID, ReactionItemID: replyID, WorkflowRunID: "run-7", Status: Executing, SessionID: exampleSession,
		}},
		{ExecutionStatusChangedType, execID, ExecutionStatusChanged{From: Executing, To: ExecutionFailed, ErrorText: "the model is away", ErrorCode: "rate_limit_exceeded", ReactionItemID: replyID}},
		{StepCreatedType, stepID, StepCreated{
			ID: stepID, ExecutionID: execID, Iteration: 2, EventID: replyID, Status: StepRunning, Side: SideB, SessionID: exampleSession, Place: to(int64(4)), SteeredBy: itemID,
		}},
		{StepStatusChangedType, stepID, StepStatusChanged{
			ExecutionID: execID, From: StepRunning, To: StepFailed, ToolCalls: raw(`[{"toolCallId":"tc_1"}]`),
			ToolExecutionResults: raw(`[{"ok":true}]`), ContinueLoop: to(false), ErrorText: "tool failed", ReactionItemID: replyID,
		}},
		{PartCreatedType, PartKey(stepID, 0), PartCreated{
			Key: PartKey(stepID, 0), StepID: stepID, Type: "codex-event",
			Part: raw(`{"type":"codex-event","state":"output-available","output":{"threadId":"t1","turnId":"turn1"}}`),
		}},
		{PartUpdatedType, PartKey(stepID, 1), PartUpdated{
			Key: PartKey(stepID, 1), StepID: stepID, Idx: 1, Type: "tool-plan_writer",
			Part: raw(`{"type":"tool-plan_writer","toolCallId":"tc_1","state":"output-available","output":{"ok":true}}`),
		}},
		{ChunkEmittedType, execID, ChunkEmitted{
			ExecutionID: execID, Index: 9, StepID: stepID, Attempt: 1, Type: ChunkFinish, Data: raw(`{"finishReason":"stop"}`),
		}},
		{MessageEditedType, itemID, MessageEdited{
			Content: raw(`[]`), Parts: []PlacedPart{{Place: 0, Part: raw(`{"type":"refusal"}`)}}, Metadata: raw(`{"k":2}`), Silent: to(true),
			Index: 3, WasSilent: to(false), Output: raw(`"sent"`), IsError: to(false), Failed: to(true),
		}},
		{MessageDeletedType, itemID, MessageDeleted{ContextID: ctxID, Type: Message, Index: 3}},
		{HistoryTruncatedType, thread, HistoryTruncated{FromIndex: 2}},
		{ProfileChangedType, thread, ProfileChanged{
			Title: to("Orders"), Archived: to(true), Draft: to("Dear"), AutoSubmitDraft: to(false), AgentMode: to("smart"),
			MaxTokens: to(int64(4096)), UserID: to("u-2"), Metadata: raw(`{}`), Env: raw(`{"os":"linux"}`), Policy: to(Steer), TitleFrom: TitleFromMessage, Rights: sampleRights(),
		}},
		{AgentAssignedType, thread, AgentAssigned{AgentID: "billing", From: "triage", Reason: "an invoice"}},
		{SkillActivatedType, thread, SkillActivated{Name: "pdf", Arguments: raw(`{"page":1}`)}},
		{RelationshipAddedType, thread, RelationshipAdded{
			ThreadID: otherID, Type: "fork", Role: "parent", MessageIndex: to(int64(0)), ItemID: itemID, Comment: "another way",
		}},
		{RelationshipRemovedType, thread, RelationshipRemoved{ThreadID: otherID, Type: "mention", Role: "child"}},
		{QueuePushedType, thread, QueuePushed{
			ID: "q-1", Item: raw(`{"type":"message"}`), ContextID: ctxID, AgentID: "billing", MessageID: 4, First: true, Once: true,
			ExecutionID: execID, ReactionItemID: replyID, SessionID: exampleSession, Settings: sampleSettings(), Rights: sampleRights(),
		}},
		{QueueDrainedType, thread, QueueDrained{IDs: []string{"q-1", "q-2"}}},
		{QueueRemovedType, thread, QueueRemoved{ID: "q-1", ExecutionID: execID}},
		{QueueEditedType, thread, QueueEdited{ID: "q-1", Item: raw(`{"type":"message"}`), Rights: sampleRights()}},
		{QueueMovedType, thread, QueueMoved{ID: "q-1", Before: "q-2"}},
		{KeyClaimedType, thread, KeyClaimed{Key: "support/42", ThreadID: thread}},
		{KeyReleasedType, thread, KeyReleased{Key: "support/42", ThreadID: thread}},
		{FileWrittenType, thread, FileWritten{
			Path: "/a/ü.png", MimeType: "image/png", Size: 1 << 20, Digest: "e3b0c442", External: "s3://b/k", Width: 640, Height: 480, Metadata: raw(`{"alt":"x"}`), Since: 1_771_588_800_000_000,
		}},
		{FileDeletedType, thread, FileDeleted{Path: "/a/b.txt"}},
		{DirectoryCreatedType, thread, DirectoryCreated{Path: "/a"}},
		{DirectoryRemovedType, thread, DirectoryRemoved{Path: "/a"}},
		{EffectScheduledType, effectID, EffectScheduled{ID: effectID, Name: "remind", Args: raw(`{"in":"1h"}`), ScheduledAt: iso, EveryMs: 60000, Cron: "@hourly", Retries: 3, BackoffMs: 1000, Rights: sampleRights()}},
		{EffectCancelledType, effectID, EffectCancelled{Reason: "answered"}},
		{EffectStartedType, effectID, EffectStarted{Firing: 1, Attempt: 1, Claim: 7}},
		{EffectCompletedType, effectID, EffectCompleted{Firing: 1, Attempt: 1, Result: raw(`"sent"`), Next: iso}},
		{EffectFailedType, effectID, EffectFailed{Firing: 1, Attempt: 3, ErrorText: "no route", NotMade: true, Final: true, Next: iso}},
		{ApprovalRequestedType, execID, ApprovalRequested{Reason: ApprovalQuestion, CallID: "tc_1", StepID: stepID, Name: "pay", Arguments: raw(`{"eur":5}`), Question: "How much?", Answer: raw(`{"type":"object"}`)}},
		{ApprovalGrantedType, execID, ApprovalGranted{CallID: "tc_1", Arguments: raw(`{"eur":4}`), Comment: "less"}},
		{ApprovalResolvedType, "call_1", ApprovalResolved{CallID: "call_1", Result: raw(`{"ok":true}`)}},
		{ApprovalDeniedType, execID, ApprovalDenied{CallID: "tc_1", Comment: "no"}},
		{RunRequestedType, execID, RunRequested{RetryOf: "exe_failed",
			AgentID: "triage", Calls: []ToolCall{{CallID: "tc_1", Name: "pay", Arguments: raw(`{"eur":5}`), ItemID: itemID}},
			Parent: &Parent{ThreadID: otherID, ExecutionID: execID, CallID: "tc_0"}, Once: true,
			Handoff: &Handoff{ThreadID: otherID, AgentID: "billing", Key: "refund", Comment: "the refund"}, Settings: sampleSettings(), Rights: sampleRights(),
		}},
		{RunStoppedType, execID, RunStopped{Now: true, Discard: true, Abort: true, By: SideA, Reason: "the user left"}},
		{RunClaimedType, execID, RunClaimed{
			Worker: "w-1", Token: 2, Definitions: []DefinitionVersion{{Kind: "agent", Name: "triage", Version: 3}},
		}},
		{RunParkedType, execID, RunParked{Token: 2, Calls: []string{"tc_1"}, Unmade: []string{"tc_2"}}},
		{RunSuspendedType, execID, RunSuspended{Calls: []string{"tc_1"}}},
		{RunResumedType, execID, RunResumed{Calls: []string{"tc_1"}}},
		{RunAwaitedType, execID, RunAwaited{For: []WaitFor{{Kind: ToolWorker, Name: "refund", CallID: "call_1"}}, Until: iso}},
		{RunTurnedType, execID, RunTurned{Side: SideB}},
		{RunLimitedType, execID, RunLimited{Rights: sampleRights()}},
		{TraceRecordedType, execID, TraceRecorded{
			Kind: "span", ExecutionID: execID, SpanID: "spn_1", ParentID: stepID, Name: "model", Level: "info", Text: "called",
			StartedAt: iso, Usage: &Usage{Model: "m", InputTokens: 12}, Shown: &Shown{Items: []string{itemID}, Digest: "e3b0c442"},
			Data: raw(`{"n":12}`), SessionID: exampleSession,
		}},
		{DefinitionChangedType, "triage", DefinitionChanged{Kind: "agent", Name: "triage", Version: 2, Previous: 1, Digest: "d", Definition: raw(`{"model":"m"}`)}},
		{CommandRejectedType, thread, CommandRejected{
			Command: "thread.status", CommandID: cmdID, ThreadID: thread, Code: IllegalTransition, Message: "no", Details: raw(`{"from":"open"}`),
		}},
		{LifecycleDestroyedType, thread, LifecycleDestroyed{Reason: "expired", Life: 2, ContextID: ctxID, Listeners: []string{"shop"}}},
		{LifecycleArchivedType, thread, LifecycleArchived{
			Object: "acme/" + thread + "/7", Digest: strings.Repeat("a", 64), Commits: 3, Bytes: 900, FirstSeq: 2, LastSeq: 7, Chain: strings.Repeat("b", 64),
		}},
		{LifecycleDeletedType, thread, LifecycleDeleted{Purge: true}},
	}
}

// event returns the sample as an event with every attribute set.
func (s sample) event() Event {
	return Event{
		ID: EventID(tenant, thread, cmdID, 6), Type: s.of, Time: start, Subject: s.subject, Tenant: tenant, ThreadID: thread,
		Version: 7, CommandID: cmdID, CommandIndex: 2, Correlation: execID, Causation: EventID(tenant, thread, cmdID, 0),
		Actor: "user:zoë", TraceParent: traceCtx, Data: s.data,
	}
}

// stream returns data as the events of one command on the thread, in order.
func stream(list ...sample) []Event {
	out := make([]Event, len(list))
	for i, s := range list {
		out[i] = s.event()
		out[i].ID, out[i].Version = EventID(tenant, thread, cmdID, i), int64(i+1)
		out[i].CommandIndex = 0
	}
	return out
}

// turn returns the canonical turn of EK 14 as twelve events: about 6 KB.
func turn() []Event {
	text := func(kind, s string) JSON { return raw(`[{"type":"` + kind + `","text":"` + s + `"}]`) }
	return stream(
		sample{ThreadCreatedType, thread, ThreadCreated{ID: thread, Key: to("k"), Status: ThreadOpen, AgentID: "triage"}},
		sample{ContextCreatedType, ctxID, ContextCreated{ID: ctxID, Status: ContextOpen, Default: true, Content: raw("null")}},
		sample{ItemCreatedType, itemID, ItemCreated{ID: itemID, ContextID: ctxID, Type: Message, Role: User, Status: ItemStored, Content: text(InputText, "Where is my order?")}},
		sample{ThreadStatusChangedType, thread, ThreadStatusChanged{From: ThreadOpen, To: ThreadStreaming}},
		sample{ContextStatusChangedType, ctxID, ContextStatusChanged{From: ContextOpen, To: ContextStreaming}},
		sample{ExecutionCreatedType, execID, ExecutionCreated{ID: execID, ContextID: ctxID, TriggerItemID: itemID, ReactionItemID: replyID, Status: Executing}},
		sample{StepCreatedType, stepID, StepCreated{ID: stepID, ExecutionID: execID, EventID: replyID, Status: StepRunning}},
		sample{PartCreatedType, PartKey(stepID, 0), PartCreated{Key: PartKey(stepID, 0), StepID: stepID, Type: OutputText, Part: raw(`{"type":"output_text","text":"It left the house yesterday."}`)}},
		sample{ItemCreatedType, replyID, ItemCreated{ID: replyID, ContextID: ctxID, Index: 1, Type: Message, Role: Assistant, Status: ItemPending, Content: text(OutputText, "It left the house yesterday.")}},
		sample{StepStatusChangedType, stepID, StepStatusChanged{ExecutionID: execID, From: StepRunning, To: StepCompleted, ContinueLoop: to(false)}},
		sample{ItemStatusChangedType, replyID, ItemStatusChanged{From: ItemPending, To: ItemCompleted}},
		sample{ExecutionStatusChangedType, execID, ExecutionStatusChanged{From: Executing, To: ExecutionCompleted}},
	)
}

// commitOf encodes events as the first commit of their thread.
func commitOf(t testing.TB, list []Event) *Commit {
	t.Helper()
	c, err := NewCommit("", list)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reread decodes a commit's body under the names that the commit has.
func reread(c *Commit) (*Commit, error) {
	return DecodeCommit(c.Tenant, c.Thread, c.Seq, c.Version, c.Chain, c.Body)
}
