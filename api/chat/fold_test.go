package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/chat"
)

// shown is a UI message as a client builds it from chunks.
type shown struct {
	id     string
	parts  []*shownPart
	end    string // of finish
	abort  bool
	failed string
	open   map[string]*shownPart
}

type shownPart struct{ kind, id, text, state string }

// fold builds a message as the AI SDK's client does: it fails the test for chunks that the
// client refuses. What only version 7 knows is among these, but for reset-step.
func fold(t testing.TB, on *shown, list []chat.Chunk) *shown {
	t.Helper()
	m := on
	if m == nil {
		m = &shown{}
	}
	m.open, m.end = map[string]*shownPart{}, ""
	for _, c := range list {
		if err := m.take(c); err != nil {
			t.Fatalf("a client refuses %+v: %v; after %s", c, err, kinds(list))
		}
	}
	return m
}

func (m *shown) take(c chat.Chunk) error {
	kind, what, _ := strings.Cut(c.Type, "-")
	switch c.Type {
	case "start":
		m.id = c.MessageID
	case "start-step":
		m.parts = append(m.parts, &shownPart{kind: "step"})
	case "finish-step":
	case "reset-step":
		for len(m.parts) > 0 && m.parts[len(m.parts)-1].kind != "step" {
			m.parts = m.parts[:len(m.parts)-1]
		}
		m.open = map[string]*shownPart{}
	case "finish":
		m.end = c.FinishReason
	case "abort":
		m.abort = true
	case "error":
		m.failed = c.ErrorText
	case "text-start", "reasoning-start":
		p := &shownPart{kind: kind, id: c.ID, state: "streaming"}
		m.parts, m.open[c.ID] = append(m.parts, p), p
	case "text-delta", "text-end", "reasoning-delta", "reasoning-end":
		p := m.open[c.ID]
		if p == nil {
			return fmt.Errorf("no text %q", c.ID)
		}
		if p.text += c.Delta; what == "end" {
			p.state = "done"
			delete(m.open, c.ID)
		}
	case "tool-input-start", "tool-input-available", "tool-input-error":
		p := m.call(c.ToolCallID, true)
		if p == nil {
			p = &shownPart{id: c.ToolCallID}
			m.parts = append(m.parts, p)
		}
		p.kind, p.state = "tool-"+c.ToolName, strings.TrimPrefix(c.Type, "tool-")
	case "tool-input-delta":
		if m.call(c.ToolCallID, true) == nil {
			return fmt.Errorf("no call %q", c.ToolCallID)
		}
	case "tool-output-available", "tool-output-error", "tool-output-denied", "tool-approval-request":
		p := m.call(c.ToolCallID, false)
		if p == nil {
			return fmt.Errorf("no call %q", c.ToolCallID)
		}
		p.state = strings.TrimPrefix(c.Type, "tool-")
		p.text = string(c.Output) + c.ErrorText
	case "source-url", "source-document", "file":
		m.parts = append(m.parts, &shownPart{kind: c.Type, id: c.SourceID, text: c.URL})
	default:
		if kind != "data" {
			return fmt.Errorf("an unknown type")
		}
		if !strings.HasPrefix(c.Type, "data-skein-") || c.Type == "data-skein-part" {
			m.parts = append(m.parts, &shownPart{kind: c.Type, text: string(c.Data)})
		}
	}
	return nil
}

// call returns a call, of the current step or of any.
func (m *shown) call(id string, current bool) *shownPart {
	for i := len(m.parts) - 1; i >= 0; i-- {
		p := m.parts[i]
		if current && p.kind == "step" {
			return nil
		}
		if strings.HasPrefix(p.kind, "tool-") && p.id == id {
			return p
		}
	}
	return nil
}

// String describes the message in one line.
func (m *shown) String() string {
	var out []string
	for _, p := range m.parts {
		s := p.kind
		if p.text != "" {
			s += "=" + p.text
		}
		if p.state != "" && p.state != "done" {
			s += "(" + p.state + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " | ")
}
