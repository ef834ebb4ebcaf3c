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

// held returns the contents of items that may be large. The path is that of the items in the
// request.
func held(items []events.NewItem, path string) []attachment.Held {
	list := make([]attachment.Held, 0, 2*len(items))
	for i := range items {
		at := path + "/" + strconv.Itoa(i)
		list = append(list, attachment.Held{JSON: &items[i].Content, Path: at}, attachment.Held{JSON: &items[i].Metadata, Path: at})
	}
	return list
}

// keepFiles stores the large contents of items in the files of their thread, and refers to them.
func keepFiles(ctx context.Context, c *client.Client, thread string, items []events.NewItem, path string) error {
	return attachment.Store(ctx, c.Files(thread), held(items, path)...)
}

// beginFiles stores the large contents of the items with which a thread begins. It first sends what
// creates the thread, and reports whether it did.
func beginFiles(ctx context.Context, c *client.Client, thread string, create []events.SubCommand, id string, items []events.NewItem, path string) (created bool, err error) {
	if large, err := attachment.Large(held(items, path)...); !large || err != nil {
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
