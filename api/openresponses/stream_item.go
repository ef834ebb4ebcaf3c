package openresponses

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// openItem is the item that is being streamed.
type openItem struct {
	item   transform.Item
	index  int64
	source string // the id of its text in the chunks, or of its call
	part   int64  // the index of the part that is being streamed
	text   string // of that part, or the arguments of a call
	parts  []streamPart
	notes  []events.JSON // the annotations of the part that is being streamed
	bare   bool          // it has no part
}

// serverCalled is a call that the server makes.
type serverCalled struct {
	name, arguments string
	outcome         *transform.Item // nil: it is not known
}

// chunkData is the data of a chunk, of any of the types that are read here.
type chunkData struct {
	ID         string      `json:"id"`
	Delta      string      `json:"delta"`
	Encrypted  string      `json:"encryptedContent"`
	ToolCallID string      `json:"toolCallId"`
	ToolName   string      `json:"toolName"`
	InputText  string      `json:"inputTextDelta"`
	Input      events.JSON `json:"input"`
	Output     events.JSON `json:"output"`
	ErrorText  string      `json:"errorText"`
	Substate   string      `json:"substate"`
	Phase      string      `json:"phase"`

	Annotations []events.JSON `json:"annotations"`
	Part        events.JSON   `json:"part"`
}

// chunk sends the events of a chunk.
func (e *emitter) chunk(c *client.Chunk) error {
	if c.StepID != "" && c.StepID != e.step {
		if err := e.endStep(); err != nil {
			return err
		}
		e.close(completedStatus)
		e.step, e.attempt, e.before = c.StepID, c.Attempt, e.number
		e.begins()
	}
	var d chunkData
	if json.Unmarshal(c.Data, &d) != nil {
		return nil
	}
	asked := slices.Contains([]string{events.ChunkTextDelta, events.ChunkReasoningDelta, events.ChunkReasoningEnd, transform.ChunkItem, events.ChunkToolInputStart}, c.Type)
	if c.Type == events.ChunkContextSubstate && d.Substate == "retrying" || asked && c.Attempt > e.attempt {
		e.restart()
	}
	if asked { // the first chunk of a worker that took over says only what state the run is in
		e.attempt = max(e.attempt, c.Attempt)
	}
	if e.whole {
		return nil
	}
	switch c.Type {
	case events.ChunkTextDelta:
		e.live = true
		e.delta(messageItem, d.ID, d.Delta, d.Phase)
	case transform.ChunkAnnotations:
		e.annotate(&d)
	case events.ChunkReasoningDelta:
		e.live = true
		e.delta(reasoningItem, d.ID, d.Delta, "")
	case events.ChunkReasoningEnd:
		e.live = true
		e.endReasoning(d.ID, d.Encrypted)
	case transform.ChunkItem:
		e.live = true
		e.ownItem(d.Part)
	case events.ChunkToolInputStart:
		e.live = true
		e.beginCall(d.ToolCallID, d.ToolName)
	case events.ChunkToolInputDelta:
		if e.open != nil && e.open.item.Type == callItem && e.open.source == d.ToolCallID {
			e.arguments(d.InputText)
		}
	case events.ChunkToolInput:
		if !e.live { // its reactor does not stream: its parts have the order
			e.whole = true
			return nil
		}
		e.call(&d)
	case events.ChunkToolOutput, events.ChunkToolError:
		e.called(&d)
	}
	return nil
}

// restart gives up what an attempt at a step has streamed: the reactor is asked again.
func (e *emitter) restart() {
	e.close(incompleteStatus)
	e.number = e.before
	e.begins()
}

// begins forgets what was streamed of a step.
func (e *emitter) begins() {
	e.live, e.whole, e.shown, e.calls, e.made = false, false, map[string]bool{}, map[string]*serverCalled{}, nil
}

// delta adds to a text or a reasoning, and begins one if another item is open.
func (e *emitter) delta(kind, source, text, phase string) {
	e.shown[kind], e.shown[kind+source] = true, true
	if o := e.open; o == nil || o.item.Type != kind || o.source != source && (kind == reasoningItem || phase != textOf(o.item.Rest[phaseField])) {
		e.close(completedStatus)
		e.begin(kind, source, phase)
		e.beginPart()
	} else if o.source != source {
		e.endPart()
		o.source = source
		e.beginPart()
	}
	o := e.open
	o.text += text
	v := streamEvent{Type: "response.output_text.delta", ItemID: o.item.ID, OutputIndex: &o.index, Delta: &text}
	if kind == reasoningItem {
		v.Type, v.SummaryIndex = "response.reasoning_summary_text.delta", &o.part
	} else {
		v.ContentIndex, v.Logprobs = &o.part, &[]string{}
	}
	e.emit(copied(v))
}

