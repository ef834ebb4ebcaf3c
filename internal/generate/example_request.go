package main

import "github.com/skein-threads/skein/events"

// commandExamples holds one example of what every command takes.
func commandExamples() []any {
	return []any{
		events.CreateThread{Key: "support/42", AgentID: "triage", UserID: "ada", Context: raw(`{"turns":0}`)},
		events.ResolveThread{Key: "support/42"},
		events.SetThreadStatus{To: events.ThreadStreaming},
		events.UpdateThread{Title: to("Order 42"), Archived: to(true)},
		events.FinishThread{ExecutionID: execution},
		events.DeleteThread{Purge: true},
		events.CommitThread{Commands: []events.SubCommand{
			{Command: "item.create", Data: raw(`{"item":{"id":"itm_u1","type":"message","role":"user","content":[{"type":"input_text","text":"Where is my order?"}]}}`)},
			{Command: "execution.create", Data: raw(`{"triggerItemId":"itm_u1"}`)},
		}},
		events.CreateContext{Key: "cart", Content: raw(`{"items":[]}`)},
		events.ResolveContext{Key: "cart"},
		events.SetContextStatus{To: events.ContextStreaming},
		events.SetContext{Patch: raw(`{"turns":1}`)},
		events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Channel: events.Web, Content: part("Where is my order?")}},
		events.SetItemStatus{ItemID: answer, To: events.ItemCompleted},
		events.EditMessage{ItemID: question, Content: part("Where is order 42?")},
		events.DeleteMessage{ItemID: question},
		events.AddMessage{
			Role: events.FromAssistant, ToolCalls: `[{"id":"tc_1","type":"function","function":{"name":"find_order","arguments":"{\"order\":42}"}}]`,
			Status: events.MessagePending,
		},
		events.UpdateMessage{MessageID: answer, MessageUpdates: events.MessageUpdates{Content: to("It was shipped today."), Status: events.MessageCompleted}},
		events.CreateExecution{TriggerItemID: question},
		events.SetExecutionStatus{ExecutionID: execution, To: events.ExecutionFailed, ErrorText: "the model did not answer"},
		events.CreateStep{ExecutionID: execution},
		events.SetStepStatus{StepID: step, To: events.StepCompleted, ContinueLoop: to(false)},
		events.PutPart{StepID: step, Idx: to(int64(0)), Type: events.OutputText, Part: raw(`{"type":"output_text","text":"It was shipped today."}`)},
		events.ReactThread{Text: to("Where is my order?")},
		events.StopRun{Reason: "the user has what they need"},
		events.CancelRun{ExecutionID: execution},
		events.RetryRun{},
		events.TurnRun{Side: events.SideB},
		events.GrantApproval{CallID: "call_7", Comment: "go ahead"},
		events.ResolveApproval{CallID: "call_7", Result: raw(`{"refunded":true}`)},
		events.DenyApproval{CallID: "call_7", Comment: "too expensive"},
		events.QueueTool{Name: "find_order", Arguments: raw(`{"id":42}`)},
		events.RemoveQueued{QueuedID: "q-1"},
		events.EditQueued{QueuedID: "q-1", Item: events.NewItem{Type: events.Message, Role: events.User, Content: part("And the receipt?")}},
		events.MoveQueued{QueuedID: "q-2", Before: "q-1"},
		events.AssignAgent{AgentID: "billing", Reason: "a question about an invoice"},
		events.ScheduleEffect{Name: "remind", Args: raw(`{"about":"order 42"}`), DelayMs: to(int64(1800000))},
		events.CancelEffect{EffectID: effect, Reason: "answered"},
		events.ApplyDefinitions{
			Definitions: []events.NewDefinition{
				{Kind: events.ModelKind, Definition: raw(`{"name":"fast","model":"gpt-5-mini"}`)},
				{Kind: events.AgentKind, Definition: raw(`{"name":"triage","type":"ai_human","model":"fast"}`)},
			},
			Remove: []events.DefinitionRef{{Kind: events.PromptKind, Name: "old"}},
		},
		events.RecordTrace{Kind: events.TraceLog, ExecutionID: execution, SpanID: step, Level: events.LogWarn, Text: "the shop answers slowly", Data: raw(`{"ms":1840}`)},
		events.WriteFile{Path: "/notes/order.txt", Content: to("SXQgd2FzIHNoaXBwZWQgdG9kYXku"), MimeType: "text/plain"},
		events.DeleteFile{Path: "/notes/order.txt"},
		events.CreateDirectory{Path: "/invoices/2026"},
		events.RemoveDirectory{Path: "/invoices/2026"},
	}
}

