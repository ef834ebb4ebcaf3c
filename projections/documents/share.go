package documents

import "github.com/skein-threads/skein/events"

// shares returns the read model of shares: a document for each one that was not revoked.
func shares() Projection {
	type T = events.Share
	return Projection{
		Kind: Shares, Name: "shares", Version: 1, Bucket: "thread_shares",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.ShareCreatedType, subject, func(c *change, d events.ShareCreated) *T {
				return &T{ID: d.ID, ThreadID: c.commit.Thread, CreatedAt: c.time(), ExpiresAt: d.ExpiresAt, Actor: c.event.Actor, Digest: d.Digest}
			}),
			removes(events.ShareRevokedType, subject[events.ShareRevoked]),
			together(events.LifecycleDeletedType),
		},
	}
}
