package runview

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// step is a step of a run, as far as it is shown.
type step struct {
	Step
	texts  []*text
	begun  []string   // calls that were shown
	parts  []recorded // in their order
	bare   []int      // the places of reasonings without a text
	places int        // how many texts, calls and data were begun

	// How far the parts say what was streamed.
	last     int // the place of the last one
	at       int // the text that the next part goes on with
	offset   int // in that text
	thoughts int // reasonings with a text
	sealed   int // reasonings without one

	attempt int64 // the claim of the last chunk
	attempts
	settled  bool // its texts are recorded: chunks show nothing new
	finished bool // StepFinished was returned
}

// attempts follows what a reactor streams when it is asked again: only what differs from
// what is shown already is shown.
type attempts struct {
	again  bool // a second attempt, or a later one
	drafts []*draft
	bares  int // reasonings without a text
}

// draft is what the current attempt has streamed of a text.
type draft struct {
	kind       Kind
	key, phase string
	text       []byte
}

// text is a text or a reasoning that is shown.
type text struct {
	Text
	key   string
	place int
	shown []byte
	done  bool
}

// recorded is a part as the log has it.
type recorded struct {
	key string
	raw events.JSON
}

func (s *step) nextPlace() int {
	s.places++
	return s.places
}

// stepCreated begins a step.
func (v *View) stepCreated(d events.StepCreated) []Frame {
	if d.ExecutionID != v.execution || v.steps[d.ID] != nil {
		return nil
	}
	var out []Frame
	if v.open != nil {
		out = v.closeStep(v.open, events.StepCompleted)
	}
	s := &step{Step: Step{ID: d.ID, Iteration: d.Iteration, ItemID: d.EventID, SteeredBy: d.SteeredBy, Status: events.StepRunning}}
	v.steps[d.ID], v.open = s, s
	return append(out, StepStarted{s.Step})
}

// closeStep ends a step whose parts are all known.
func (v *View) closeStep(s *step, status events.StepStatus) []Frame {
	s.settled = true
	out := append(v.surplus(s), v.dropped(s)...)
	return append(out, s.finish(status)...)
}

// finish ends a step, once, with what is open of it.
func (s *step) finish(status events.StepStatus) []Frame {
	out := s.endTexts()
	if s.finished {
		return out
	}
	s.finished = status != events.StepRunning
	s.Status = status
	return append(out, StepFinished{s.Step})
}

func (s *step) endTexts() []Frame {
	var out []Frame
	for _, t := range s.texts {
		out = append(out, t.end()...)
	}
	return out
}

// stepChunk folds a chunk of the step's reactor.
func (v *View) stepChunk(s *step, c *events.ChunkEmitted) []Frame {
	var out []Frame
	if streams(c.Type) {
		if s.attempt != 0 && c.Attempt != s.attempt {
			out = v.retry(s)
		}
		if s.attempt = c.Attempt; s.settled {
			return out
		}
	}
	var d struct {
		ID             string `json:"id"`
		Delta          string `json:"delta"`
		ToolCallID     string `json:"toolCallId"`
		ToolName       string `json:"toolName"`
		InputTextDelta string `json:"inputTextDelta"`
		Substate       string `json:"substate"`
		Phase          string `json:"phase"`
		Encrypted      string `json:"encryptedContent"`

		Input events.JSON `json:"input"`
	}
	if json.Unmarshal(c.Data, &d) != nil {
		return out
	}
	switch c.Type {
	case events.ChunkTextDelta:
		return append(out, v.delta(s, PlainText, d.ID, d.Delta, d.Phase)...)
	case events.ChunkReasoningDelta:
		return append(out, v.delta(s, Reasoning, d.ID, d.Delta, "")...)
	case events.ChunkReasoningEnd:
		return append(out, s.seal(d.ID, d.Encrypted)...)
	case events.ChunkToolInputStart:
		return append(out, v.callStarted(s, d.ToolCallID, d.ToolName)...)
	case events.ChunkToolInputDelta:
		return append(out, v.callDelta(s, d.ToolCallID, d.InputTextDelta)...)
	case events.ChunkToolInput:
		return v.callWritten(s, Call{StepID: s.ID, ID: d.ToolCallID, Name: d.ToolName, Input: d.Input})
	case events.ChunkContextSubstate:
		if d.Substate == "retrying" {
			out = v.retry(s)
		}
		return append(out, Substate{s.ID, d.Substate})
	}
	return append(out, Data{StepID: s.ID, Type: c.Type, JSON: c.Data})
}

// streams reports whether chunks of a type are an attempt's. A worker that took over a step may only
// say what state the run is in, and announce and make the calls that are recorded.
func streams(chunk string) bool {
	switch chunk {
	case events.ChunkContextSubstate, events.ChunkToolInput, events.ChunkToolOutput, events.ChunkToolError:
		return false
	}
	return true
}

// retry notes that the reactor is asked again: what it streams begins at its beginning.
func (v *View) retry(s *step) []Frame {
	switch s.attempts = (attempts{again: !v.attempts}); {
	case !v.attempts:
		return nil
	case len(s.parts) > 0: // the rest of the parts follows
		s.settled = true
		return nil
	}
	return v.reset(s)
}

