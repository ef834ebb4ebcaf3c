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
		Kind: Items, Name: "items", Version: 1, Bucket: "thread_items",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.ItemCreatedType, subject, func(c *change, d events.ItemCreated) *T {
				return &T{
					ID: d.ID, ThreadID: c.commit.Thread, ContextID: d.ContextID, Type: d.Type, Role: d.Role, Status: d.Status,
					Channel: d.Channel, Content: d.Content, CreatedAt: c.given(d.CreatedAt), Index: d.Index,
					ParentItemID: d.ParentItemID, Depth: d.Depth, Silent: d.Silent, Metadata: d.Metadata,
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
				if d.Metadata != nil {
					doc.Metadata = mergeShallow(doc.Metadata, d.Metadata)
				}
				set(&doc.Silent, d.Silent)
			}),
			together(events.MessageDeletedType),
			together(events.HistoryTruncatedType),
			together(events.LifecycleDeletedType),
		},
		ignored: types(threadLife(), contextLife(), executionLife(), executionEnds(), stepLife(), partLife(), traces(), fileLife(), beside(), nowhere()),
	}
}

// given gives a time that the event holds in the form of documents, or the
// event's own.
func (c *change) given(at string) string {
	if at != "" {
		if t, err := events.ParseTime(at); err == nil {
			return t.ISO()
		}
	}
	return c.time()
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
