package main

import "github.com/skein-threads/skein/events"

// eventExamples holds one example of the data of every event.
func eventExamples() []any {
	return []any{
		events.ThreadCreated{ID: thread, Key: to("support/42"), Status: events.ThreadOpen, AgentID: "triage", UserID: "ada", Title: "Where is my order?"},
		events.ThreadResolved{Key: "support/42", Created: true},
		events.ThreadStatusChanged{From: events.ThreadOpen, To: events.ThreadStreaming},
		events.ThreadFinished{ExecutionID: execution, Status: events.ExecutionCompleted},

		events.ContextCreated{ID: contextID, Status: events.ContextOpen, Default: true, Content: raw(`{"turns":0}`)},
		events.ContextResolved{Created: false},
		events.ContextStatusChanged{From: events.ContextOpen, To: events.ContextStreaming},
		events.StateChanged{Patch: raw(`{"turns":1}`)},
		events.StateClosed{Reason: "expired"},

		events.ItemCreated{ID: question, ContextID: contextID, Type: events.Message, Role: events.User, Status: events.ItemStored, Channel: events.Web, Content: part("Where is my order?")},
		events.ItemStatusChanged{From: events.ItemPending, To: events.ItemCompleted},
		events.ExecutionCreated{ID: execution, ContextID: contextID, TriggerItemID: question, ReactionItemID: answer, Status: events.Executing},
		events.ExecutionStatusChanged{From: events.Executing, To: events.ExecutionCompleted},
		events.StepCreated{ID: step, ExecutionID: execution, EventID: answer, Status: events.StepRunning},
		events.StepStatusChanged{
			ExecutionID: execution, From: events.StepRunning, To: events.StepCompleted,
			ToolCalls:            raw(`[{"toolCallId":"tc_1","name":"find_order","input":{"order":42}}]`),
			ToolExecutionResults: raw(`[{"toolCallId":"tc_1","output":{"status":"shipped"}}]`),
			ContinueLoop:         to(true),
		},
		events.PartCreated{Key: events.PartKey(step, 0), StepID: step, Type: "tool-find_order", Part: raw(`{"type":"tool-find_order","toolCallId":"tc_1","input":{"order":42}}`)},
		events.PartUpdated{Key: events.PartKey(step, 0), StepID: step, Type: "tool-find_order", Part: raw(`{"type":"tool-find_order","toolCallId":"tc_1","state":"output-available","output":{"status":"shipped"}}`)},
		events.ChunkEmitted{ExecutionID: execution, Index: 7, StepID: step, Attempt: 1, Type: events.ChunkToolOutput, Data: raw(`{"toolCallId":"tc_1","output":{"status":"shipped"}}`)},

		events.MessageEdited{Content: part("Where is order 42?")},
		events.MessageDeleted{ContextID: contextID, Type: events.Message, Index: 3},
		events.HistoryTruncated{FromIndex: 4},
		events.ProfileChanged{Title: to("Order 42"), Archived: to(true)},
		events.AgentAssigned{AgentID: "billing", From: "triage", Reason: "an invoice"},
		events.SkillActivated{Name: "refunds"},
		events.RelationshipAdded{ThreadID: child, Type: "fork", Role: "parent", MessageIndex: to(int64(3)), ItemID: answer},
		events.RelationshipRemoved{ThreadID: child, Type: "fork", Role: "parent"},
		events.QueuePushed{ID: "q-1", Item: raw(`{"type":"message","role":"user","content":[{"type":"input_text","text":"And the invoice?"}]}`)},
		events.QueueDrained{IDs: []string{"q-1"}},
		events.QueueRemoved{ID: "q-1", ExecutionID: execution},
		events.QueueEdited{ID: "q-1", Item: raw(`{"type":"message","role":"user","content":[{"type":"input_text","text":"And the receipt?"}]}`)},
		events.QueueMoved{ID: "q-2", Before: "q-1"},
		events.KeyClaimed{Key: "support/42", ThreadID: thread},
		events.KeyReleased{Key: "support/42", ThreadID: thread},

		events.FileWritten{Path: "/invoices/42.pdf", MimeType: "application/pdf", Size: 18231, Digest: "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"},
		events.FileDeleted{Path: "/invoices/42.pdf"},
		events.DirectoryCreated{Path: "/invoices"},
		events.DirectoryRemoved{Path: "/invoices"},

		events.EffectScheduled{ID: effect, Name: "remind", Args: raw(`{"about":"order 42"}`), ScheduledAt: moment, Retries: 3, BackoffMs: 1000},
		events.EffectCancelled{Reason: "answered"},
		events.EffectStarted{Firing: 1, Attempt: 1, Claim: 77},
		events.EffectCompleted{Firing: 1, Attempt: 2},
		events.EffectFailed{Firing: 1, Attempt: 1, ErrorText: "the mail server did not answer", Next: "2026-02-20T12:00:01.000Z"},
		events.ApprovalRequested{CallID: "tc_1", StepID: step, Name: "refund", Arguments: raw(`{"order":42}`)},
		events.ApprovalGranted{CallID: "tc_1", Comment: "fine"},
		events.ApprovalResolved{CallID: "tc_1", Result: raw(`{"refunded":true}`)},
		events.ApprovalDenied{CallID: "tc_1", Comment: "too much"},
		events.RunRequested{AgentID: "triage"},
		events.RunParked{Token: 1, Calls: []string{"call_7"}},
		events.RunSuspended{Calls: []string{"call_7"}},
		events.RunResumed{Calls: []string{"call_7"}},
		events.RunAwaited{For: []events.WaitFor{{Kind: events.ReactorWorker, Name: "shout"}}, Until: moment},
		events.RunTurned{Side: events.SideB},
		events.RunStopped{Abort: true, Reason: "asked to"},
		events.RunClaimed{
			Worker: "worker-1", Token: 1, Definitions: []events.DefinitionVersion{{Kind: "agent", Name: "triage", Version: 3}},
		},
		events.TraceRecorded{
			Kind: "span", ExecutionID: execution, SpanID: "spn_1", ParentID: step, Name: "reactor", StartedAt: "2026-02-20T12:00:00.123456Z",
			Usage: &events.Usage{Model: "gpt-5", InputTokens: 812, OutputTokens: 96, TotalTokens: 908, LatencyMs: 1240},
			Shown: &events.Shown{Items: []string{question}},
		},

		events.DefinitionChanged{
			Kind: events.PromptKind, Name: "triage", Version: 2, Previous: 1,
			Digest:     events.DefinitionDigest(raw(`{"name":"triage","text":"You help with orders."}`)),
			Definition: raw(`{"name":"triage","text":"You help with orders."}`),
		},
		events.CommandRejected{Command: "thread.status", CommandID: command, ThreadID: thread, Code: events.IllegalTransition, Message: "thread is open and cannot become closed; allowed: streaming"},
		events.LifecycleDestroyed{Reason: "expired"},
		events.LifecycleArchived{
			Object: tenant + "/" + thread + "/4711", Digest: "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
			Commits: 12, Bytes: 9313, FirstSeq: 4688, LastSeq: 4711, Chain: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
		},
		events.LifecycleDeleted{Purge: true},
	}
}