// copied returns an event whose indexes no later event changes.
func copied(v streamEvent) streamEvent {
	for _, p := range []**int64{&v.OutputIndex, &v.ContentIndex, &v.SummaryIndex} {
		if *p != nil {
			*p = new(**p)
		}
	}
	return v
}

// begin begins a message or a reasoning.
func (e *emitter) begin(kind, source, phase string) {
	o := &openItem{index: e.output, source: source, item: transform.Item{Type: kind}}
	if phase != "" {
		o.item.Rest = map[string]events.JSON{phaseField: events.Quote(phase)}
	}
	e.output++
	if kind == reasoningItem {
		o.item.ID, o.item.Summary = e.number.reasoning(), events.JSON("[]")
	} else {
		o.item.ID, o.item.Role, o.item.Status, o.item.Content = e.number.message(), events.Assistant, inProgressStatus, events.JSON("[]")
	}
	e.open = o
	item := o.item
	e.emit(copied(streamEvent{Type: "response.output_item.added", OutputIndex: &o.index, Item: &item}))
}

// endReasoning ends a reasoning, which may have no text. One that has ended since something
// else began stays as it was sent.
func (e *emitter) endReasoning(source, encrypted string) {
	if o := e.open; o == nil || o.item.Type != reasoningItem || o.source != source {
		if e.shown[reasoningItem+source] {
			return
		}
		e.close(completedStatus)
		e.shown[reasoningItem], e.shown[reasoningItem+source] = true, true
		e.begin(reasoningItem, source, "")
		e.open.bare = true
	}
	if encrypted != "" {
		e.open.item.EncryptedContent = events.Quote(encrypted)
	}
	e.close(completedStatus)
}

func (e *emitter) beginPart() {
	o := e.open
	o.part, o.text, o.notes = int64(len(o.parts)), "", nil
	v := streamEvent{Type: "response.content_part.added", ItemID: o.item.ID, OutputIndex: &o.index, ContentIndex: &o.part, Part: textPart("", nil)}
	if o.item.Type == reasoningItem {
		v.Type, v.ContentIndex, v.SummaryIndex, v.Part = "response.reasoning_summary_part.added", nil, &o.part, streamPart{Type: "summary_text"}
	}
	e.emit(copied(v))
}

// phaseField is the field of a message that tells a comment on the work from the answer.
const phaseField = "phase"

func textPart(text string, notes []events.JSON) streamPart {
	if notes == nil {
		notes = []events.JSON{}
	}
	return streamPart{Type: events.OutputText, Text: text, Annotations: marshal(notes), Logprobs: &[]string{}}
}

// annotate sends the annotations of the text that is being streamed.
func (e *emitter) annotate(d *chunkData) {
	o := e.open
	if o == nil || o.item.Type != messageItem || o.source != d.ID {
		return
	}
	o.notes = d.Annotations
	e.annotations(o.item.ID, o.index, o.part, o.notes)
}

func (e *emitter) annotations(item string, index, part int64, notes []events.JSON) {
	for n, note := range notes {
		e.emit(streamEvent{
			Type: "response.output_text.annotation.added", ItemID: item, OutputIndex: &index, ContentIndex: &part, AnnotationIndex: new(int64(n)), Annotation: note,
		})
	}
}

func (e *emitter) endPart() {
	o := e.open
	text := o.text
	if o.item.Type == reasoningItem {
		part := streamPart{Type: "summary_text", Text: text}
		e.emit(copied(streamEvent{Type: "response.reasoning_summary_text.done", ItemID: o.item.ID, OutputIndex: &o.index, SummaryIndex: &o.part, Text: &text}))
		e.emit(copied(streamEvent{Type: "response.reasoning_summary_part.done", ItemID: o.item.ID, OutputIndex: &o.index, SummaryIndex: &o.part, Part: part}))
		o.parts = append(o.parts, part)
		return
	}
	part := textPart(text, o.notes)
	e.emit(copied(streamEvent{Type: "response.output_text.done", ItemID: o.item.ID, OutputIndex: &o.index, ContentIndex: &o.part, Text: &text, Logprobs: &[]string{}}))
	e.emit(copied(streamEvent{Type: "response.content_part.done", ItemID: o.item.ID, OutputIndex: &o.index, ContentIndex: &o.part, Part: part}))
	o.parts = append(o.parts, part)
}

