package agui

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// encoder turns the frames of a run into events. It does no I/O.
type encoder struct {
	thread string
	tools  []events.CallerTool // that the client runs
	muted  bool                // the client has what comes: it is counted, and not shown

	ids      map[string]*names // by item
	at       *names            // of the item that is written
	step     string            // that is open
	texts    map[textKey]string
	thoughts map[textKey]string
	calls    map[string]*call
	order    []string // of the calls

	end *runview.Finished // of the run
	off string            // why it will not come to an end of its own
	out []event
}

// textKey names a text or a reasoning of a run.
type textKey struct {
	step string
	kind runview.Kind
	n    int
}

func keyOf(t runview.Text) textKey { return textKey{t.StepID, t.Kind, t.N} }

// call is a call as far as the client knows of it.
type call struct {
	name  string
	shown bool // in this stream
	args  bool // some of its arguments were shown
	ready bool
	ended bool // its result was shown
}

func newEncoder(thread string, tools []events.CallerTool) *encoder {
	return &encoder{
		thread: thread, tools: tools, ids: map[string]*names{}, at: &names{}, texts: map[textKey]string{}, thoughts: map[textKey]string{}, calls: map[string]*call{},
	}
}

// encode returns frames as events.
func (e *encoder) encode(frames []runview.Frame) []event {
	e.out = nil
	for _, f := range frames {
		e.frame(f)
	}
	return e.out
}

func (e *encoder) emit(list ...event) {
	if !e.muted {
		e.out = append(e.out, list...)
	}
}

func (e *encoder) frame(f runview.Frame) {
	switch f := f.(type) {
	case runview.StepStarted:
		if e.at = e.ids[f.ItemID]; e.at == nil {
			e.at = &names{item: f.ItemID}
			e.ids[f.ItemID] = e.at
		}
		if e.emit(event{Type: stepStarted, StepName: f.ID}); !e.muted {
			e.step = f.ID
		}
	case runview.StepFinished:
		e.close()
	case runview.TextStarted:
		e.startText(f.Text)
	case runview.TextDelta:
		if id := e.texts[keyOf(f.Text)]; id != "" {
			e.emit(event{Type: textContent, MessageID: id, Delta: f.Delta})
		} else if id := e.thoughts[keyOf(f.Text)]; id != "" {
			e.emit(event{Type: reasoningContent, MessageID: id, Delta: f.Delta})
		}
	case runview.TextFinished:
		e.endText(keyOf(f.Text))
	case runview.Data:
		e.data(f)
	case runview.Substate:
		e.emit(event{Type: customEvent, Name: "skein.substate", Value: events.Quote(f.Name)})
	case runview.Finished:
		e.end = &f
	case runview.Removed:
		e.end = &runview.Finished{Aborted: &events.RunStopped{}}
	case runview.Deleted:
		e.off = "the thread was deleted"
	default:
		e.callFrame(f)
	}
}

// startText begins a text or a reasoning. One that begins while nothing is shown is not shown later.
func (e *encoder) startText(t runview.Text) {
	if t.Kind == runview.Reasoning {
		id := e.at.thought()
		if e.emit(event{Type: reasoningStart, MessageID: id}, event{Type: reasoningBegins, MessageID: id, Role: roleReasoning}); !e.muted {
			e.thoughts[keyOf(t)] = id
		}
		return
	}
	id := e.at.text()
	if e.emit(event{Type: textStart, MessageID: id, Role: string(events.Assistant)}); !e.muted {
		e.texts[keyOf(t)] = id
	}
}

func (e *encoder) endText(t textKey) {
	if id := e.texts[t]; id != "" {
		e.emit(event{Type: textEnd, MessageID: id})
		delete(e.texts, t)
	}
	if id := e.thoughts[t]; id != "" {
		e.emit(event{Type: reasoningEnds, MessageID: id}, event{Type: reasoningEnd, MessageID: id})
		delete(e.thoughts, t)
	}
}

