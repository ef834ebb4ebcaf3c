package runtime

import (
	"context"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// part is one part of a step's output.
type part struct {
	raw  events.JSON
	kind string
}

// partOf holds what is read of a part.
type partOf struct {
	Type   string      `json:"type"`
	CallID string      `json:"toolCallId"`
	State  string      `json:"state"`
	Input  events.JSON `json:"input"`
}

// draft is the text that a reactor has streamed in the open step. Other chunks are
// shown and not kept.
type draft struct {
	mu   sync.Mutex
	text strings.Builder
	full bool
}

// maxDraft bounds what is kept of an interrupted step.
const maxDraft = 256 << 10

func (d *draft) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text.Reset()
	d.full = false
}

// add appends a chunk, if it is one of text.
func (d *draft) add(c Chunk) {
	if c.Type != ChunkTextDelta {
		return
	}
	var data struct {
		Delta string `json:"delta"`
	}
	if json.Unmarshal(c.Data, &data) != nil { // it is omitted from the stream, too
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full = d.full || d.text.Len()+len(data.Delta) > maxDraft; !d.full {
		d.text.WriteString(data.Delta)
	}
}

// part returns the text as a part that is marked as interrupted; none if there is no
// text.
func (d *draft) part() []part {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text.Len() == 0 {
		return nil
	}
	return []part{{object("type", events.OutputText, "text", d.text.String(), "interrupted", true), events.OutputText}}
}

// interrupted ends a run whose reactor failed: with what it had streamed, if a caller
// interrupted it and wants that kept.
func (t *turn) interrupted(ctx context.Context, err error) error {
	t.live.mu.Lock()
	keep := t.live.run.Stop && !t.live.discard
	t.live.mu.Unlock()
	if keep {
		return t.fail(ctx, t.failureText(err), t.draft.part())
	}
	return t.fail(ctx, t.failureText(err), nil)
}
