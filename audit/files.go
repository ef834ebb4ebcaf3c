package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
)

// Contents checks that the contents that threads name are in the store, with the
// size that the log says and the bytes that their digest says. It keeps the
// digests of those that it has read, for threads share them.
type Contents struct {
	Read int64 // how many contents were read

	store *files.Store      // nil: there is none
	named map[string]*named // of the thread at hand, by digest
	gone  bool              // the thread was deleted: the collector may have taken them
	whole map[string]bool   // tenant/digest of those that are there and right
}

// named is content that a thread names, and where it does so first.
type named struct {
	digest string
	size   int64
	first  Finding
	wrong  []Finding
}

// NewContents makes the check on the store of a log.
func NewContents(ctx context.Context, log *eventlog.Log) (*Contents, error) {
	store, err := files.Open(ctx, log)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, err
	}
	return &Contents{store: store, named: map[string]*named{}, whole: map[string]bool{}}, nil
}

// Commit implements Check.
func (c *Contents) Commit(commit *events.Commit) {
	for i := range commit.Events {
		e := &commit.Events[i]
		switch d := e.Data.(type) {
		case events.FileWritten:
			if d.Digest != "" {
				c.note(d, Finding{Kind: KindContent, Tenant: commit.Tenant, Thread: commit.Thread, Seq: commit.Seq, Event: e.ID})
			}
		case events.LifecycleDeleted:
			c.gone = true
		}
	}
}

func (c *Contents) note(d events.FileWritten, place Finding) {
	n := c.named[d.Digest]
	if n == nil {
		n = &named{digest: d.Digest, size: d.Size, first: place}
		c.named[d.Digest] = n
	}
	if n.size != d.Size {
		place.Detail = fmt.Sprintf("it says that the content %s has %d bytes, and another event says %d", d.Digest, d.Size, n.size)
		n.wrong = append(n.wrong, place)
	}
}

// End implements Check.
func (c *Contents) End(ctx context.Context, tenant, _ string) ([]Finding, error) {
	list := make([]*named, 0, len(c.named))
	for _, n := range c.named {
		list = append(list, n)
	}
	gone := c.gone
	c.gone = false
	clear(c.named)
	if gone {
		return nil, nil
	}
	slices.SortFunc(list, func(a, b *named) int { return cmp.Compare(a.digest, b.digest) })
	var found []Finding
	for _, n := range list {
		found = append(found, n.wrong...)
		if c.whole[tenant+"/"+n.digest] {
			continue
		}
		detail, err := c.read(ctx, tenant, n)
		switch {
		case err != nil:
			return found, err
		case detail != "":
			n.first.Detail = detail
			found = append(found, n.first)
		default:
			c.whole[tenant+"/"+n.digest] = true
		}
	}
	return found, nil
}

// read reads a content whole, and says what is wrong with it.
func (c *Contents) read(ctx context.Context, tenant string, n *named) (detail string, err error) {
	c.Read++
	if c.store == nil {
		return fmt.Sprintf("the content %s is not there, nor is the store of contents", n.digest), nil
	}
	size := int64(0)
	for piece, err := range c.store.All(ctx, tenant, n.digest) {
		var missing *files.NotStoredError
		var damaged *files.DamagedError
		switch {
		case errors.As(err, &missing), errors.As(err, &damaged):
			return err.Error(), nil
		case err != nil && unanswered(ctx, err):
			return "", fmt.Errorf("reading contents: %w", err)
		case err != nil:
			return fmt.Sprintf("the content %s cannot be read: %v", n.digest, err), nil
		}
		size += int64(len(piece))
	}
	if size != n.size {
		return fmt.Sprintf("the content %s has %d bytes, and the log says %d", n.digest, size, n.size), nil
	}
	return "", nil
}
