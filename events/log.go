package events

// LogLevel is the severity of a log line.
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// Enum lists the levels.
func (LogLevel) Enum() []string {
	return []string{string(LogDebug), string(LogInfo), string(LogWarn), string(LogError)}
}

// Log is a log line of a thread: a trace event of kind log, in the form of Standard Agents.
type Log struct {
	ID        string   `json:"id" schema:"required" doc:"The event's id."`
	Level     LogLevel `json:"level" schema:"required" doc:"The level; info if absent."`
	Message   string   `json:"message" schema:"required" doc:"The line."`
	Data      JSON     `json:"data" schema:"required" doc:"What else was recorded."`
	FlowID    *string  `json:"flowId" schema:"required,nullable" doc:"The execution that it is part of."`
	Step      *string  `json:"step" schema:"required,nullable" doc:"The step, or other span, that it is part of."`
	CreatedAt int64    `json:"createdAt" schema:"required,minimum=0" doc:"When, in microseconds since the epoch."`
}

// LogOf returns a trace event as a log line, nil if it is none.
func LogOf(t *TraceEvent) *Log {
	if t.Kind != string(TraceLog) {
		return nil
	}
	l := &Log{
		ID: t.ID, Level: LogLevel(t.Level), Message: t.Text, Data: t.Data,
		FlowID: textOrNil(t.RunID), Step: textOrNil(t.SpanID), CreatedAt: t.AtMicros,
	}
	if l.Level == "" {
		l.Level = LogInfo
	}
	if len(l.Data) == 0 {
		l.Data = JSON("null")
	}
	return l
}

// RecordTrace records something about a run or the thread: a log line, the usage of a model, a
// span. It is not part of the conversation.
type RecordTrace struct {
	Kind        TraceKind `json:"kind" schema:"required" doc:"What is recorded."`
	ExecutionID string    `json:"executionId,omitzero" schema:"pattern=id" doc:"The run that it is part of; a span needs it."`
	SessionID   string    `json:"sessionId,omitzero" schema:"pattern=session" doc:"The session that it is part of; if absent, the run's."`
	SpanID      string    `json:"spanId,omitzero" schema:"pattern=id" doc:"The span that it is part of; of a span, its own id, which it needs."`
	ParentID    string    `json:"parentId,omitzero" schema:"pattern=id" doc:"The parent span."`
	Name        string    `json:"name,omitzero" schema:"maxLength=256" doc:"What was done."`
	Level       LogLevel  `json:"level,omitzero" doc:"Of a log line; info if absent."`
	Text        string    `json:"text,omitzero" schema:"maxLength=65536" doc:"The log line; a log needs it."`
	StartedAt   string    `json:"startedAt,omitzero" schema:"pattern=time" doc:"When a span began; it ends now."`
	Data        JSON      `json:"data,omitzero" doc:"What else is recorded."`
}

// Check validates what spans more than one field.
func (r RecordTrace) Check() error {
	switch {
	case r.Kind == TraceLog && r.Text == "":
		return Invalid("/text", "a log line has a text")
	case r.Kind != TraceLog && r.Level != "":
		return Invalid("/level", "only a log line has a level")
	case r.Kind == TraceSpanKind && (r.SpanID == "" || r.ExecutionID == ""):
		return Invalid("/spanId", "a span has an id, and an execution that it is part of")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (RecordTrace) Constraint() string {
	kind := func(k string, then string) string {
		return `{"if":{"properties":{"kind":{"const":"` + k + `"}},"required":["kind"]},"then":` + then + `}`
	}
	const noLevel = `{"properties":{"level":{"enum":["",null]}}}`
	return `{"allOf":[` +
		kind("log", `{"required":["text"],"properties":{"text":{"type":"string","minLength":1}}}`) + `,` +
		kind("usage", noLevel) + `,` + kind("span", noLevel) + `,` +
		kind("span", `{"required":["spanId","executionId"],"properties":{"spanId":{"type":"string","minLength":1},"executionId":{"type":"string","minLength":1}}}`) + `]}`
}

func traceCommands() []Command {
	return []Command{command("trace.record", "Records a log line, a model's usage or a span.",
		RecordTrace{Kind: TraceLog, ExecutionID: exampleExecution, SpanID: exampleStep, Level: LogWarn, Text: "the shop answers slowly", Data: JSON(`{"ms":1840}`)}, TraceRecordedType)}
}

// GetLogsOptions selects log lines. The zero value selects all, newest first.
type GetLogsOptions struct {
	Limit  *int64   `json:"limit,omitzero" schema:"minimum=0" doc:"The largest number to return; no limit if absent."`
	Offset *int64   `json:"offset,omitzero" schema:"minimum=0" doc:"How many to skip; 0 if absent."`
	Order  Order    `json:"order,omitzero" doc:"desc: newest first, the default."`
	Level  LogLevel `json:"level,omitzero" doc:"Only lines of this level."`
	FlowID string   `json:"flowId,omitzero" schema:"pattern=id" doc:"Only lines of this execution."`
}

// ListLogs returns a thread's log lines.
type ListLogs struct {
	ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
	GetLogsOptions
	Fresh
}

// LogList is a page of a thread's log lines. HasMore reports that more match than fit in the
// reply.
type LogList struct {
	Logs    []Log `json:"logs" schema:"required" doc:"The lines."`
	HasMore bool  `json:"hasMore" schema:"required" doc:"More lines match after these."`
}
