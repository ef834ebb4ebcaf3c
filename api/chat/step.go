package chat

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// step is a step of a run, as far as it is shown.
type step struct {
	id        string
	iteration int64
	blocks    []*block
	parts     []committed     // in their order
	matched   map[string]int  // by kind: texts whose parts are known
	passed    map[string]bool // what a reactor has sent as it is, so that its part is not shown twice
	begun     []string        // calls that were shown

	attempt int64 // the claim of the last delta
	attempts
	settled bool // its parts are known: deltas show nothing new
	closed  bool // finish-step was shown
}

// attempts follows what a reactor streams when it is asked again: only what differs from
// what is shown already is shown.
type attempts struct {
	again  bool // a second attempt, or a later one
	drafts []*draft
}

// draft is what the current attempt has streamed of a text.
type draft struct {
	kind, key string
	text      []byte
}

// block is a text that is shown, or a reasoning.
type block struct {
	kind, key, id string
	shown         []byte
	done          bool
}

// committed is a part as the log has it.
type committed struct {
	key string
	raw events.JSON
}

// stepCreated begins a step.
func (r *Renderer) stepCreated(d events.StepCreated) []Chunk {
	if d.ExecutionID != r.run.ExecutionID || r.steps[d.ID] != nil {
		return nil
	}
	var out []Chunk
	if r.open != nil {
		r.open.settled = true
		out = append(r.strays(r.open), r.close(r.open, string(events.StepCompleted))...)
	}
	switch begins := d.EventID == r.run.MessageID; {
	case r.before && begins:
		if r.before, out = false, nil; !r.started {
			out = r.start()
		}
	case !r.before && !begins && d.SteeredBy != "": // what follows answers a message of the user
		r.ended = true
		return append(out, Chunk{Type: typeFinish, FinishReason: events.FinishStop})
	}
	s := &step{id: d.ID, iteration: d.Iteration, passed: map[string]bool{}, matched: map[string]int{}}
	r.steps[d.ID], r.open = s, s
	return append(out, Chunk{Type: typeStartStep}, r.stepData(s, string(events.StepRunning)))
}

// stepData returns the data part of a step. It is transient: a stored message does not tell its steps.
func (r *Renderer) stepData(s *step, status string) Chunk {
	c := dataChunk(dataStep, s.id, map[string]any{
		"stepId": s.id, "executionId": r.run.ExecutionID, "iteration": s.iteration, "status": status,
	})
	c.Transient = true
	return c
}

// close ends a step in the stream, once.
func (r *Renderer) close(s *step, status string) []Chunk {
	var out []Chunk
	for _, b := range s.blocks {
		out = append(out, b.end()...)
	}
	if status != string(events.StepRunning) {
		out = append(out, r.stepData(s, status))
	}
	if !s.closed {
		s.closed = true
		out = append(out, Chunk{Type: typeFinishStep})
	}
	return out
}

// strays ends the calls that a model began to write and that were never made.
func (r *Renderer) strays(s *step) []Chunk {
	var out []Chunk
	for _, id := range s.begun {
		if c := r.calls[id]; c != nil && c.started && !c.shown && !c.answered {
			c.answered = true
			out = append(out, Chunk{
				Type: typeToolInputError, ToolCallID: c.id, ToolName: c.name, Input: events.JSON("{}"), ErrorText: "the call was not made", ProviderExecuted: new(true),
			})
		}
	}
	return out
}

// chunk takes a chunk that the step's reactor has sent.
func (s *step) chunk(r *Renderer, c *events.ChunkEmitted) []Chunk {
	if s.attempt != 0 && c.Attempt != s.attempt {
		s.retry()
	}
	s.attempt = c.Attempt
	var d struct {
		ID             string `json:"id"`
		Delta          string `json:"delta"`
		ToolCallID     string `json:"toolCallId"`
		ToolName       string `json:"toolName"`
		InputTextDelta string `json:"inputTextDelta"`
		Substate       string `json:"substate"`
	}
	if json.Unmarshal(c.Data, &d) != nil {
		return nil
	}
	switch c.Type {
	case events.ChunkTextDelta:
		return s.delta(r, kindText, d.ID, d.Delta)
	case events.ChunkReasoningDelta:
		return s.delta(r, kindReasoning, d.ID, d.Delta)
	case events.ChunkReasoningEnd:
		return s.endReasoning()
	case events.ChunkToolInputStart:
		return s.toolStart(r, d.ToolCallID, d.ToolName)
	case events.ChunkToolInputDelta:
		if call := r.calls[d.ToolCallID]; call != nil && call.started && !call.shown && d.InputTextDelta != "" && !s.again {
			return []Chunk{{Type: events.ChunkToolInputDelta, ToolCallID: d.ToolCallID, InputTextDelta: d.InputTextDelta}}
		}
	case events.ChunkContextSubstate:
		if d.Substate == "retrying" {
			s.retry()
		}
		substate := dataChunk(dataSubstate, "", map[string]string{"substate": d.Substate})
		substate.Transient = true
		return []Chunk{substate}
	default:
		return s.pass(c.Type, c.Data)
	}
	return nil
}

