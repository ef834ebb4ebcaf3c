package chat

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
)

// Run says which run a Renderer renders.
type Run struct {
	ThreadID, Key, AgentID string
	ExecutionID            string
	MessageID              string // of the item with which the message begins
	Later                  bool   // that is not the run's first one
}

// Renderer turns the events and chunks of one run into chunks of a UI message. It is pure: what
// it returns depends only on what it was given. Events are given in their order, and so are
// chunks; how the two interleave changes when something is shown, and not what the message is
// in the end, because the parts that the log records decide.
type Renderer struct {
	run   Run
	steps map[string]*step
	open  *step // the last one, until it is closed
	calls map[string]*call

	keeps    bool            // the client cannot take back what it shows of a step
	before   bool            // the steps so far write an earlier message, of which nothing is shown
	started  bool            // the beginning of the message was shown
	known    map[string]bool // calls that people have allowed already
	persons  map[string]bool // tools that ask a person
	unheard  map[string]bool // calls that the client has answered, of which no event says so yet
	quiet    bool            // of none of them, so that nothing is shown
	finished *events.ThreadFinished
	failure  string // the errorText of the execution
	aborted  *events.RunStopped
	waiting  bool
	ended    bool
	removed  bool
}

// call is a call of a tool.
type call struct {
	id, name string
	step     *step
	started  bool // tool-input-start was shown
	shown    bool // its input was shown
	waits    bool // for a person
	question bool // it is a question to a person
	answered bool // its output was shown, or that it was denied
	input    events.JSON
}

// NewRenderer returns a Renderer of a run.
func NewRenderer(run Run) *Renderer {
	return &Renderer{run: run, before: run.Later, steps: map[string]*step{}, calls: map[string]*call{}}
}

// After makes the Renderer continue a message that the client has up to where these calls wait,
// which it has answered: it shows nothing until an event says so of one of them, and a run that
// still waits for another one does not end the stream.
func (r *Renderer) After(calls []string) {
	r.quiet, r.unheard = true, map[string]bool{}
	for _, id := range calls {
		r.unheard[id] = true
	}
}

// Keep makes the Renderer end what it shows of a step that says something else, and not take it
// back: clients of version 6 of the AI SDK break off at reset-step, and nothing that they send tells
// them from others.
func (r *Renderer) Keep() { r.keeps = true }

// Persons names the tools that ask a person, as far as they are known: a client answers a call of one
// as it does calls that it makes itself.
func (r *Renderer) Persons(tools map[string]bool) { r.persons = tools }

// Granted makes the Renderer show that these calls are made, and not that people are asked about
// them: they have been granted since.
func (r *Renderer) Granted(calls map[string]bool) { r.known = calls }

// Start returns the beginning of the message. It is nil if another message of the run may still be
// written: then it comes with the first event or chunk of the message.
func (r *Renderer) Start() []Chunk {
	if r.before && !r.quiet {
		return nil
	}
	return r.start()
}

func (r *Renderer) start() []Chunk {
	r.started = true
	return append([]Chunk{{Type: typeStart, MessageID: r.run.MessageID}}, r.run.about(events.Executing)...)
}

// about returns the data parts with which a message of the run begins.
func (r *Run) about(status events.ExecutionStatus) []Chunk {
	thread := map[string]string{"threadId": r.ThreadID}
	if r.Key != "" {
		thread["key"] = r.Key
	}
	return []Chunk{dataChunk(dataThread, r.ThreadID, thread), r.execution(status)}
}

// execution returns the data part of the execution.
func (r *Run) execution(status events.ExecutionStatus) Chunk {
	data := map[string]string{"executionId": r.ExecutionID, "status": string(status)}
	if r.AgentID != "" {
		data["agentId"] = r.AgentID
	}
	return dataChunk(dataExecution, r.ExecutionID, data)
}

// Ended reports whether the run has ended, and everything was shown.
func (r *Renderer) Ended() bool { return r.ended }

// Waiting reports whether the run waits for people only, as far as its events were given. If no
// more are known, Pause ends the stream.
func (r *Renderer) Waiting() bool { return r.waiting }

// Pause ends the stream of a run that is Waiting. The message can be continued when people have
// answered.
func (r *Renderer) Pause() []Chunk {
	var out []Chunk
	if r.open != nil {
		out = r.close(r.open, string(events.StepRunning))
	}
	return append(out, Chunk{Type: typeFinish, FinishReason: events.FinishToolCalls})
}

// Removed reports whether the run will not begin: its message was removed from the queue.
func (r *Renderer) Removed() bool { return r.removed }

