package openresponses

import (
	"context"
	"math"
	"strconv"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/internal/attachment"
)

// extracted replaces the large contents of items, which is where a file is refused that is too
// large. The path is that of the items in the request.
func extracted(items []events.NewItem, path string, store func(attachment.Content) error) error {
	for i := range items {
		for _, raw := range []*events.JSON{&items[i].Content, &items[i].Metadata} {
			out, err := attachment.Extract(*raw, attachment.ItemBytes, store)
			if err != nil {
				e := *events.AsError(err)
				if e.Code == events.PayloadTooLarge {
					details := *e.Details
					details.Path = path + "/" + strconv.Itoa(i)
					e.Details = &details
				}
				return &e
			}
			*raw = out
		}
	}
	return nil
}

// holdsFiles reports whether items hold contents that keepFiles would store, and refuses a file that
// is too large.
func holdsFiles(items []events.NewItem, path string) (found bool, err error) {
	looked := make([]events.NewItem, len(items))
	copy(looked, items)
	err = extracted(looked, path, func(attachment.Content) error {
		found = true
		return nil
	})
	return found, err
}

// keepFiles stores the large contents of items in the files of their thread, and refers to them.
func keepFiles(ctx context.Context, c *client.Client, thread string, items []events.NewItem, path string) error {
	return extracted(items, path, attachment.Keep(ctx, c.Files(thread)))
}

// beginFiles stores the large contents of the items with which a thread begins. It first sends what
// creates the thread, and reports whether it did.
func beginFiles(ctx context.Context, c *client.Client, thread string, create []events.SubCommand, id string, items []events.NewItem, path string) (created bool, err error) {
	if found, err := holdsFiles(items, path); !found || err != nil {
		return false, err
	}
	if _, err := c.Commit(ctx, thread, create, client.CommandID(id+"-files")); err != nil {
		return false, err
	}
	return true, keepFiles(ctx, c, thread, items, path)
}

// withFiles returns an item of another thread with its files in place of the references.
func withFiles(ctx context.Context, c *client.Client, thread string, o transform.Item) (transform.Item, error) {
	left := int64(math.MaxInt64)
	var err error
	for _, raw := range []*events.JSON{&o.Content, &o.Output} {
		if *raw, err = attachment.Load(ctx, c.Files(thread), *raw, &left); err != nil {
			return o, err
		}
	}
	return o, nil
}