// close ends the open item, if there is one.
func (e *emitter) close(status string) {
	o := e.open
	if o == nil {
		return
	}
	switch o.item.Type {
	case messageItem:
		e.endPart()
		o.item.Status, o.item.Content = status, marshal(o.parts)
	case reasoningItem:
		if !o.bare {
			e.endPart()
			o.item.Summary = marshal(o.parts)
		}
	case callItem:
		e.endCall(status)
	}
	e.open = nil
	e.emit(streamEvent{Type: "response.output_item.done", OutputIndex: &o.index, Item: &o.item})
}

// ownItem sends an item of its own kind that the model's provider has made. Without it, what follows
// is sent with the step's parts.
func (e *emitter) ownItem(part events.JSON) {
	number := e.number
	list := number.pieces(e.leg.x, []events.JSON{part}, e.leg.shows(e.showServer))
	if part == nil || len(list) != 1 || number.others != e.number.others+1 {
		e.close(completedStatus)
		e.whole = true
		return
	}
	e.number = number
	e.items(list)
}

// beginCall begins a call of the caller's tool. One of the server's is not shown, but parts the
// texts before and after it.
func (e *emitter) beginCall(id, name string) {
	if !e.callers[name] {
		e.close(completedStatus)
		return
	}
	if e.shown[callItem+id] {
		return
	}
	e.close(completedStatus)
	e.shown[callItem+id] = true
	o := &openItem{index: e.output, source: id, item: transform.Item{
		Type: callItem, ID: e.number.call("fc_", id), CallID: id, Name: name, Arguments: new(""), Status: inProgressStatus,
	}}
	e.output++
	e.open = o
	item := o.item
	e.emit(streamEvent{Type: "response.output_item.added", OutputIndex: &o.index, Item: &item})
}

func (e *emitter) arguments(text string) {
	o := e.open
	o.text += text
	e.emit(streamEvent{Type: "response.function_call_arguments.delta", ItemID: o.item.ID, OutputIndex: &o.index, Delta: &text})
}

// endCall ends the arguments of the open call.
func (e *emitter) endCall(status string) {
	o := e.open
	text := o.text
	o.item.Status, o.item.Arguments = status, &text
	e.emit(streamEvent{Type: "response.function_call_arguments.done", ItemID: o.item.ID, OutputIndex: &o.index, Name: o.item.Name, Arguments: &text})
}

// call ends a call whose arguments are complete.
func (e *emitter) call(d *chunkData) {
	if !e.callers[d.ToolName] {
		e.close(completedStatus)
		e.makes(d)
		return
	}
	if e.open == nil || e.open.item.Type != callItem || e.open.source != d.ToolCallID {
		if e.shown[callItem+d.ToolCallID] {
			return
		}
		e.beginCall(d.ToolCallID, d.ToolName)
	}
	said := events.TextOf(d.Input)
	if e.open.text == "" && said != "" {
		e.arguments(said)
	}
	e.open.text = said // as the response will have them, however the model spaced them
	e.close(completedStatus)
}

// makes notes a call that the server makes, if it may be shown.
func (e *emitter) makes(d *chunkData) {
	if e.calls[d.ToolCallID] != nil || !e.leg.shows(e.showServer)(d.ToolCallID) {
		return
	}
	e.calls[d.ToolCallID] = &serverCalled{name: d.ToolName, arguments: events.TextOf(d.Input)}
	e.made = append(e.made, d.ToolCallID)
}

// called notes what has come of a call that the server has made, and shows the calls of which that
// is known, in the order in which the model made them.
func (e *emitter) called(d *chunkData) {
	c := e.calls[d.ToolCallID]
	if c == nil || c.outcome != nil || !e.leg.shows(e.showServer)(d.ToolCallID) {
		return
	}
	o := serverCall(transform.Item{ID: e.number.call("mcp_", d.ToolCallID), Name: c.name, Arguments: &c.arguments}, events.Quote(events.TextOf(d.Output)), d.ErrorText)
	e.leg.link(&o)
	c.outcome = new(completed(o))
	for len(e.made) > 0 && e.calls[e.made[0]].outcome != nil {
		next := *e.calls[e.made[0]].outcome
		e.made, e.shown[next.ID] = e.made[1:], true
		e.complete(next)
	}
}