// EventTypes are the types of the events that a Renderer uses.
func EventTypes() []string {
	var names []string
	for _, t := range []events.Type{
		events.ExecutionCreatedType, events.ExecutionStatusChangedType, events.ThreadFinishedType, events.LifecycleDeletedType,
		events.RunRequestedType, events.RunStoppedType, events.RunParkedType, events.QueueRemovedType,
		events.StepCreatedType, events.StepStatusChangedType, events.PartCreatedType, events.PartUpdatedType,
		events.ApprovalRequestedType, events.ApprovalGrantedType, events.ApprovalDeniedType, events.ApprovalResolvedType,
	} {
		names = append(names, string(t))
	}
	return names
}

// Event takes an event of the thread. Those of other runs are skipped.
func (r *Renderer) Event(e *events.Event) []Chunk {
	if r.ended {
		return nil
	}
	if answered := answeredCall(e); r.unheard[answered] {
		r.quiet = false
		delete(r.unheard, answered)
	}
	out := r.event(e)
	if r.quiet {
		r.waiting = false
	}
	if (r.quiet || r.before) && !r.ended {
		return nil
	}
	return out
}

func (r *Renderer) event(e *events.Event) []Chunk {
	switch d := e.Data.(type) {
	case events.StepCreated:
		return r.stepCreated(d)
	case events.StepStatusChanged:
		if s := r.steps[e.Subject]; s != nil {
			s.settled = true
			return append(r.strays(s), r.close(s, string(d.To))...)
		}
	case events.PartCreated:
		return r.part(d.StepID, d.Key, attachment.Served(d.Part, r.run.ThreadID))
	case events.PartUpdated:
		return r.part(d.StepID, d.Key, attachment.Served(d.Part, r.run.ThreadID))
	case events.ApprovalRequested:
		return r.approvalRequested(d)
	case events.ApprovalGranted:
		return r.approvalGranted(d)
	case events.ApprovalDenied:
		return r.approvalDenied(d)
	case events.ApprovalResolved:
		r.approvalResolved(d)
	case events.RunParked:
		if e.Subject == r.run.ExecutionID {
			r.parked(d)
		}
	case events.RunRequested:
		if e.Subject == r.run.ExecutionID {
			r.waiting = false
		}
	default:
		return r.ending(e)
	}
	return nil
}

// ending takes the events that end a run.
func (r *Renderer) ending(e *events.Event) []Chunk {
	switch d := e.Data.(type) {
	case events.ExecutionStatusChanged:
		if e.Subject == r.run.ExecutionID {
			r.failure = d.ErrorText
		}
	case events.RunStopped:
		if e.Subject == r.run.ExecutionID && d.Abort {
			r.aborted = &d
		}
	case events.ThreadFinished:
		if d.ExecutionID == r.run.ExecutionID {
			r.finished = &d
		}
	case events.QueueRemoved:
		if d.ExecutionID == r.run.ExecutionID {
			r.ended, r.removed = true, true
			return []Chunk{{Type: typeAbort, Reason: "the message was removed from the queue"}}
		}
	case events.LifecycleDeleted:
		r.ended = true
		return []Chunk{{Type: typeError, ErrorText: "the chat was deleted"}, {Type: typeFinish, FinishReason: events.FinishError}}
	}
	return nil
}

// answeredCall returns the call that an event says was answered by a person, "" if none.
func answeredCall(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.ApprovalGranted:
		return d.CallID
	case events.ApprovalDenied:
		return d.CallID
	case events.ApprovalResolved:
		return d.CallID
	}
	return ""
}

// Takes reports whether a chunk can be taken now. One that cannot belongs to what an event has
// yet to tell: take it again after the next event.
func (r *Renderer) Takes(c *events.ChunkEmitted) bool {
	switch {
	case r.ended:
		return true
	case c.Type == events.ChunkFinish:
		return r.finished != nil
	case c.StepID == "":
		return true
	}
	return r.steps[c.StepID] != nil || r.finished != nil
}

// Chunk takes a chunk of the run. Deltas of a step whose parts are known show nothing new.
func (r *Renderer) Chunk(c *events.ChunkEmitted) []Chunk {
	if r.ended || c.ExecutionID != r.run.ExecutionID {
		return nil
	}
	if c.Type == events.ChunkFinish {
		return r.finish(c.Data)
	}
	s := r.steps[c.StepID]
	if s == nil || s.settled || s != r.open {
		return nil
	}
	served := *c
	served.Data = attachment.Served(c.Data, r.run.ThreadID)
	out := s.chunk(r, &served)
	if r.quiet || r.before {
		return nil
	}
	return out
}

