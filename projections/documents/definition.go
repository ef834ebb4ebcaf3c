package documents

import "github.com/skein-threads/skein/events"

// definitions are the tenant's current models, prompts, tools and agents. Each event holds a
// complete definition, and creates or removes the document.
func definitions() Projection {
	type T = events.Definition
	return Projection{
		Kind: Definitions, Name: "definitions", Version: 1, Bucket: "thread_definitions",
		new: func() any { return new(T) },
		seq: func(doc any) *int64 { return &doc.(*T).Seq },
		reactions: []reaction{{
			on: events.DefinitionChangedType,
			id: typed(func(c *change, d events.DefinitionChanged) (string, bool) {
				key := events.DefinitionRef{Kind: d.Kind, Name: d.Name}.Key()
				_, known := events.ParseDefinitionKey(key)
				return key, known && c.commit.Thread == events.TenantAggregate
			}),
			fold: func(c *change, doc any) any {
				d, ok := c.event.Data.(events.DefinitionChanged)
				if !ok {
					return doc
				}
				if made := d.Document(c.event.Time, int64(c.commit.Seq)); made != nil {
					return made
				}
				return nil
			},
		}},
	}
}
