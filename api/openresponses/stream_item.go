package openresponses

import (
	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runview"
)

// openItem is the item that is being sent.
type openItem struct {
	item  transform.Item
	index int64
	text  int // of its step, that the item has last; noText
	kind  string
	said  string        // of the part that is being sent
	notes []events.JSON // the annotations of that part
	parts []any         // those that have been sent
}

// noText is the text of an item that has none.
const noText = -1

// summaryPart is the type of a part of a reasoning.
const summaryPart = "summary_text"

// phaseField is the field of a message that tells a comment on the work from the answer.
const phaseField = "phase"

// frames sends what the frames of a run's view show.
func (e *emitter) frames(list []runview.Frame) {
	for _, f := range list {
		switch f := f.(type) {
		case runview.TextDelta:
			if f.Part == nil {
				e.text(f.Text)
				e.say(f.Delta)
			}
		case runview.Sealed:
			e.seal(f)
		case runview.TextFinished:
			if f.Part != nil {
				e.unsent = append(e.unsent, f.Part)
			} else if f.Kind == runview.Reasoning && e.open != nil && e.open.text == f.N {
				e.close(completedStatus)
			}
		case runview.CallStarted:
			e.beginCall(f.Call)
		case runview.CallDelta:
			if e.open != nil && e.open.item.CallID == f.ID {
				e.arguments(f.Delta)
			}
		case runview.CallWritten:
			e.endCall(f.Call)
		case runview.CallReady:
			if !e.calls[f.ID] {
				e.unsent = append(e.unsent, f.Part)
			} else if e.open != nil && e.open.item.CallID == f.ID {
				e.endCall(f.Call)
			}
		case runview.Data:
			e.data(f)
		case runview.StepReset:
			e.close(incompleteStatus)
			e.number = e.before
			e.forget()
		}
	}
}

// text makes a text the one that is being sent. Texts of the same phase are parts of one message.
func (e *emitter) text(t runview.Text) {
	o, kind := e.open, messageItem
	if t.Kind == runview.Reasoning {
		kind = reasoningItem
	}
	switch {
	case o != nil && o.item.Type == kind && o.text == t.N:
		return
	case o != nil && o.item.Type == messageItem && kind == messageItem && textOf(o.item.Rest[phaseField]) == t.Phase:
		e.endPart(nil)
	case kind == reasoningItem:
		e.close(completedStatus)
		e.begin(transform.Item{Type: reasoningItem, ID: e.number.reasoning(), Summary: events.JSON("[]")})
	default:
		e.close(completedStatus)
		item := transform.Item{Type: messageItem, ID: e.number.message(), Role: events.Assistant, Status: inProgressStatus}
		if t.Phase != "" {
			item.Rest = map[string]events.JSON{phaseField: events.Quote(t.Phase)}
		}
		e.begin(item)
	}
	e.open.text = t.N
	if kind == reasoningItem {
		e.beginPart(summaryPart)
	} else {
		e.beginPart(events.OutputText)
	}
}

// seal sends what only its model can read of a reasoning, with its end.
func (e *emitter) seal(f runview.Sealed) {
	switch {
	case f.Part != nil:
		e.unsent = append(e.unsent, f.Part)
		return
	case f.Bare:
		e.close(completedStatus)
		e.begin(transform.Item{Type: reasoningItem, ID: e.number.reasoning(), Summary: events.JSON("[]")})
	case e.open == nil || e.open.item.Type != reasoningItem || e.open.text != f.N: // it stays as it was sent
		return
	}
	if f.Encrypted != "" {
		e.open.item.EncryptedContent = events.Quote(f.Encrypted)
	}
	e.close(completedStatus)
}

