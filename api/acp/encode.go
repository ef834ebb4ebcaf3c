package acp

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// encoder turns the frames of a run into updates. It does no I/O.
type encoder struct {
	execution string
	item      string         // that is written
	count     map[string]int // of the texts of an item
	texts     map[place]string
	calls     map[string]bool // that the client knows; true: they have ended
	waiting   []runview.Asked
	end       runview.Frame // of the run
	out       []update
}

// place names a text of a run.
type place struct {
	step string
	n    int
}

func newEncoder(execution string) *encoder {
	return &encoder{execution: execution, count: map[string]int{}, texts: map[place]string{}, calls: map[string]bool{}}
}

// encode returns frames as updates.
func (e *encoder) encode(frames []runview.Frame) []update {
	e.out = nil
	for _, f := range frames {
		e.frame(f)
	}
	return e.out
}

// asked returns what the frames ask people, each once.
func (e *encoder) asked() (list []runview.Asked) {
	list, e.waiting = e.waiting, nil
	return list
}

func (e *encoder) emit(u update) { e.out = append(e.out, u) }

// textID returns the id of the next text of an item.
func textID(item string, n int) string { return item + "-" + strconv.Itoa(n) }

func (e *encoder) frame(f runview.Frame) {
	switch f := f.(type) {
	case runview.StepStarted:
		e.item = f.ItemID
	case runview.TextStarted:
		e.texts[place{f.StepID, f.N}] = textID(e.item, e.count[e.item])
		e.count[e.item]++
	case runview.TextDelta:
		kind := agentChunk
		if f.Kind == runview.Reasoning {
			kind = thoughtChunk
		}
		e.emit(say(kind, e.texts[place{f.StepID, f.N}], f.Delta))
	case runview.CallStarted:
		e.startCall(f.Call, nil)
	case runview.CallReady:
		e.startCall(f.Call, f.Input)
	case runview.Asked:
		e.waiting = append(e.waiting, f)
	case runview.CallResult:
		e.endCall(f.Call, completed, events.TextOf(f.Output))
	case runview.CallFailed:
		e.endCall(f.Call, failed, f.Error)
	case runview.CallDenied:
		e.endCall(f.Call, failed, "the call was denied")
	case runview.CallDropped:
		e.endCall(f.Call, failed, "the call was not made")
	case runview.Data:
		e.out = append(e.out, dataOf(f.Type, f.JSON)...)
	case runview.Finished, runview.Removed, runview.Deleted:
		e.end = f
	}
}

// knows reports whether the client knows a call that has not ended.
func (e *encoder) knows(call string) bool {
	over, known := e.calls[call]
	return known && !over
}

// titleOf returns a title for a call of a tool.
func titleOf(tool string) string { return strings.ReplaceAll(tool, "_", " ") }

// startCall shows a call, or that its arguments are known.
func (e *encoder) startCall(c runview.Call, input events.JSON) {
	u := update{Kind: toolUpdate, ToolCallID: c.ID, RawInput: input, Status: pending}
	if input != nil {
		u.Status = inProgress
	}
	if _, known := e.calls[c.ID]; !known {
		e.calls[c.ID] = false
		u.Kind, u.Title, u.ToolKind = toolCall, titleOf(c.Name), "other"
	}
	e.emit(u)
}

// endCall shows what a call came to, once.
func (e *encoder) endCall(c runview.Call, status, text string) {
	over, known := e.calls[c.ID]
	if over {
		return
	}
	if !known {
		e.startCall(c, c.Input)
	}
	e.calls[c.ID] = true
	e.emit(update{Kind: toolUpdate, ToolCallID: c.ID, Status: status, Content: texts(text), RawOutput: c.Output})
}

// dataOf returns a part that is neither a text nor a call as updates: a plan, or an image.
func dataOf(kind string, raw events.JSON) []update {
	switch kind {
	case "plan", "data-plan":
		var p struct {
			Entries events.JSON `json:"entries"`
			Data    struct {
				Entries events.JSON `json:"entries"`
			} `json:"data"`
		}
		if json.Unmarshal(raw, &p) != nil {
			return nil
		}
		if p.Entries == nil {
			p.Entries = p.Data.Entries
		}
		var entries []struct{ Content, Priority, Status string }
		if json.Unmarshal(p.Entries, &entries) != nil {
			return nil
		}
		return []update{{Kind: planUpdate, Entries: p.Entries}}
	case "file":
		if b, ok := mediaOf(runview.ReadPart(raw)); ok {
			return []update{{Kind: agentChunk, Content: b}}
		}
	}
	return nil
}

// reason returns why a run has stopped, whose frames are all encoded.
func (e *encoder) reason() (string, error) {
	switch f := e.end.(type) {
	case runview.Removed:
		return cancelled, nil
	case runview.Deleted:
		return "", events.Errorf(events.NotFound, "the session was deleted")
	case runview.Finished:
		switch {
		case f.Aborted != nil:
			return cancelled, nil
		case f.Status == events.ExecutionFailed:
			return "", events.Errorf("run_failed", "%s", f.ErrorText)
		case f.Reason == events.FinishLength:
			return maxTokens, nil
		case f.Reason == events.FinishContentFilter:
			return refusal, nil
		}
	}
	return endTurn, nil // or it waits for an answer
}
