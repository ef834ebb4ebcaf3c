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
		events.CreateExecution{TriggerItemID: question},
		events.SetExecutionStatus{ExecutionID: execution, To: events.ExecutionFailed, ErrorText: "the model did not answer"},
		events.CreateStep{ExecutionID: execution},
		events.SetStepStatus{StepID: step, To: events.StepCompleted, ContinueLoop: to(false)},
		events.PutPart{StepID: step, Idx: to(events.Int(0)), Type: events.OutputText, Part: raw(`{"type":"output_text","text":"It was shipped today."}`)},
		events.ReactThread{Text: to("Where is my order?")},
		events.StopRun{Reason: "the user has what they need"},
		events.CancelRun{ExecutionID: execution},
		events.TurnRun{Side: events.SideB},
		events.GrantApproval{CallID: "call_7", Comment: "go ahead"},
		events.DenyApproval{CallID: "call_7", Comment: "too expensive"},
		events.QueueTool{Name: "find_order", Arguments: raw(`{"id":42}`)},
		events.AssignAgent{AgentID: "billing", Reason: "a question about an invoice"},
		events.ScheduleEffect{Name: "remind", Args: raw(`{"about":"order 42"}`), DelayMs: to(events.Int(1800000))},
		events.CancelEffect{EffectID: effect, Reason: "answered"},
	}
}

// queryExamples holds one example of what every query takes.
func queryExamples() []any {
	return []any{
		events.GetThread{ThreadID: "key:support/42", At: &events.At{Version: to(events.Int(7))}},
		events.ListThreads{Status: events.ThreadOpen, Limit: to(events.Int(20))},
		events.GetContext{ThreadID: thread},
		events.ListContexts{ThreadID: thread},
		events.GetItem{ItemID: question},
		events.ListItems{ThreadID: thread, Order: "desc", Limit: to(events.Int(20)), Fresh: events.Fresh{MinSeq: to(events.Int(1204))}},
		events.GetExecution{ExecutionID: execution},
		events.ListExecutions{ThreadID: thread},
		events.ListSteps{ExecutionID: execution},
		events.ListParts{StepID: step},
		events.ListEffects{ThreadID: thread, Name: "remind"},
		events.ListEvents{ThreadID: thread, FromVersion: to(events.Int(1)), Types: []string{"item.*"}},
		events.GetHistory{},
		events.ListHistory{FromSeq: to(events.Int(1204)), Limit: to(events.Int(100))},
		events.ListChunks{ThreadID: thread, ExecutionID: execution, FromIndex: to(events.Int(7))},
		events.CreateConsumer{Name: "mailer", Types: []string{"item.created"}},
		events.NextOfConsumer{Name: "mailer", WaitMs: to(events.Int(5000))},
		events.SettleConsumer{Name: "mailer", Token: "$JS.ACK.SKEIN_TIMELINE.acme=mailer.1.1204.1.1771588800000000000.0", As: events.SettledDone},
		events.DeleteConsumer{Name: "mailer"},
	}
}

// answers tells what each query answers.
func answers() map[string]any {
	return map[string]any{
		"thread.get": events.Thread{}, "thread.list": events.ThreadList{},
		"context.get": events.Context{}, "context.list": events.ContextList{},
		"item.get": events.Item{}, "item.list": events.ItemList{},
		"execution.get": events.Execution{}, "execution.list": events.ExecutionList{},
		"step.list": events.StepList{}, "part.list": events.PartList{},
		"event.list": events.EventList{}, "effect.list": events.EffectList{},
		"history.get": events.HistoryEnd{}, "history.list": events.HistoryList{}, "chunk.list": events.ChunkList{},
		"consumer.create": events.ConsumerRef{}, "consumer.next": events.Delivery{},
		"consumer.settle": events.ConsumerRef{}, "consumer.delete": events.ConsumerRef{},
	}
}
