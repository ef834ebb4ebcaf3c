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

// Strip removes the documents of cold threads of a tenant, and returns for how many. It skips
// threads that are not cold, and threads that became cold less than Config.Settle ago: until then
// a server that loses power may lose the mark.
//
// Strip never removes a document that a runner has just restored for a thread that is no longer
// cold. It first reads the ends of the buckets. Then it writes the mark again, on condition that
// it is still there, which makes a runner that is thawing the thread start over. Then it removes
// only what was stored before those ends.
//
// It also skips threads for which an earlier call has begun the removal, unless again is set,
// because each call interrupts the runner.
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

// has reports whether a bucket may hold documents of the thread.
func (c claimedThread) has(bucket string) bool {
	return c.in == "" || slices.Contains(strings.Split(c.in, ","), bucket)
}

// claim records in the marks of cold threads that their documents are being removed, and returns
// these threads.
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
