package client

import (
	"cmp"
	"context"

	"github.com/skein-threads/skein/events"
)

// ListQueue returns what waits for a thread's agent, as of everything committed before
// the call: all of it as one commit left it, or with a limit or a cursor a page.
func (c *Client) ListQueue(ctx context.Context, q events.ListQueue) (*events.QueueList, error) {
	one := q.Limit != nil || q.Cursor != ""
	for {
		moved, seq := false, int64(0)
		list, err := allPages(one, func(cursor string) (*events.QueueList, error) {
			q.Cursor = cmp.Or(cursor, q.Cursor)
			page, err := Read(ctx, c, q)
			if err == nil && cursor == "" {
				seq = page.Seq
			}
			moved = moved || err == nil && page.Seq != seq
			return page, err
		}, func(l *events.QueueList) *string { return &l.NextCursor }, func(all, page *events.QueueList) {
			all.Queued = append(all.Queued, page.Queued...)
		})
		if err != nil || !moved {
			return list, err
		}
		q.Cursor = ""
	}
}
