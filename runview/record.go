package runview

import (
	"strings"

	"github.com/skein-threads/skein/events"
)

// part folds a part of a step. A text that was recorded does not change; a call does.
func (v *View) part(stepID, key string, raw events.JSON) []Frame {
	s := v.steps[stepID]
	if s == nil {
		return nil
	}
	for i := range s.parts {
		if s.parts[i].key != key {
			continue
		}
		s.parts[i].raw = raw
		p := ReadPart(raw)
		if Tool(p.Type) == "" {
			return nil
		}
		out, _ := v.callPart(s, &p, raw)
		return out
	}
	s.parts = append(s.parts, recorded{key, raw})
	out, same := v.show(s, key, raw)
	if same {
		return out
	}
	return v.again(s)
}

// again shows the parts of a step in place of what was streamed of it.
func (v *View) again(s *step) []Frame {
	out := v.reset(s)
	for _, c := range s.parts {
		more, _ := v.show(s, c.key, c.raw)
		out = append(out, more...)
	}
	return out
}

// show shows a part. It reports false if something else is shown in its place.
func (v *View) show(s *step, key string, raw events.JSON) ([]Frame, bool) {
	p := ReadPart(raw)
	if Tool(p.Type) != "" {
		return v.callPart(s, &p, raw)
	}
	s.settled = true
	if text, is := p.PlainText(); is {
		out, same := v.whole(s, text, raw)
		if len(p.Annotations) > 0 {
			out = append(out, Cited{key, p.Annotations})
		}
		return out, same
	}
	if p.Type == events.Reasoning {
		return v.thought(s, &p, raw)
	}
	s.last = s.nextPlace()
	return []Frame{Data{StepID: s.ID, Key: key, Type: p.Type, JSON: raw, Recorded: true}}, true
}

// inOrder reports whether what is recorded now was shown after what was recorded before it. A reader
// that cannot take anything back keeps its order.
func (v *View) inOrder(s *step, place int) bool {
	if place < s.last {
		return v.appends
	}
	s.last = place
	return true
}

// whole shows a text that is known whole. The parts may divide what was streamed in other places: an
// interrupted step has one text. It reports false if what was shown differs.
func (v *View) whole(s *step, said string, raw events.JSON) ([]Frame, bool) {
	if said == "" {
		return nil, true
	}
	t := s.next(0)
	if t == nil {
		t, out := s.newText(PlainText, "", Text{Part: raw})
		s.last, s.at, s.offset = t.place, len(s.texts), 0
		return append(append(out, t.more(said)...), t.end()...), true
	}
	if !v.inOrder(s, t.place) {
		return nil, false
	}
	var out []Frame
	for {
		shown := string(t.shown[s.offset:])
		if len(shown) > len(said) && strings.HasPrefix(shown, said) {
			s.offset += len(said)
			return out, true
		}
		rest, same := strings.CutPrefix(said, shown)
		if !same || rest != "" && t.done {
			return nil, false
		}
		following := s.next(1)
		if rest != "" && following != nil && overlap(rest, string(following.shown)) {
			s.at, s.offset, t, said = following.N, 0, following, rest
			continue
		}
		s.at, s.offset, s.last = t.N+1, 0, max(s.last, t.place)
		return append(append(out, t.more(rest)...), t.end()...), true
	}
}

// overlap reports whether one of the texts begins with the other.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// next returns the text that the next part goes on with, or the nth after it; nil if no more was
// streamed.
func (s *step) next(n int) *text {
	for _, t := range s.texts[min(s.at, len(s.texts)):] {
		if t.Kind != PlainText {
			continue
		}
		if n == 0 {
			return t
		}
		n--
	}
	return nil
}

// thought shows a reasoning that is known whole. What was streamed of it stays: endpoints stream
// other texts than they return. It reports false if more of it is to be shown, and it has ended.
func (v *View) thought(s *step, p *Part, raw events.JSON) ([]Frame, bool) {
	forms := p.Reasoning()
	if len(forms) == 0 {
		if s.sealed++; s.sealed <= len(s.bare) {
			return nil, v.inOrder(s, s.bare[s.sealed-1])
		}
		out := append(s.endReasoning(), s.newBare(raw, p.Encrypted))
		s.last = s.places
		return out, true
	}
	t := s.nth(Reasoning, s.thoughts)
	s.thoughts++
	if t == nil {
		t, out := s.newText(Reasoning, "", Text{Part: raw})
		s.last = t.place
		return append(append(out, t.more(forms[0])...), t.end()...), true
	}
	if !v.inOrder(s, t.place) {
		return nil, false
	}
	ended := t.done
	for _, form := range forms {
		if rest, same := strings.CutPrefix(form, string(t.shown)); same {
			return append(t.more(rest), t.end()...), rest == "" || !ended
		}
	}
	return t.end(), true
}

// surplus shows a step again that has shown more texts than its parts have. The draft of a step
// without parts stays.
func (v *View) surplus(s *step) []Frame {
	if t := s.next(0); t == nil || v.appends || len(s.parts) == 0 {
		return nil
	}
	return v.again(s)
}
