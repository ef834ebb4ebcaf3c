package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
)

// part is one part of a step's output.
type part struct {
	raw  events.JSON
	kind string
}

// partOf holds the decoded fields of a part.
type partOf struct {
	Type   string      `json:"type"`
	CallID string      `json:"toolCallId"`
	State  string      `json:"state"`
	Input  events.JSON `json:"input"`
}

// draft is what a reactor has streamed in the open step: its text, and finished reasoning. Other
// chunks are streamed and not kept.
type draft struct {
	mu       sync.Mutex
	parts    []part
	text     strings.Builder
	thinking map[string]*strings.Builder // unfinished reasoning, by its id
	bytes    int
	full     bool
}

// maxDraft bounds what is kept of an interrupted step.
const maxDraft = 256 << 10

func (d *draft) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text.Reset()
	d.parts, d.thinking, d.bytes, d.full = nil, map[string]*strings.Builder{}, 0, false
}

// add appends a chunk, if it is one of text or reasoning.
func (d *draft) add(c Chunk) {
	if c.Type != ChunkTextDelta && c.Type != ChunkReasoningDelta && c.Type != ChunkReasoningEnd {
		return
	}
	var data struct {
		ID               string `json:"id"`
		Delta            string `json:"delta"`
		EncryptedContent string `json:"encryptedContent"`
		Provider         string `json:"provider"`
	}
	if json.Unmarshal(c.Data, &data) != nil { // an invalid chunk is omitted from the stream, too
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes += len(data.Delta) + len(data.EncryptedContent)
	if d.full = d.full || d.bytes > maxDraft; d.full {
		return
	}
	switch c.Type {
	case ChunkTextDelta:
		d.text.WriteString(data.Delta)
	case ChunkReasoningDelta:
		if d.thinking[data.ID] == nil {
			d.thinking[data.ID] = &strings.Builder{}
		}
		d.thinking[data.ID].WriteString(data.Delta)
	case ChunkReasoningEnd:
		d.endText()
		d.endReasoning(data.ID, data.EncryptedContent, data.Provider)
	}
}

// endText ends the text so far: something else follows.
func (d *draft) endText() {
	if d.text.Len() > 0 {
		d.parts = append(d.parts, part{object("type", events.OutputText, "text", d.text.String()), events.OutputText})
		d.text.Reset()
	}
}

// endReasoning adds reasoning that is finished.
func (d *draft) endReasoning(id, encrypted, provider string) {
	said := d.thinking[id]
	delete(d.thinking, id)
	summary := []events.JSON{}
	if said != nil {
		summary = append(summary, object("type", "summary_text", "text", said.String()))
	}
	fields := []any{"type", events.Reasoning, "summary", summary}
	if encrypted != "" {
		fields = append(fields, "encrypted_content", encrypted)
	}
	if provider != "" {
		fields = append(fields, openresponses.Provider, provider)
	}
	if said != nil || encrypted != "" {
		d.parts = append(d.parts, part{object(fields...), events.Reasoning})
	}
}

// kept returns the streamed content as parts. A last text is marked as interrupted.
func (d *draft) kept() []part {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text.Len() == 0 {
		return slices.Clone(d.parts)
	}
	return append(slices.Clone(d.parts), part{object("type", events.OutputText, "text", d.text.String(), "interrupted", true), events.OutputText})
}

// interrupted ends a run after its reactor failed. It records what was streamed if the answer
// broke off, or if a caller interrupted the run and wants that kept.
func (t *turn) interrupted(ctx context.Context, err error) error {
	if coded := (*FailureError)(nil); errors.As(err, &coded) && context.Cause(t.ctx) == nil {
		t.code = coded.Code
	}
	t.live.mu.Lock()
	stopped, discard := t.live.run.Stop, t.live.discard
	t.live.mu.Unlock()
	var broke *BrokenOffError
	if stopped && !discard || !stopped && errors.As(err, &broke) {
		return t.fail(ctx, t.reactorCall().failureText(err), t.draft.kept())
	}
	return t.fail(ctx, t.reactorCall().failureText(err), nil)
}
