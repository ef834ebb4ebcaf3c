package audit

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// What happened to a document.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// TrailChange is a document of a thread that differs from before.
type TrailChange struct {
	Model  string       `json:"model"`            // the read model: threads, items, ...
	ID     string       `json:"id,omitzero"`      // id within the thread; absent for the thread's own document
	What   string       `json:"what"`             // added, removed or changed
	Fields []TrailField `json:"fields,omitempty"` // of a changed one
	Before events.JSON  `json:"before,omitzero"`  // of a removed one
	After  events.JSON  `json:"after,omitzero"`   // of an added one
}

// TrailField is a place in a document, and its old and new value.
type TrailField struct {
	Path   string      `json:"path"`            // a JSON pointer
	Before events.JSON `json:"before,omitzero"` // absent: there was none
	After  events.JSON `json:"after,omitzero"`  // absent: there is none
}

// CompareDocuments returns the documents that differ between two states of a thread, by read model and
// id. It ignores how far a document was folded (version and seq). It is pure.
func CompareDocuments(models *documents.Models, before, after *documents.Memory) ([]TrailChange, error) {
	was, err := encoded(before)
	if err != nil {
		return nil, err
	}
	is, err := encoded(after)
	if err != nil {
		return nil, err
	}
	places := map[documents.Place]bool{}
	for p := range was {
		places[p] = true
	}
	for p := range is {
		places[p] = true
	}
	var out []TrailChange
	for _, p := range slices.SortedFunc(maps.Keys(places), byPlace) {
		if c, differs := changeOf(models, p, was[p], is[p], stamps); differs {
			out = append(out, c)
		}
	}
	return out, nil
}

func byPlace(a, b documents.Place) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	return strings.Compare(a.ID, b.ID)
}

// shownModels are those whose documents are public: all but the index of items, which is
// internal to lists.
func shownModels() documents.Mask {
	return documents.AllKinds &^ documents.Mask(0).With(documents.Index)
}

// encoded returns the documents of a state.
func encoded(m *documents.Memory) (map[documents.Place]events.JSON, error) {
	out := map[documents.Place]events.JSON{}
	for _, slot := range m.All(shownModels()) {
		raw, err := documents.Encode(slot.Doc)
		if err != nil {
			return nil, err
		}
		out[slot.Place] = raw
	}
	return out, nil
}

// stamps reports whether a member says how far its document was folded.
func stamps(name string) bool { return name == "version" || name == "seq" }

// changeOf compares two states of one document; nil: there is none. It ignores members for
// which leave returns true.
func changeOf(models *documents.Models, p documents.Place, before, after events.JSON, leave func(string) bool) (TrailChange, bool) {
	c := TrailChange{Model: models.Of(p.Kind).Name, ID: p.ID, What: Changed}
	switch {
	case before == nil && after == nil:
		return c, false
	case before == nil:
		c.What, c.After = Added, after
	case after == nil:
		c.What, c.Before = Removed, before
	default:
		c.Fields = fields(nil, "", before, after, leave)
		return c, len(c.Fields) > 0
	}
	return c, true
}

// fields appends the places where two values differ: members of objects, elements of lists.
// leave applies to the outermost members only.
func fields(out []TrailField, path string, before, after events.JSON, leave func(string) bool) []TrailField {
	if bytes.Equal(before, after) {
		return out
	}
	switch {
	case jsontext.Value(before).Kind() == '{' && jsontext.Value(after).Kind() == '{':
		var was, is map[string]events.JSON
		if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil {
			break
		}
		names := maps.Clone(was)
		maps.Copy(names, is)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if leave == nil || !leave(name) {
				out = fields(out, path+"/"+pointerToken(name), was[name], is[name], nil)
			}
		}
		return out
	case jsontext.Value(before).Kind() == '[' && jsontext.Value(after).Kind() == '[':
		var was, is []events.JSON
		if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil {
			break
		}
		for i := range max(len(was), len(is)) {
			out = fields(out, path+"/"+strconv.Itoa(i), at(was, i), at(is, i), nil)
		}
		return out
	}
	return append(out, TrailField{Path: path, Before: before, After: after})
}

// at returns an element of a list, nil beyond its end.
func at(list []events.JSON, i int) events.JSON {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// pointerToken escapes a member's name for a JSON pointer (RFC 6901).
func pointerToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// without returns an object without the outermost members that leave selects.
func without(object events.JSON, leave func(string) bool) (events.JSON, error) {
	in := jsontext.NewDecoder(bytes.NewReader(object))
	out := events.JSON{'{'}
	if _, err := in.ReadToken(); err != nil {
		return nil, err
	}
	for in.PeekKind() == '"' {
		name, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		name = name.Clone()
		value, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		if leave(string(bytes.Trim(name, `"`))) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}