// finish ends the message.
func (r *Renderer) finish(data events.JSON) []Chunk {
	var how events.Finish
	if json.Unmarshal(data, &how) != nil || how.Reason == "" {
		how.Reason = events.FinishOther
	}
	var out []Chunk
	if r.open != nil {
		out = append(r.strays(r.open), r.close(r.open, string(r.finished.Status))...)
	}
	if r.ended, r.waiting = true, false; !r.started {
		out = r.start()
	}
	out = append(out, r.run.execution(r.finished.Status))
	switch {
	case r.aborted != nil:
		reason := r.aborted.Reason
		if reason == "" {
			reason = "the run was cancelled"
		}
		return append(out, Chunk{Type: typeAbort, Reason: reason}, Chunk{Type: typeFinish, FinishReason: events.FinishOther})
	case r.finished.Status == events.ExecutionFailed:
		for _, text := range []string{r.failure, how.ErrorText, "the run failed"} {
			if text != "" {
				return append(out, Chunk{Type: typeError, ErrorText: text}, Chunk{Type: typeFinish, FinishReason: events.FinishError})
			}
		}
	}
	return append(out, Chunk{Type: typeFinish, FinishReason: events.FinishReason(how.Reason)})
}

// parked notes whether the run waits for people only.
func (r *Renderer) parked(d events.RunParked) {
	r.waiting = len(d.Calls) > 0 && len(d.Unmade) == 0 && !slices.ContainsFunc(d.Calls, func(id string) bool {
		c := r.calls[id]
		return c == nil || !c.waits || r.unheard[id]
	})
}

// approvalRequested shows that a call waits for a person: for an approval, or, if it is a
// question, for its output, as calls do that a client makes itself.
func (r *Renderer) approvalRequested(d events.ApprovalRequested) []Chunk {
	c := r.calls[d.CallID]
	if c == nil || !c.shown {
		return nil
	}
	c.waits, c.question = true, d.Reason == events.ApprovalQuestion
	if r.known[c.id] && !c.question {
		return nil
	}
	switch d.Reason {
	case events.ApprovalQuestion:
		out := []Chunk{questionChunk(c.id, d.Question, d.Answer)}
		if !r.persons[c.name] { // it was shown as one that the server makes
			out = slices.Insert(out, 0, Chunk{Type: typeToolInput, ToolCallID: c.id, ToolName: c.name, Input: some(d.Arguments), ProviderExecuted: new(false)})
		}
		return out
	case events.ApprovalMayHaveRun:
		return []Chunk{{Type: typeApprovalRequest, ApprovalID: c.id, ToolCallID: c.id, Reason: "a worker that was lost may have made this call"}}
	}
	return []Chunk{{Type: typeApprovalRequest, ApprovalID: c.id, ToolCallID: c.id}}
}

// approvalGranted shows the arguments that a person has changed. What is shown of a call that is
// made as it was asked for stays until its outcome.
func (r *Renderer) approvalGranted(d events.ApprovalGranted) []Chunk {
	c := r.calls[d.CallID]
	if c == nil || !c.waits {
		return nil
	}
	if c.waits = false; d.Arguments == nil {
		return nil
	}
	c.input = d.Arguments
	return []Chunk{{Type: typeToolInput, ToolCallID: c.id, ToolName: c.name, Input: some(c.input), ProviderExecuted: new(true)}}
}

func (r *Renderer) approvalDenied(d events.ApprovalDenied) []Chunk {
	c := r.calls[d.CallID]
	if c == nil || !c.waits {
		return nil
	}
	c.waits, c.answered = false, true
	if c.question {
		return []Chunk{{Type: typeToolError, ToolCallID: c.id, ErrorText: "the call was denied"}}
	}
	return []Chunk{{Type: typeToolDenied, ToolCallID: c.id}}
}

func (r *Renderer) approvalResolved(d events.ApprovalResolved) {
	if c := r.calls[d.CallID]; c != nil {
		c.waits = false
	}
}

// questionChunk returns the data part of a question to a person.
func questionChunk(call, question string, answer events.JSON) Chunk {
	data := map[string]any{"callId": call, "question": question}
	if answer != nil {
		data["answer"] = answer
	}
	return dataChunk(dataQuestion, call, data)
}

// toolName returns the tool that a part's type names, "" if it names none.
func toolName(partType string) string {
	name, ok := strings.CutPrefix(partType, events.ToolPart)
	if !ok {
		return ""
	}
	return name
}