// queryExamples holds one example of what every query takes.
func queryExamples() []any {
	return []any{
		events.GetThread{ThreadID: "key:support/42", At: &events.At{Version: to(int64(7))}},
		events.ListThreads{Status: events.ThreadOpen, Limit: to(int64(20))},
		events.GetContext{ThreadID: thread},
		events.ListContexts{ThreadID: thread},
		events.GetItem{ItemID: question},
		events.ListItems{ThreadID: thread, Order: "desc", Limit: to(int64(20)), Fresh: events.Fresh{MinSeq: to(int64(1204))}},
		events.GetMessage{ThreadID: thread, MessageID: question},
		events.ListMessages{ThreadID: thread, GetMessagesOptions: events.GetMessagesOptions{Limit: to(int64(50)), IncludeSilent: true}},
		events.GetExecution{ExecutionID: execution},
		events.ListExecutions{ThreadID: thread},
		events.ListSteps{ExecutionID: execution},
		events.ListParts{StepID: step},
		events.ListEffects{ThreadID: thread, Name: "remind"},
		events.GetDefinition{Kind: events.AgentKind, Name: "triage"},
		events.ListDefinitions{Kind: events.AgentKind, Limit: to(int64(20))},
		events.GetAgent{Name: "triage"},
		events.ListLogs{ThreadID: thread, GetLogsOptions: events.GetLogsOptions{Level: events.LogError, FlowID: execution}},
		events.ListEvents{ThreadID: thread, FromVersion: to(int64(1)), Types: []string{"item.*"}},
		events.GetHistory{},
		events.ListHistory{FromSeq: to(int64(1204)), Limit: to(int64(100))},
		events.ListChunks{ThreadID: thread, ExecutionID: execution, FromIndex: to(int64(7))},
		events.CreateConsumer{Name: "mailer", Types: []string{"item.created"}},
		events.NextOfConsumer{Name: "mailer", WaitMs: to(int64(5000))},
		events.SettleConsumer{Name: "mailer", Token: "$JS.ACK.SKEIN_TIMELINE.acme=mailer.1.1204.1.1771588800000000000.0", As: events.SettledDone},
		events.DeleteConsumer{Name: "mailer"},
		events.ListRuns{Status: events.Executing, Limit: to(int64(20))},
		events.ListApprovals{AgentID: "triage"},
		events.ListQueue{ThreadID: thread},
		events.StatFile{ThreadID: thread, Path: "/invoices/42.pdf"},
		events.ListFiles{ThreadID: thread, Path: "/invoices"},
		events.CountFiles{ThreadID: thread},
		events.FindFiles{ThreadID: thread, Pattern: "**/*.pdf"},
		events.GrepFiles{ThreadID: thread, Pattern: `shipped|sent`, Glob: "/notes/**"},
		events.GetThumbnail{ThreadID: thread, Path: "/photos/parcel.jpg", Size: to(int64(128))},
	}
}

// answers tells what each query answers.
func answers() map[string]any {
	return map[string]any{
		"thread.get": events.Thread{}, "thread.list": events.ThreadList{},
		"context.get": events.Context{}, "context.list": events.ContextList{},
		"item.get": events.Item{}, "item.list": events.ItemList{},
		"message.get": events.ThreadMessage{}, "message.list": events.MessageList{}, "log.list": events.LogList{},
		"execution.get": events.Execution{}, "execution.list": events.ExecutionList{},
		"step.list": events.StepList{}, "part.list": events.PartList{},
		"definition.get": events.Definition{}, "definition.list": events.DefinitionList{},
		"agent.get": events.Agent{}, "event.list": events.EventList{}, "effect.list": events.EffectList{},
		"history.get": events.HistoryEnd{}, "history.list": events.HistoryList{}, "chunk.list": events.ChunkList{},
		"consumer.create": events.ConsumerRef{}, "consumer.next": events.Delivery{},
		"consumer.settle": events.ConsumerRef{}, "consumer.delete": events.ConsumerRef{},
		"run.list": events.RunList{}, "approval.list": events.ApprovalList{},
		"queue.list": events.QueueList{},
		"file.stat":  events.FileRecord{}, "file.list": events.FileList{}, "file.stats": events.FileStats{},
		"file.find": events.FindList{}, "file.grep": events.GrepList{}, "file.thumbnail": events.Thumbnail{},
	}
}