// callFrame encodes a frame of a call.
func (e *encoder) callFrame(f runview.Frame) {
	switch f := f.(type) {
	case runview.CallStarted:
		e.startCall(f.Call)
	case runview.CallDelta:
		if c := e.calls[f.ID]; c != nil && c.shown && !c.ready {
			c.args = true
			e.emit(event{Type: callArgs, ToolCallID: f.ID, Delta: f.Delta})
		}
	case runview.CallReady:
		e.startCall(f.Call)
		e.readyCall(f.ID, argumentsOf(f.Input))
	case runview.CallResult:
		e.endCall(f.Call, events.TextOf(f.Output))
	case runview.CallFailed:
		e.endCall(f.Call, f.Error)
	case runview.CallDenied:
		e.endCall(f.Call, "the call was denied")
	case runview.CallDropped:
		e.endCall(f.Call, "the call was not made")
	}
}

// startCall shows a call, once: a step that is shown again has the same calls.
func (e *encoder) startCall(f runview.Call) {
	if e.calls[f.ID] != nil {
		return
	}
	e.calls[f.ID] = &call{name: f.Name, shown: !e.muted}
	e.order = append(e.order, f.ID)
	e.emit(event{Type: callStart, ToolCallID: f.ID, ToolCallName: f.Name, ParentMessageID: e.at.last()})
}

// readyCall ends the arguments of a call, once. A client keeps those that it has, also if a person
// changes them.
func (e *encoder) readyCall(id, arguments string) {
	c := e.calls[id]
	if c.ready {
		return
	}
	if c.ready = true; !c.shown {
		return
	}
	if !c.args && arguments != "" {
		e.emit(event{Type: callArgs, ToolCallID: id, Delta: arguments})
	}
	e.emit(event{Type: callEnd, ToolCallID: id})
}

// endCall shows what a call came to, once.
func (e *encoder) endCall(f runview.Call, result string) {
	e.startCall(f)
	e.readyCall(f.ID, "")
	if c := e.calls[f.ID]; !c.ended {
		c.ended = true
		e.emit(event{Type: callResult, MessageID: e.at.result(f.ID), ToolCallID: f.ID, Content: events.Quote(result), Role: roleTool})
	}
}

// data shows a part as an activity, and what is only streamed as an event of its own.
func (e *encoder) data(f runview.Data) {
	if f.Type == partError {
		return
	}
	value := attachment.Served(f.JSON, e.thread)
	if !f.Recorded {
		e.emit(event{Type: customEvent, Name: f.Type, Value: value})
		return
	}
	e.emit(event{Type: activitySnapshot, MessageID: e.at.activity(), ActivityType: f.Type, Content: value})
}

// close ends what is open of the step, as clients demand of each step and of the run.
func (e *encoder) close() {
	for _, open := range []map[textKey]string{e.texts, e.thoughts} {
		for t := range open { // one is open at a time
			e.endText(t)
		}
	}
	for _, id := range e.order {
		e.readyCall(id, "")
	}
	if e.step != "" {
		e.emit(event{Type: stepFinished, StepName: e.step})
		e.step = ""
	}
}

// finish returns the events with which a stream ends.
func (e *encoder) finish() []event {
	e.out, e.muted = nil, false
	e.close()
	return e.out
}

// pending returns the calls that the client is to make.
func (e *encoder) pending() []string {
	return slices.DeleteFunc(slices.Clone(e.order), func(id string) bool {
		c := e.calls[id]
		return c.ended || !slices.ContainsFunc(e.tools, func(t events.CallerTool) bool { return t.Name == c.name })
	})
}

// ending returns how a run that has ended ends its stream.
func (e *encoder) ending(in *input, usage []tokenUsage) event {
	done := event{Type: runFinished, ThreadID: in.ThreadID, RunID: in.RunID, Usage: usage}
	switch {
	case e.off != "":
		return event{Type: runError, Message: e.off, Code: string(events.NotFound)}
	case e.end.Aborted != nil:
		if in.modern() {
			done.Outcome = &outcome{Type: "cancelled"}
		}
	case e.end.Status == events.ExecutionFailed:
		return event{Type: runError, Message: e.end.ErrorText, Code: "run_failed", Usage: usage}
	default:
		done.Outcome = &outcome{Type: "success"}
		if in.modern() {
			done.Outcome.Pending = e.pending()
		}
	}
	return done
}

// settingsOf returns what an execution keeps of the request that began it.
func settingsOf(s *events.RunSettings) (own kept) {
	var of struct {
		AGUI kept `json:"agui"`
	}
	if s != nil && s.Metadata != nil && strings.Contains(string(s.Metadata), `"agui"`) {
		_ = json.Unmarshal(s.Metadata, &of) // another program's is none
	}
	return of.AGUI
}
