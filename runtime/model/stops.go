package model

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// stops ends the text of an answer at the first of some sequences, for endpoints that cannot. What
// follows is neither shown nor kept.
type stops struct {
	list  []string
	held  map[int64]heldText // by place: what may be the beginning of a sequence
	ended bool
}

type heldText struct{ id, text string }

// newStops returns nil for no sequences.
func newStops(list []string) *stops {
	if len(list) == 0 {
		return nil
	}
	return &stops{list: list, held: map[int64]heldText{}}
}

// show returns what may be shown of a text with its next piece.
func (s *stops) show(at int64, id, delta string) string {
	if s.ended {
		return ""
	}
	text := s.held[at].text + delta
	delete(s.held, at)
	if i := s.first(text); i >= 0 {
		s.ended = true
		return text[:i]
	}
	keep := 0
	for _, one := range s.list {
		for n := min(len(one)-1, len(text)); n > keep; n-- {
			if strings.HasSuffix(text, one[:n]) {
				keep = n
			}
		}
	}
	if keep > 0 {
		s.held[at] = heldText{id, text[len(text)-keep:]}
	}
	return text[:len(text)-keep]
}

// rest returns what was held back of a text that has ended.
func (s *stops) rest(at int64) heldText {
	held := s.held[at]
	delete(s.held, at)
	if s.ended {
		return heldText{}
	}
	return held
}

// first returns where the first sequence begins; negative: nowhere.
func (s *stops) first(text string) int {
	at := -1
	for _, one := range s.list {
		if i := strings.Index(text, one); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	return at
}

// cut returns an item up to the first sequence in its text, and reports whether there is one.
func (s *stops) cut(item events.JSON) (events.JSON, bool) {
	var fields, part map[string]events.JSON
	var parts []events.JSON
	if Read(item, &fields) != nil || Text(fields["type"]) != "message" || Read(fields["content"], &parts) != nil {
		return item, false
	}
	all := ""
	for _, raw := range parts {
		part = nil
		if Read(raw, &part) == nil {
			all += Text(part["text"])
		}
	}
	left := s.first(all)
	if left < 0 {
		return item, false
	}
	for i, raw := range parts {
		part = nil
		if Read(raw, &part) != nil {
			continue
		}
		text := Text(part["text"])
		if len(text) < left {
			left -= len(text)
			continue
		}
		part["text"] = events.Quote(text[:left])
		delete(part, "annotations") // they name places of the text
		if parts[i], _ = json.Marshal(part, json.Deterministic(true)); parts[i] == nil {
			return item, false
		}
		parts = parts[:i+1]
		break
	}
	fields["content"], _ = json.Marshal(parts)
	out, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		return item, false
	}
	return out, true
}
