package documents

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// items is EK-153. An item that is hidden has no document.
func items() Projection {
	type T = events.Item
	return Projection{
		Kind: Items, Name: "items", Version: 2, Bucket: "thread_items",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.ItemCreatedType, subject, func(c *change, d events.ItemCreated) *T {
				return &T{
					ID: d.ID, ThreadID: c.commit.Thread, ContextID: d.ContextID, Type: d.Type, Role: d.Role, Status: d.Status,
					Channel: d.Channel, Content: d.Content, CreatedAt: c.given(d.CreatedAt).ISO(), Index: d.Index,
					ParentItemID: d.ParentItemID, Depth: d.Depth, Silent: d.Silent, Metadata: d.Metadata,
					CallOf: d.CallOf, CreatedAtMicros: int64(c.given(d.CreatedAt)),
				}
			}),
			on(events.ItemStatusChangedType, subject, func(c *change, doc *T, d events.ItemStatusChanged) {
				doc.Status, doc.UpdatedAt = d.To, c.time()
			}),
			on(events.MessageEditedType, subject, func(c *change, doc *T, d events.MessageEdited) {
				doc.UpdatedAt = c.time()
				if d.Content != nil {
					doc.Content, doc.Edited = d.Content, true
				}
				if len(d.Parts) > 0 {
					doc.Content = events.PlaceParts(doc.Content, d.Parts)
				}
				if d.Metadata != nil {
					doc.Metadata = mergeShallow(doc.Metadata, d.Metadata)
				}
				set(&doc.Silent, d.Silent)
				set(&doc.Failed, d.Failed)
				if d.Output != nil || d.IsError != nil {
					editResult(doc, d)
				}
			}),
			on(events.ExecutionStatusChangedType, func(_ *change, d events.ExecutionStatusChanged) (string, bool) {
				return d.ReactionItemID, d.ReactionItemID != ""
			}, func(c *change, doc *T, d events.ExecutionStatusChanged) {
				doc.Failed, doc.UpdatedAt = d.To == events.ExecutionFailed, c.time()
			}),
			on(events.StepStatusChangedType, func(_ *change, d events.StepStatusChanged) (string, bool) {
				return d.ReactionItemID, d.ReactionItemID != ""
			}, func(c *change, doc *T, d events.StepStatusChanged) {
				doc.Failed, doc.UpdatedAt = d.To == events.StepFailed, c.time()
			}),
			together(events.MessageDeletedType),
			together(events.HistoryTruncatedType),
			together(events.LifecycleDeletedType),
		},
		ignored: types(threadLife(), contextLife(), []events.Type{events.ExecutionCreatedType, events.StepCreatedType},
			executionEnds(), partLife(), traces(), beside(), fileLife(), ofTenant(), queueLife(), runLife(), runPauses(), nowhere()),
	}
}

// given gives a time that the event holds, or the event's own.
func (c *change) given(at string) events.Time {
	if at != "" {
		if t, err := events.ParseTime(at); err == nil {
			return t
		}
	}
	return c.event.Time
}

// editResult changes what a result says; its call stays.
func editResult(doc *events.Item, d events.MessageEdited) {
	var r events.CallResult
	if doc.Type != events.ActionResult || json.Unmarshal(doc.Content, &r) != nil {
		return
	}
	if d.Output != nil {
		r.Output, doc.Edited = d.Output, true
	}
	set(&r.IsError, d.IsError)
	if raw, err := json.Marshal(r, json.Deterministic(true)); err == nil { // it was JSON before
		doc.Content = raw
	}
}

// mergeShallow sets the fields of an object that another one names. What is no
// object is replaced.
func mergeShallow(into, from jsontext.Value) jsontext.Value {
	fields := map[string]jsontext.Value{}
	if into != nil && json.Unmarshal(into, &fields) != nil {
		return from
	}
	var more map[string]jsontext.Value
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