// data sends annotations, and items of the provider's own kinds. After an item that is in no chunk,
// the rest of the step is sent when its parts are.
func (e *emitter) data(f runview.Data) {
	var d struct {
		Annotations []events.JSON `json:"annotations"`
		Part        events.JSON   `json:"part"`
	}
	switch {
	case f.Recorded && e.others > 0 && e.isOther(f.JSON):
		e.others--
	case f.Recorded:
		e.unsent = append(e.unsent, f.JSON)
	case json.Unmarshal(f.JSON, &d) != nil:
	case f.Type == transform.ChunkAnnotations && e.open != nil && e.open.item.Type == messageItem:
		e.annotate(d.Annotations)
	case f.Type == transform.ChunkItem:
		e.close(completedStatus)
		if e.held = !e.isOther(d.Part); !e.held {
			e.others++
			e.items(e.number.pieces(e.leg.x, []events.JSON{d.Part}, e.leg.shows(e.showServer)))
		}
	}
}

// isOther reports whether a part is an item of its own kind.
func (e *emitter) isOther(part events.JSON) bool {
	number := e.number
	return part != nil && len(number.pieces(e.leg.x, []events.JSON{part}, e.leg.shows(e.showServer))) == 1 && number.others == e.number.others+1
}

// itemEvent returns an event about the open item.
func (e *emitter) itemEvent(name string) streamEvent {
	return streamEvent{Type: "response." + name, ItemID: e.open.item.ID, OutputIndex: new(e.open.index)}
}

// partEvent returns an event about the part of the open item that is being sent.
func (e *emitter) partEvent(name string) streamEvent {
	v := e.itemEvent(name)
	at := new(int64(len(e.open.parts)))
	if e.open.kind == summaryPart {
		v.SummaryIndex = at
	} else {
		v.ContentIndex = at
	}
	return v
}

// textEvent returns an event about the text of that part.
func (e *emitter) textEvent(what string) streamEvent {
	switch e.open.kind {
	case summaryPart:
		return e.partEvent("reasoning_summary_text." + what)
	case events.Refusal:
		return e.partEvent("refusal." + what)
	}
	v := e.partEvent("output_text." + what)
	v.Logprobs = &[]string{}
	return v
}

// begin begins an item, with what of it is known from the start.
func (e *emitter) begin(item transform.Item) {
	e.open = &openItem{item: item, index: e.output, text: noText}
	e.output++
	switch item.Type {
	case messageItem:
		item.Status, item.Content = inProgressStatus, events.JSON("[]")
	case reasoningItem:
		item.Summary, item.Content, item.EncryptedContent = events.JSON("[]"), nil, nil
	case callItem:
		item.Status, item.Arguments = inProgressStatus, new("")
	}
	e.emit(streamEvent{Type: "response.output_item.added", OutputIndex: new(e.open.index), Item: &item})
}

// end ends the open item, as it then is.
func (e *emitter) end(item transform.Item) {
	e.emit(streamEvent{Type: "response.output_item.done", OutputIndex: new(e.open.index), Item: &item})
	e.open = nil
}

// close ends the open item, if there is one, with what was sent of it.
func (e *emitter) close(status string) {
	o := e.open
	if o == nil {
		return
	}
	e.endPart(nil)
	switch o.item.Type {
	case messageItem:
		o.item.Status, o.item.Content = status, marshal(o.parts)
	case reasoningItem:
		if o.parts != nil {
			o.item.Summary = marshal(o.parts)
		}
	case callItem:
		o.item.Status, o.item.Arguments = status, new(o.said)
		e.endArguments()
	}
	e.end(o.item)
}

func (e *emitter) beginPart(kind string) {
	o := e.open
	o.kind, o.said, o.notes = kind, "", nil
	v := e.partEvent(partName(kind) + ".added")
	v.Part = newPart(kind, "", nil)
	e.emit(v)
}

// say sends more of the text of a part.
func (e *emitter) say(text string) {
	e.open.said += text
	v := e.textEvent("delta")
	v.Delta = &text
	e.emit(v)
}

// annotate sends the annotations of a text.
func (e *emitter) annotate(notes []events.JSON) {
	e.open.notes = notes
	for n, note := range notes {
		v := e.partEvent("output_text.annotation.added")
		v.AnnotationIndex, v.Annotation = new(int64(n)), note
		e.emit(v)
	}
}

