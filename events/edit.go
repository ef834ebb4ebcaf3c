package events

import (
	"github.com/go-json-experiment/json"
)

// Edit applies the event to an item. Every view of items uses it.
func (i *Item) Edit(d MessageEdited) {
	if d.Content != nil {
		i.Content, i.Edited = d.Content, true
	}
	if len(d.Parts) > 0 {
		i.Content = PlaceParts(i.Content, d.Parts)
	}
	if d.Metadata != nil {
		i.Metadata = mergeShallow(i.Metadata, d.Metadata)
	}
	if d.Silent != nil {
		i.Silent = *d.Silent
	}
	if d.Failed != nil {
		i.Failed = *d.Failed
	}
	if d.Output != nil || d.IsError != nil {
		i.editResult(d)
	}
}

// editResult changes a result's output; the call that it answers stays the same.
func (i *Item) editResult(d MessageEdited) {
	var r CallResult
	if i.Type != ActionResult || json.Unmarshal(i.Content, &r) != nil {
		return
	}
	if d.Output != nil {
		r.Output, i.Edited = d.Output, true
	}
	if d.IsError != nil {
		r.IsError = *d.IsError
	}
	if raw, err := json.Marshal(r, json.Deterministic(true)); err == nil { // it was JSON before
		i.Content = raw
	}
}

// mergeShallow sets the top-level fields of from in into. A value that is not an object is
// replaced.
func mergeShallow(into, from JSON) JSON {
	fields := map[string]JSON{}
	if into != nil && json.Unmarshal(into, &fields) != nil {
		return from
	}
	var more map[string]JSON
	if json.Unmarshal(from, &more) != nil {
		return into
	}
	for name, value := range more {
		fields[name] = value
	}
	merged, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil { // both were JSON
		return into
	}
	return merged
}
