package chat

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// Run says which run a Renderer renders.
type Run struct {
	ThreadID, Key, AgentID string
	ExecutionID            string
	MessageID              string // of the item with which the message begins
	Later                  bool   // that is not the run's first one
}

// Renderer turns the frames of one run into chunks of a UI message. It is pure, as its
// [runview.View] is.
type Renderer struct {
	*runview.View
	run     Run
	before  bool            // the steps so far write an earlier message, of which nothing is shown
	started bool            // the beginning of the message was shown
	over    bool            // another message of the run follows
	persons map[string]bool // tools that ask a person
	passed  map[string]bool // what the step has shown of data, so that its part is not shown twice
}

// NewRenderer returns a Renderer of a run.
func NewRenderer(run Run) *Renderer {
	return &Renderer{View: runview.New(run.ExecutionID), run: run, before: run.Later, passed: map[string]bool{}}
}

// Persons names the tools that ask a person, as far as they are known: a client answers a call of one
// as it does calls that it makes itself.
func (r *Renderer) Persons(tools map[string]bool) { r.persons = tools }

// Start returns the beginning of the message. It is nil if another message of the run may still be
// written: then it comes with the first event or chunk of the message.
func (r *Renderer) Start() []Chunk {
	if r.before && !r.Quiet() {
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

// Ended reports whether the message has ended, and everything was shown.
func (r *Renderer) Ended() bool { return r.over || r.View.Ended() }

// Pause ends the stream of a run that is Waiting. The message can be continued when people have
// answered.
func (r *Renderer) Pause() []Chunk {
	return append(r.show(r.View.Pause()), Chunk{Type: typeFinish, FinishReason: events.FinishToolCalls})
}

// Live ends the history of the run, and shows for what it waits now.
func (r *Renderer) Live() []Chunk { return r.show(r.View.Live()) }

// Event takes an event of the thread.
func (r *Renderer) Event(e *events.Event) []Chunk {
	if r.over {
		return nil
	}
	served := *e
	switch d := e.Data.(type) {
	case events.PartCreated:
		d.Part = attachment.Served(d.Part, r.run.ThreadID)
		served.Data = d
	case events.PartUpdated:
		d.Part = attachment.Served(d.Part, r.run.ThreadID)
		served.Data = d
	}
	return r.show(r.View.Event(&served))
}

// Takes reports whether a chunk can be taken now; see [runview.View.Takes].
func (r *Renderer) Takes(c *events.ChunkEmitted) bool { return r.over || r.View.Takes(c) }

// Chunk takes a chunk of the run.
func (r *Renderer) Chunk(c *events.ChunkEmitted) []Chunk {
	if r.over {
		return nil
	}
	served := *c
	served.Data = attachment.Served(c.Data, r.run.ThreadID)
	return r.show(r.View.Chunk(&served))
}

// show encodes the frames that belong to the message.
func (r *Renderer) show(frames []runview.Frame) []Chunk {
	var out []Chunk
	for _, f := range frames {
		switch f := f.(type) {
		case runview.StepStarted:
			switch begins := f.ItemID == r.run.MessageID; {
			case r.before && begins:
				if r.before = false; !r.started {
					out = append(out, r.start()...)
				}
			case !r.before && !begins && f.SteeredBy != "": // what follows answers a message of the user
				r.over = true
				return append(out, Chunk{Type: typeFinish, FinishReason: events.FinishStop})
			}
		case runview.Finished:
			r.before = false
			if !r.started {
				out = append(out, r.start()...)
			}
		case runview.Removed, runview.Deleted:
			r.before = false
		}
		if !r.before {
			out = append(out, r.chunks(f)...)
		}
	}
	return out
}

// chunks encodes a frame.
func (r *Renderer) chunks(f runview.Frame) []Chunk {
	switch f := f.(type) {
	case runview.StepStarted:
		r.passed = map[string]bool{}
		return []Chunk{{Type: typeStartStep}, r.stepData(f.Step)}
	case runview.StepReset:
		if r.passed = map[string]bool{}; f.Kept {
			return []Chunk{r.stepData(f.Step)}
		}
		return []Chunk{{Type: typeResetStep}, r.stepData(f.Step)}
	case runview.StepFinished:
		if f.Status == events.StepRunning {
			return []Chunk{{Type: typeFinishStep}}
		}
		return []Chunk{r.stepData(f.Step), {Type: typeFinishStep}}
	case runview.TextStarted:
		return []Chunk{{Type: string(f.Kind) + "-start", ID: textID(f.Text)}}
	case runview.TextDelta:
		return []Chunk{{Type: string(f.Kind) + "-delta", ID: textID(f.Text), Delta: f.Delta}}
	case runview.TextFinished:
		return []Chunk{{Type: string(f.Kind) + "-end", ID: textID(f.Text)}}
	case runview.Cited:
		return sources(f.Key, f.Annotations)
	case runview.Data:
		return r.data(f)
	case runview.Substate:
		substate := dataChunk(dataSubstate, "", map[string]string{"substate": f.Name})
		substate.Transient = true
		return []Chunk{substate}
	case runview.Finished:
		return append([]Chunk{r.run.execution(f.Status)}, ending(f)...)
	case runview.Removed:
		return []Chunk{{Type: typeAbort, Reason: "the message was removed from the queue"}}
	case runview.Deleted:
		return []Chunk{{Type: typeError, ErrorText: "the chat was deleted"}, {Type: typeFinish, FinishReason: events.FinishError}}
	}
	return r.callChunks(f)
}

// callChunks encodes a frame of a call.
func (r *Renderer) callChunks(f runview.Frame) []Chunk {
	switch f := f.(type) {
	case runview.CallStarted:
		return []Chunk{{Type: events.ChunkToolInputStart, ToolCallID: f.ID, ToolName: f.Name}}
	case runview.CallDelta:
		return []Chunk{{Type: events.ChunkToolInputDelta, ToolCallID: f.ID, InputTextDelta: f.Delta}}
	case runview.CallReady:
		return []Chunk{{Type: typeToolInput, ToolCallID: f.ID, ToolName: f.Name, Input: some(f.Input), ProviderExecuted: new(f.Changed || !r.persons[f.Name])}}
	case runview.Asked:
		return r.asked(f)
	case runview.CallResult:
		return []Chunk{{Type: typeToolOutput, ToolCallID: f.ID, Output: output(f.Output), ProviderExecuted: new(!f.Question)}}
	case runview.CallFailed:
		return []Chunk{{Type: typeToolError, ToolCallID: f.ID, ErrorText: f.Error, ProviderExecuted: new(!f.Question)}}
	case runview.CallDenied:
		if f.Question {
			return []Chunk{{Type: typeToolError, ToolCallID: f.ID, ErrorText: "the call was denied"}}
		}
		return []Chunk{{Type: typeToolDenied, ToolCallID: f.ID}}
	case runview.CallDropped:
		return []Chunk{{
			Type: typeToolInputError, ToolCallID: f.ID, ToolName: f.Name, Input: events.JSON("{}"), ErrorText: "the call was not made", ProviderExecuted: new(true),
		}}
	}
	return nil
}

// asked shows that a call waits for a person: for an approval, or, if it is a question, for its
// output, as calls do that a client makes itself.
func (r *Renderer) asked(f runview.Asked) []Chunk {
	switch d := f.Request; d.Reason {
	case events.ApprovalQuestion:
		out := []Chunk{questionChunk(f.ID, d.Question, d.Answer)}
		if !r.persons[f.Name] { // it was shown as one that the server makes
			out = slices.Insert(out, 0, Chunk{Type: typeToolInput, ToolCallID: f.ID, ToolName: f.Name, Input: some(d.Arguments), ProviderExecuted: new(false)})
		}
		return out
	case events.ApprovalMayHaveRun:
		return []Chunk{{Type: typeApprovalRequest, ApprovalID: f.ID, ToolCallID: f.ID, Reason: "a worker that was lost may have made this call"}}
	}
	return []Chunk{{Type: typeApprovalRequest, ApprovalID: f.ID, ToolCallID: f.ID}}
}

// data shows a part, or what a reactor streams, of a type that clients know. A reactor may stream
// what it also records.
func (r *Renderer) data(f runview.Data) []Chunk {
	c, known := passOn(f.Type, f.JSON)
	switch {
	case !known && f.Recorded:
		return []Chunk{dataChunk(dataPart, f.Key, map[string]events.JSON{"part": f.JSON})}
	case !known:
		return nil
	case c.Transient && !f.Recorded:
		return []Chunk{c}
	}
	raw, err := json.Marshal(c, json.Deterministic(true))
	if err != nil || r.passed[string(raw)] {
		return nil
	}
	r.passed[string(raw)] = true
	return []Chunk{c}
}

// ending shows how a run has ended.
func ending(f runview.Finished) []Chunk {
	switch {
	case f.Aborted != nil:
		reason := f.Aborted.Reason
		if reason == "" {
			reason = "the run was cancelled"
		}
		return []Chunk{{Type: typeAbort, Reason: reason}, {Type: typeFinish, FinishReason: events.FinishOther}}
	case f.Status == events.ExecutionFailed:
		return []Chunk{{Type: typeError, ErrorText: f.ErrorText}, {Type: typeFinish, FinishReason: events.FinishError}}
	}
	return []Chunk{{Type: typeFinish, FinishReason: f.Reason}}
}

// stepData returns the data part of a step. It is transient: a stored message does not tell its steps.
func (r *Renderer) stepData(s runview.Step) Chunk {
	c := dataChunk(dataStep, s.ID, map[string]any{
		"stepId": s.ID, "executionId": r.run.ExecutionID, "iteration": s.Iteration, "status": s.Status,
	})
	c.Transient = true
	return c
}

// textID returns the id of a text in the stream.
func textID(t runview.Text) string { return t.StepID + "-" + strconv.Itoa(t.N) }

// questionChunk returns the data part of a question to a person.
func questionChunk(call, question string, answer events.JSON) Chunk {
	data := map[string]any{"callId": call, "question": question}
	if answer != nil {
		data["answer"] = answer
	}
	return dataChunk(dataQuestion, call, data)
}