// retry notes that the reactor is asked again: what it streams begins at its beginning.
func (s *step) retry() { s.attempts = attempts{again: true} }

// toolStart shows that a model begins to write a call.
func (s *step) toolStart(r *Renderer, id, name string) []Chunk {
	if r.calls[id] != nil || id == "" || name == "" {
		return nil
	}
	r.calls[id] = &call{id: id, name: name, step: s, started: true}
	s.begun = append(s.begun, id)
	return []Chunk{{Type: events.ChunkToolInputStart, ToolCallID: id, ToolName: name}}
}

// delta shows more of a text.
func (s *step) delta(r *Renderer, kind, key, delta string) []Chunk {
	if delta == "" {
		return nil
	}
	if !s.again {
		b, out := s.block(kind, key)
		return append(out, b.more(delta)...)
	}
	d := s.draft(kind, key)
	d.text = append(d.text, delta...)
	b := s.nth(kind, s.place(d))
	switch {
	case b == nil:
		b, out := s.newBlock(kind, key)
		return append(out, b.more(string(d.text))...)
	case strings.HasPrefix(string(b.shown), string(d.text)):
		return nil
	case strings.HasPrefix(string(d.text), string(b.shown)):
		return b.more(string(d.text[len(b.shown):]))
	}
	out := s.reset(r)
	for _, d := range s.drafts {
		b, start := s.newBlock(d.kind, d.key)
		out = append(append(out, start...), b.more(string(d.text))...)
	}
	return out
}

// block returns the text with a key, and what begins it if it is new.
func (s *step) block(kind, key string) (*block, []Chunk) {
	for _, b := range s.blocks {
		if b.kind == kind && b.key == key {
			return b, nil
		}
	}
	return s.newBlock(kind, key)
}

// newBlock begins a text. A reasoning before it has ended.
func (s *step) newBlock(kind, key string) (*block, []Chunk) {
	out := s.endReasoning()
	b := &block{kind: kind, key: key, id: s.id + "-" + strconv.Itoa(len(s.blocks))}
	s.blocks = append(s.blocks, b)
	return b, append(out, Chunk{Type: kind + "-start", ID: b.id})
}

// endReasoning ends the reasoning that is being shown.
func (s *step) endReasoning() []Chunk {
	var out []Chunk
	for _, b := range s.blocks {
		if b.kind == kindReasoning {
			out = append(out, b.end()...)
		}
	}
	return out
}

// nth returns the nth text of a kind, nil if there are fewer.
func (s *step) nth(kind string, n int) *block {
	for _, b := range s.blocks {
		if b.kind != kind {
			continue
		}
		if n == 0 {
			return b
		}
		n--
	}
	return nil
}

// draft returns the current attempt's text with a key.
func (s *step) draft(kind, key string) *draft {
	for _, d := range s.drafts {
		if d.kind == kind && d.key == key {
			return d
		}
	}
	d := &draft{kind: kind, key: key}
	s.drafts = append(s.drafts, d)
	return d
}

// place returns the number of a draft among those of its kind.
func (s *step) place(of *draft) int {
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

// reset takes back what is shown of the step, or ends it if the client keeps that.
func (s *step) reset(r *Renderer) []Chunk {
	out := []Chunk{{Type: typeResetStep}}
	if r.keeps {
		out = r.strays(s)
		for _, b := range s.blocks {
			out = append(out, b.end()...)
		}
	}
	s.blocks = nil
	clear(s.passed)
	for _, id := range s.begun {
		delete(r.calls, id)
	}
	s.begun = nil
	return append(out, r.stepData(s, string(events.StepRunning)))
}

// more shows more of a text.
func (b *block) more(text string) []Chunk {
	if text == "" || b.done {
		return nil
	}
	b.shown = append(b.shown, text...)
	return []Chunk{{Type: b.kind + "-delta", ID: b.id, Delta: text}}
}

// end ends a text, once.
func (b *block) end() []Chunk {
	if b.done {
		return nil
	}
	b.done = true
	return []Chunk{{Type: b.kind + "-end", ID: b.id}}
}
