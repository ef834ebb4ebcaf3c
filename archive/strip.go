package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// Strip removes the documents of cold threads of a tenant, and returns of how many. Threads
// that are not cold are left out, and so are those that became cold after Config.Settle before
// now: until then a server that loses power may lose the mark.
//
// No write of a runner is removed that a thread needs when it is no longer cold: the buckets'
// ends are read first; then the mark is written again, on condition that it is still there, so
// that a runner that is bringing the thread back has to begin again; and only what was stored
// before is removed.
//
// A thread of which an earlier call has begun to remove documents is left out, too, unless again
// is set: each call interrupts the runner.
func (a *Archiver) Strip(ctx context.Context, tenant string, ids []string, again bool) (int, error) {
	stripped := 0
	for len(ids) > 0 {
		part := ids[:min(len(ids), frozenTogether)]
		ids = ids[len(part):]
		n, err := a.stripSome(ctx, tenant, part, again)
		if stripped += n; err != nil {
			return stripped, fmt.Errorf("remove the documents of cold threads of %s: %w", tenant, err)
		}
	}
	return stripped, nil
}

func (a *Archiver) stripSome(ctx context.Context, tenant string, ids []string, again bool) (int, error) {
	var ends [documents.Kinds]uint64
	for _, p := range a.models.List() {
		if documents.ColdKinds.Has(p.Kind) {
			var err error
			if ends[p.Kind], err = a.log.Streams().LastSeq(ctx, a.log.Bucket(p.Bucket).Stream()); err != nil {
				return 0, err
			}
		}
	}
	claimed, err := a.claim(ctx, tenant, ids, again)
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	var g errgroup.Group
	g.SetLimit(readTogether)
	for _, p := range a.models.List() {
		if !documents.ColdKinds.Has(p.Kind) || ends[p.Kind] == 0 {
			continue
		}
		bucket := a.log.Bucket(p.Bucket)
		stream, err := a.log.Streams().Stream(ctx, bucket.Stream())
		if err != nil {
			return 0, errors.Join(err, g.Wait())
		}
		for _, c := range claimed {
			if c.has(p.Bucket) {
				of := bucket.Subject(documents.ThreadName(tenant, c.id) + ".>")
				g.Go(func() error {
					return streams.Purge(ctx, stream, jetstream.WithPurgeSubject(of), jetstream.WithPurgeSequence(ends[p.Kind]+1))
				})
			}
		}
	}
	return len(claimed), g.Wait()
}

// claimedThread is a cold thread whose documents are being removed.
type claimedThread struct {
	id string
	in string // see buckets.Mark
}

// has reports whether a bucket may hold documents of it.
func (c claimedThread) has(bucket string) bool {
	return c.in == "" || slices.Contains(strings.Split(c.in, ","), bucket)
}

// claim marks cold threads as those whose documents are being removed, and returns them.
func (a *Archiver) claim(ctx context.Context, tenant string, ids []string, again bool) ([]claimedThread, error) {
	owns, err := a.ownDocuments(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	settled := a.cfg.Now().Add(-a.cfg.Settle).Unix()
	var acks []jetstream.PubAckFuture
	var asked, claimed []claimedThread
	for _, id := range ids {
		own, ok := owns[id]
		mark := buckets.MarkOf(own.Header)
		if !ok || !mark.Cold || mark.Bare && !again || mark.At > settled {
			continue
		}
		in := mark.In
		mark.Bare = true
		ack, err := a.remark(tenant, id, own, mark)
		if err != nil {
			return nil, err
		}
		acks, asked = append(acks, ack), append(asked, claimedThread{id, in})
	}
	for i, c := range asked {
		ok, err := acknowledged(ctx, acks[i])
		if err != nil {
			return nil, err
		}
		if ok {
			claimed = append(claimed, c)
		}
	}
	return claimed, nil
}
