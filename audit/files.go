package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
)

// Contents checks that the contents that threads name are stored, with the size in the log and
// the bytes of their digest. It remembers the digests that it has verified, as threads share
// contents.
type Contents struct {
	store *files.Store // nil: there is none

	mu    sync.Mutex       // guards the fields below
	read  int64            // contents that were read
	whole map[string]int64 // tenant/digest of those that are stored and intact
}

// threadContents are the contents of one thread.
type threadContents struct {
	all    *Contents
	tenant string
	named  map[string]*named // by digest
	gone   bool              // the thread was deleted: the collector may have removed them
}

// named is content that a thread names, with the first place that does.
type named struct {
	digest string
	size   int64
	first  Finding
	wrong  []Finding
}

// NewContents returns a check of the content store of a log.
func NewContents(ctx context.Context, log *eventlog.Log) (*Contents, error) {
	store, err := openContents(ctx, log)
	if err != nil {
		return nil, err
	}
	return &Contents{store: store, whole: map[string]int64{}}, nil
}

// Read returns how many contents were read.
func (c *Contents) Read() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

// Thread implements Check.
func (c *Contents) Thread(tenant, _ string) ThreadCheck {
	return &threadContents{all: c, tenant: tenant, named: map[string]*named{}}
}

// Commit implements ThreadCheck.
func (c *threadContents) Commit(commit *events.Commit) {
	deleted := namedContents(commit, func(e *events.Event, digest string, size int64) {
		c.note(digest, size, Finding{Kind: KindContent, Tenant: commit.Tenant, Thread: commit.Thread, Seq: commit.Seq, Event: e.ID})
	})
	c.gone = c.gone || deleted
}

func (c *threadContents) note(digest string, size int64, place Finding) {
	n := c.named[digest]
	if n == nil {
		n = &named{digest: digest, size: size, first: place}
		c.named[digest] = n
	}
	if n.size != size {
		place.Detail = fmt.Sprintf("content %s has %d bytes according to this event, and %d according to another", digest, size, n.size)
		n.wrong = append(n.wrong, place)
	}
}

// End implements ThreadCheck.
func (c *threadContents) End(ctx context.Context) ([]Finding, error) {
	if c.gone {
		return nil, nil
	}
	var found []Finding
	for _, digest := range slices.Sorted(maps.Keys(c.named)) {
		n := c.named[digest]
		found = append(found, n.wrong...)
		detail, err := c.all.check(ctx, c.tenant, n)
		if err != nil {
			return found, err
		}
		if detail != "" {
			n.first.Detail = detail
			found = append(found, n.first)
		}
	}
	return found, nil
}

// check verifies a content, unless it was verified before, and returns what is wrong with it.
func (c *Contents) check(ctx context.Context, tenant string, n *named) (detail string, err error) {
	key := tenant + "/" + n.digest
	c.mu.Lock()
	size, whole := c.whole[key]
	c.mu.Unlock()
	if whole {
		return n.has(size), nil
	}
	size, detail, err = c.content(ctx, tenant, n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, whole = c.whole[key]; !whole { // another thread may have verified it meanwhile
		c.read++
	}
	if err != nil || detail != "" {
		return detail, err
	}
	c.whole[key] = size
	return n.has(size), nil
}

// has returns the fault of a content of that size.
func (n *named) has(size int64) string {
	if size != n.size {
		return fmt.Sprintf("content %s has %d bytes; the log says %d", n.digest, size, n.size)
	}
	return ""
}

// content reads a whole content, and returns its size, and what is wrong with it.
func (c *Contents) content(ctx context.Context, tenant string, n *named) (size int64, detail string, err error) {
	if c.store == nil {
		return 0, fmt.Sprintf("content %s is missing: there is no content store", n.digest), nil
	}
	for piece, err := range c.store.All(ctx, tenant, n.digest) {
		var missing *files.NotStoredError
		var damaged *files.DamagedError
		switch {
		case errors.As(err, &missing), errors.As(err, &damaged):
			return 0, err.Error(), nil
		case err != nil && unanswered(ctx, err):
			return 0, "", fmt.Errorf("read contents: %w", err)
		case err != nil:
			return 0, fmt.Sprintf("read content %s: %v", n.digest, err), nil
		}
		size += int64(len(piece))
	}
	return size, "", nil
}
