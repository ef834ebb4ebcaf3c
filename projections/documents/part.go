package documents

import (
	"strconv"

	"github.com/skein-threads/skein/events"
)

// parts returns the read model of parts. Items do not embed their parts: each part has one
// document.
func parts() Projection {
	type T = events.Part
	return Projection{
		Kind: Parts, Name: "parts", Version: 1, Bucket: "thread_parts",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.PartCreatedType, func(_ *change, d events.PartCreated) (string, bool) { return PartID(d.StepID, d.Idx), d.StepID != "" },
				func(c *change, d events.PartCreated) *T {
					return &T{Key: d.Key, ThreadID: c.commit.Thread, StepID: d.StepID, Idx: d.Idx, Type: d.Type, Part: d.Part}
				}),
			on(events.PartUpdatedType, func(_ *change, d events.PartUpdated) (string, bool) { return PartID(d.StepID, d.Idx), d.StepID != "" },
				func(c *change, doc *T, d events.PartUpdated) {
					doc.Type, doc.Part, doc.UpdatedAt = d.Type, d.Part, c.time()
				}),
			together(events.LifecycleDeletedType),
		},
	}
}

// PartID returns the id of a part in its thread. (Its own key has a colon, which keys of
// buckets may not have.)
func PartID(step string, idx int64) string { return step + "." + strconv.FormatInt(idx, 10) }