// endPart ends the part that is being sent, if there is one: as the log has it, or, if that is nil,
// as it was sent.
func (e *emitter) endPart(whole any) {
	o := e.open
	if o.kind == "" {
		return
	}
	if whole == nil {
		whole = newPart(o.kind, o.said, o.notes)
	}
	v := e.textEvent("done")
	if o.kind == events.Refusal {
		v.Refusal = new(o.said)
	} else {
		v.Text = new(o.said)
	}
	e.emit(v)
	v = e.partEvent(partName(o.kind) + ".done")
	v.Part = whole
	e.emit(v)
	o.parts, o.kind = append(o.parts, whole), ""
}

func partName(kind string) string {
	if kind == summaryPart {
		return "reasoning_summary_part"
	}
	return "content_part"
}

func newPart(kind, text string, notes []events.JSON) any {
	switch kind {
	case summaryPart:
		return streamPart{Type: summaryPart, Text: text}
	case events.Refusal:
		return map[string]string{"type": kind, "refusal": text}
	}
	if notes == nil {
		notes = []events.JSON{}
	}
	return streamPart{Type: kind, Text: text, Annotations: marshal(notes), Logprobs: &[]string{}}
}

// beginCall begins a call of the caller's tool. One of the server's is not shown, but parts the
// texts before and after it.
func (e *emitter) beginCall(c runview.Call) {
	if e.calls[c.ID] {
		return
	}
	e.close(completedStatus)
	if e.callers[c.Name] {
		e.calls[c.ID] = true
		e.begin(transform.Item{Type: callItem, ID: e.number.call("fc_", c.ID), CallID: c.ID, Name: c.Name})
	}
}

func (e *emitter) arguments(text string) {
	e.open.said += text
	v := e.itemEvent("function_call_arguments.delta")
	v.Delta = &text
	e.emit(v)
}

func (e *emitter) endArguments() {
	v := e.itemEvent("function_call_arguments.done")
	v.Name, v.Arguments = e.open.item.Name, e.open.item.Arguments
	e.emit(v)
}

// endCall ends a call whose arguments are complete.
func (e *emitter) endCall(c runview.Call) {
	if e.open == nil || e.open.item.CallID != c.ID {
		e.beginCall(c)
	}
	if e.open == nil || e.open.item.CallID != c.ID {
		return
	}
	said := events.TextOf(c.Input)
	if e.open.said == "" && said != "" {
		e.arguments(said)
	}
	e.open.said = said // as the response will have them, however the model spaced them
	e.close(completedStatus)
}

// complete sends all events of an item that is complete.
func (e *emitter) complete(o transform.Item) {
	e.close(completedStatus)
	e.begin(o)
	switch o.Type {
	case messageItem:
		var parts []events.JSON
		_ = json.Unmarshal(o.Content, &parts) // it was written here
		for _, raw := range parts {
			e.part(raw)
		}
	case reasoningItem:
		var parts []streamPart
		_ = json.Unmarshal(o.Summary, &parts) // anything but a list of texts has no text to stream
		if len(parts) == 0 {
			_ = json.Unmarshal(o.Content, &parts) // likewise
		}
		for _, p := range parts {
			e.beginPart(summaryPart)
			e.say(p.Text)
			e.endPart(nil)
		}
	case callItem:
		if *o.Arguments != "" {
			e.arguments(*o.Arguments)
		}
		e.endArguments()
	}
	e.end(o)
}

// part sends a complete part of a message.
func (e *emitter) part(raw events.JSON) {
	var p struct {
		Type        string        `json:"type"`
		Text        string        `json:"text"`
		Refusal     string        `json:"refusal"`
		Annotations []events.JSON `json:"annotations"`
	}
	_ = json.Unmarshal(raw, &p) // a part has at least a type
	if p.Type == events.Refusal {
		e.beginPart(p.Type)
		e.say(p.Refusal)
	} else {
		e.beginPart(events.OutputText)
		e.say(p.Text)
		e.annotate(p.Annotations)
	}
	e.endPart(raw)
}