// complete sends all events of an item that is complete.
func (e *emitter) complete(o transform.Item) {
	e.close(completedStatus)
	index := e.output
	e.output++
	begun := o
	switch o.Type {
	case messageItem:
		begun.Status, begun.Content = inProgressStatus, events.JSON("[]")
	case reasoningItem:
		begun.Summary, begun.Content, begun.EncryptedContent = events.JSON("[]"), nil, nil
	case callItem:
		begun.Status, begun.Arguments = inProgressStatus, new("")
	}
	e.emit(streamEvent{Type: "response.output_item.added", OutputIndex: &index, Item: &begun})
	switch o.Type {
	case messageItem:
		e.parts(o, index)
	case reasoningItem:
		e.thoughts(o, index)
	case callItem:
		if *o.Arguments != "" {
			e.emit(streamEvent{Type: "response.function_call_arguments.delta", ItemID: o.ID, OutputIndex: &index, Delta: o.Arguments})
		}
		e.emit(streamEvent{Type: "response.function_call_arguments.done", ItemID: o.ID, OutputIndex: &index, Name: o.Name, Arguments: o.Arguments})
	}
	e.emit(streamEvent{Type: "response.output_item.done", OutputIndex: &index, Item: &o})
}

// parts sends the parts of a complete message.
func (e *emitter) parts(o transform.Item, index int64) {
	var parts []events.JSON
	_ = json.Unmarshal(o.Content, &parts) // it was written here
	for n, raw := range parts {
		at := new(int64(n))
		var p struct {
			Type        string        `json:"type"`
			Text        string        `json:"text"`
			Refusal     string        `json:"refusal"`
			Annotations []events.JSON `json:"annotations"`
		}
		_ = json.Unmarshal(raw, &p) // a part has at least a type
		base := streamEvent{ItemID: o.ID, OutputIndex: &index, ContentIndex: at}
		send := func(kind string, change func(*streamEvent)) {
			v := base
			v.Type = kind
			change(&v)
			e.emit(v)
		}
		if p.Type == events.Refusal {
			send("response.content_part.added", func(v *streamEvent) { v.Part = map[string]string{"type": p.Type, "refusal": ""} })
			send("response.refusal.delta", func(v *streamEvent) { v.Delta = &p.Refusal })
			send("response.refusal.done", func(v *streamEvent) { v.Refusal = &p.Refusal })
		} else {
			send("response.content_part.added", func(v *streamEvent) { v.Part = textPart("", nil) })
			send("response.output_text.delta", func(v *streamEvent) { v.Delta, v.Logprobs = &p.Text, &[]string{} })
			e.annotations(o.ID, index, *at, p.Annotations)
			send("response.output_text.done", func(v *streamEvent) { v.Text, v.Logprobs = &p.Text, &[]string{} })
		}
		send("response.content_part.done", func(v *streamEvent) { v.Part = raw })
	}
}

// thoughts sends the text of a complete reasoning.
func (e *emitter) thoughts(o transform.Item, index int64) {
	var parts []streamPart
	_ = json.Unmarshal(o.Summary, &parts) // anything but a list of texts has no text to stream
	if len(parts) == 0 {
		_ = json.Unmarshal(o.Content, &parts) // likewise
	}
	for n, p := range parts {
		at := new(int64(n))
		base := streamEvent{ItemID: o.ID, OutputIndex: &index, SummaryIndex: at}
		part := streamPart{Type: "summary_text", Text: p.Text}
		for _, v := range []streamEvent{
			{Type: "response.reasoning_summary_part.added", Part: streamPart{Type: "summary_text"}},
			{Type: "response.reasoning_summary_text.delta", Delta: &p.Text},
			{Type: "response.reasoning_summary_text.done", Text: &p.Text},
			{Type: "response.reasoning_summary_part.done", Part: part},
		} {
			v.ItemID, v.OutputIndex, v.SummaryIndex = base.ItemID, base.OutputIndex, base.SummaryIndex
			e.emit(v)
		}
	}
}
