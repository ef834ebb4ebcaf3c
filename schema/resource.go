package schema

import "github.com/skein-threads/skein/events"

// Resource is a document with a JSON Schema of its own.
type Resource struct {
	Name  string
	Doc   string
	Asked bool // it comes from outside, so that unknown fields are refused

	new func() any
}

// New gives a zero value of the resource's Go type.
func (r Resource) New() any { return r.new() }

func resource[T any](name, doc string) Resource {
	return Resource{Name: name, Doc: doc, new: func() any { return *new(T) }}
}

// Resources lists the documents, in a fixed order: those of the read models,
// the answers of queries, and the bodies of commands and their replies.
func Resources() []Resource {
	request := resource[events.Request]("request", "The body of a command.")
	request.Asked = true
	return []Resource{
		resource[events.Thread]("thread", "A thread."),
		resource[events.Context]("context", "A context: typed state of a thread."),
		resource[events.Item]("item", "An item of a thread."),
		resource[events.Execution]("execution", "An execution: one run of an agent."),
		resource[events.Step]("step", "A step: one call of the reactor and its tools."),
		resource[events.Part]("part", "A part: one piece of a step's output."),
		resource[events.TraceRun]("trace_run", "A run: what is traced of one execution."),
		resource[events.TraceSpan]("trace_span", "A span: what is traced of one step or call."),
		resource[events.TraceEvent]("trace_event", "One thing that was recorded of a run."),
		resource[events.Definition]("definition", "A definition of a tenant: a model, a prompt, a tool or an agent."),
		resource[events.ThreadList]("thread_list", "A page of threads."),
		resource[events.ContextList]("context_list", "A thread's contexts."),
		resource[events.ItemList]("item_list", "A page of items."),
		resource[events.ExecutionList]("execution_list", "A thread's executions."),
		resource[events.StepList]("step_list", "An execution's steps."),
		resource[events.PartList]("part_list", "A step's parts."),
		resource[events.DefinitionList]("definition_list", "A page of definitions."),
		resource[events.Agent]("agent", "What is known of an agent."),
		resource[events.EventList]("event_list", "A part of a thread's history."),
		resource[events.ScheduledEffect]("effect", "An effect that has not ended."),
		resource[events.RunList]("run_list", "A page of a tenant's runs."),
		resource[events.ApprovalList]("approval_list", "A page of a tenant's requests for approvals."),
		resource[events.QueueList]("queue_list", "What waits for a thread's agent."),
		resource[events.EffectList]("effect_list", "A thread's pending effects."),
		resource[events.HistoryEnd]("history_end", "The end of the log."),
		resource[events.HistoryList]("history_list", "A part of the log: a tenant's events in their order."),
		resource[events.ChunkList]("chunk_list", "A part of the chunks of an execution."),
		resource[events.Delivery]("delivery", "An event that a consumer has handed out, or that none came."),
		resource[events.ConsumerRef]("consumer", "A consumer's name."),
		resource[events.ThreadMessage]("message", "A message: items in the words of Standard Agents."),
		resource[events.MessageList]("message_list", "A page of messages."),
		resource[events.Log]("log", "A log line: a trace event in the words of Standard Agents."),
		resource[events.LogList]("log_list", "A thread's log lines."),
		resource[events.FileRecord]("file", "A file or directory of a thread."),
		resource[events.FileList]("file_list", "What a directory holds."),
		resource[events.FileStats]("file_stats", "Counts of a thread's files."),
		resource[events.FindList]("find_list", "Paths that match a glob."),
		resource[events.GrepList]("grep_list", "Lines that match a pattern."),
		resource[events.Thumbnail]("thumbnail", "A thumbnail of an image."),
		request,
		resource[events.Reply]("reply", "The body of the answer to a command that was done."),
	}
}
