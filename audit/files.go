package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
)

// named is content that the log names, and where it does so first.
type named struct {
	tenant, digest string
	size           int64
	first          Finding
	threads        map[string]bool // that name it and are not deleted
}

// noteFile notes what an event says of contents.
func (v *verifier) noteFile(a aggregate, e *events.Event, place Finding) {
	switch d := e.Data.(type) {
	case events.FileWritten:
		if d.Digest == "" {
			return
		}
		key := a.tenant + "/" + d.Digest
		n := v.named[key]
		if n == nil {
			n = &named{tenant: a.tenant, digest: d.Digest, size: d.Size, first: place, threads: map[string]bool{}}
			v.named[key] = n
		}
		n.threads[a.id] = true
		if n.size != d.Size {
			place.Kind, place.Detail = KindContent, fmt.Sprintf("it says that the content %s has %d bytes, and another event says %d", d.Digest, d.Size, n.size)
			v.find(place)
		}
	case events.LifecycleDeleted: // the collector may have taken them
		for _, n := range v.named {
			delete(n.threads, a.id)
		}
	}
}

// contents checks that everything that the log names is in the store, with the
// size that the log says and the bytes that its digest says.
func (v *verifier) contents(ctx context.Context) error {
	var list []*named
	for _, n := range v.named {
		if len(n.threads) > 0 {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *named) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.digest, b.digest))
	})
	store, err := files.Open(ctx, v.log)
	if err != nil {
		return err
	}
	for _, n := range list {
		v.summary.Contents++
		size := int64(0)
		for piece, err := range store.All(ctx, n.tenant, n.digest) {
			var missing *files.NotStoredError
			var damaged *files.DamagedError
			switch {
			case errors.As(err, &missing), errors.As(err, &damaged):
				n.first.Kind, n.first.Detail = KindContent, err.Error()
				v.find(n.first)
				size = n.size // it was told
			case err != nil:
				return fmt.Errorf("reading contents: %w", err)
			default:
				size += int64(len(piece))
			}
		}
		if size != n.size {
			n.first.Kind, n.first.Detail = KindContent, fmt.Sprintf("the content %s has %d bytes, and the log says %d", n.digest, size, n.size)
			v.find(n.first)
		}
	}
	return nil
}