// delta shows more of a text.
func (v *View) delta(s *step, kind Kind, key, delta, phase string) []Frame {
	if delta == "" {
		return nil
	}
	if !s.again {
		t, out := s.text(kind, key, phase)
		return append(out, t.more(delta)...)
	}
	d := s.draft(kind, key, phase)
	d.text = append(d.text, delta...)
	t := s.nth(kind, s.number(d))
	switch {
	case t == nil:
		t, out := s.newText(kind, key, Text{Phase: d.phase})
		return append(out, t.more(string(d.text))...)
	case strings.HasPrefix(string(t.shown), string(d.text)):
		return nil
	case strings.HasPrefix(string(d.text), string(t.shown)):
		return t.more(string(d.text[len(t.shown):]))
	}
	if len(s.parts) > 0 { // the rest of the parts follows
		s.settled = true
		return v.again(s)
	}
	out := v.reset(s)
	for _, d := range s.drafts {
		t, start := s.newText(d.kind, d.key, Text{Phase: d.phase})
		out = append(append(out, start...), t.more(string(d.text))...)
	}
	return out
}

// text returns the text with a key, and what begins it if it is new.
func (s *step) text(kind Kind, key, phase string) (*text, []Frame) {
	for _, t := range s.texts {
		if t.Kind == kind && t.key == key {
			return t, nil
		}
	}
	return s.newText(kind, key, Text{Phase: phase})
}

// newText begins a text, with a phase or a part. A reasoning before it has ended.
func (s *step) newText(kind Kind, key string, of Text) (*text, []Frame) {
	out := s.endReasoning()
	of.StepID, of.Kind, of.N = s.ID, kind, len(s.texts)
	t := &text{Text: of, key: key, place: s.nextPlace()}
	s.texts = append(s.texts, t)
	return t, append(out, TextStarted{t.Text})
}

// endReasoning ends the reasoning that is being shown.
func (s *step) endReasoning() []Frame {
	var out []Frame
	for _, t := range s.texts {
		if t.Kind == Reasoning {
			out = append(out, t.end()...)
		}
	}
	return out
}

// seal ends a reasoning that has streamed, or shows one that has no text.
func (s *step) seal(key, encrypted string) []Frame {
	for _, t := range s.texts {
		switch {
		case t.Kind != Reasoning || t.key != key && !s.again:
		case t.done:
			return nil
		case encrypted == "":
			return s.endReasoning()
		default:
			return append([]Frame{Sealed{Text: t.Text, Encrypted: encrypted}}, s.endReasoning()...)
		}
	}
	if s.bares++; s.bares <= len(s.bare) { // an earlier attempt has shown it
		return nil
	}
	return append(s.endReasoning(), s.newBare(nil, encrypted))
}

// newBare shows a reasoning without a text.
func (s *step) newBare(part events.JSON, encrypted string) Frame {
	s.bare = append(s.bare, s.nextPlace())
	return Sealed{Text: Text{StepID: s.ID, Kind: Reasoning, Part: part}, Bare: true, Encrypted: encrypted}
}

// nth returns the nth text of a kind, nil if there are fewer.
func (s *step) nth(kind Kind, n int) *text {
	for _, t := range s.texts {
		if t.Kind != kind {
			continue
		}
		if n == 0 {
			return t
		}
		n--
	}
	return nil
}

// draft returns the current attempt's text with a key.
func (s *step) draft(kind Kind, key, phase string) *draft {
	for _, d := range s.drafts {
		if d.kind == kind && d.key == key {
			return d
		}
	}
	d := &draft{kind: kind, key: key, phase: phase}
	s.drafts = append(s.drafts, d)
	return d
}

// number returns the number of a draft among the drafts of its kind.
func (s *step) number(of *draft) int {
	n := 0
	for _, d := range s.drafts {
		if d == of {
			break
		}
		if d.kind == of.kind {
			n++
		}
	}
	return n
}

// reset takes back what is shown of the step, or ends it if the reader keeps that. What is known of
// calls that are recorded stays known.
func (v *View) reset(s *step) []Frame {
	var out []Frame
	if v.appends {
		out = append(v.dropped(s), s.endTexts()...)
	}
	for _, id := range s.begun {
		if c := v.calls[id]; c != nil && c.StepID == s.ID && !c.recorded {
			delete(v.calls, id)
		} else if c != nil && c.StepID == s.ID {
			c.place, c.started, c.ready, c.recorded, c.ended = 0, false, false, false, false
		}
	}
	s.texts, s.begun, s.bare, s.places = nil, nil, nil, 0
	s.last, s.at, s.offset, s.thoughts, s.sealed = 0, 0, 0, 0, 0
	return append(out, StepReset{s.Step, v.appends})
}

// more shows more of a text.
func (t *text) more(delta string) []Frame {
	if delta == "" || t.done {
		return nil
	}
	t.shown = append(t.shown, delta...)
	return []Frame{TextDelta{t.Text, delta}}
}

// end ends a text, once.
func (t *text) end() []Frame {
	if t.done {
		return nil
	}
	t.done = true
	return []Frame{TextFinished{t.Text}}
}
