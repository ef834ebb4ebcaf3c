package archive

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// mark marks threads as cold, on condition that their documents have not changed.
func (a *Archiver) mark(ctx context.Context, tenant string, idle []warmThread, done func(Result)) error {
	acks := make([]jetstream.PubAckFuture, len(idle))
	for i, w := range idle {
		var err error
		if acks[i], err = a.remark(tenant, w.id, w.own, buckets.Mark{Cold: true, In: a.bucketNames(w.in), At: a.cfg.Now().Unix()}); err != nil {
			return err
		}
	}
	for i, w := range idle {
		r := Result{Tenant: tenant, Thread: w.id, Outcome: Frozen}
		switch marked, err := acknowledged(ctx, acks[i]); {
		case err != nil:
			return err
		case !marked:
			r.Outcome = Moved
		}
		done(r)
	}
	return nil
}

// bucketNames returns the names of the buckets of some read models, in the form of
// [buckets.Mark].In.
func (a *Archiver) bucketNames(of documents.Mask) string {
	var names []string
	for _, p := range a.models.List() {
		if of.Has(p.Kind) {
			names = append(names, p.Bucket)
		}
	}
	return strings.Join(names, ",")
}

// remark writes a thread's own document again with a mark, on condition that it has not changed.
func (a *Archiver) remark(tenant, id string, own streams.Message, mark buckets.Mark) (jetstream.PubAckFuture, error) {
	bucket := a.log.Bucket(a.models.Of(documents.Threads).Bucket)
	header := mark.Header()
	header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(own.Seq, 10)}
	header[jetstream.MsgIDHeader] = []string{rand.Text()} // so that the runner's fence sees it
	return a.log.JetStream().PublishMsgAsync(&nats.Msg{Subject: bucket.Subject(documents.ThreadName(tenant, id)), Data: own.Data, Header: header})
}

// acknowledged waits for a write, and reports false if the key was changed by another writer.
func acknowledged(ctx context.Context, ack jetstream.PubAckFuture) (bool, error) {
	select {
	case <-ack.Ok():
		return true, nil
	case err := <-ack.Err():
		if buckets.IsConflict(err) {
			return false, nil
		}
		return false, err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
