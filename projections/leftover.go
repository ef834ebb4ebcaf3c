package projections

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/documents"
)

// sweptTogether is how many ended threads are looked for with one read of a bucket.
const sweptTogether = 256

// sweepEnded removes documents of threads that have ended. There are none, unless a
// server was killed and brought back what was purged. The bucket of threads keeps a
// marker of each thread that has ended.
//
// It needs no lease, and may run alongside a runner: nobody writes documents of a
// thread behind its marker, and each of its own writes is conditional on what it
// replaces.
func (r *Runner) sweepEnded(ctx context.Context) error {
	threads := r.models.Of(documents.Threads).Bucket
	ended := map[string]uint64{}
	for m, err := range r.log.Streams().List(ctx, "KV_"+r.log.Config().Names.Bucket(threads), jetstream.OrderedConsumerConfig{HeadersOnly: true}) {
		if err != nil {
			return fmt.Errorf("listing the threads that have ended: %w", err)
		}
		seq, removed := markerSeq(m.Headers())
		if _, ok := documents.ParsePlace(documents.Threads, r.keyOf(threads, m.Subject())); !ok || !removed {
			continue
		}
		ended[r.keyOf(threads, m.Subject())] = seq
		if len(ended) == sweptTogether {
			if err := r.sweepThreads(ctx, ended); err != nil {
				return err
			}
			clear(ended)
		}
	}
	return r.sweepThreads(ctx, ended)
}

// markerSeq returns the sequence in the log of the commit that removed a document,
// and whether these are the headers of a marker at all.
func markerSeq(header nats.Header) (seq uint64, removed bool) {
	if header.Get(headerOperation) == "" {
		return 0, false
	}
	seq, _ = strconv.ParseUint(header.Get(headerSeq), 10, 64)
	return seq, true
}

// sweepThreads removes what the buckets hold of some ended threads, which are given
// with the sequences of their ends.
func (r *Runner) sweepThreads(ctx context.Context, ended map[string]uint64) error {
	if len(ended) == 0 {
		return nil
	}
	var (
		sweeping sync.WaitGroup
		mu       sync.Mutex // guards what follows
		failed   []error
		swept    = map[string]bool{}
	)
	for _, p := range r.models.List() {
		if p.Kind == documents.Threads || p.Kind == documents.Definitions {
			continue
		}
		sweeping.Go(func() {
			found, err := r.leftover(ctx, p, ended)
			if err == nil {
				err = r.removeLeftover(ctx, p, found, ended)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, fmt.Errorf("documents of ended threads in the bucket of %s: %w", p.Name, err))
			}
			for name := range found {
				swept[name] = true
			}
		})
	}
	sweeping.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for name := range swept {
		tenant, thread, _ := cutName(name)
		r.logger.Info().Str("tenant", tenant).Str("thread", thread).Msg("documents of a deleted thread, which the server had brought back after a crash, were removed again")
	}
	return nil
}

// leftover reads what a bucket holds of ended threads, markers too.
func (r *Runner) leftover(ctx context.Context, p documents.Projection, ended map[string]uint64) (map[string][]streams.Message, error) {
	patterns := make([]string, 0, len(ended))
	for name := range ended {
		patterns = append(patterns, name+".>")
	}
	got, err := r.log.Bucket(p.Bucket).GetWithMarkers(ctx, patterns...)
	if errors.Is(err, streams.ErrTooMany) { // a page or more of each
		got = nil
		for _, pattern := range patterns {
			several, err := readAll(ctx, r.log, p.Bucket, pattern)
			if err != nil {
				return nil, err
			}
			got = append(got, several...)
		}
	} else if err != nil {
		return nil, err
	}
	found := map[string][]streams.Message{}
	for _, m := range got {
		if parts := strings.SplitN(m.Subject, ".", 3); len(parts) == 3 {
			name := documents.ThreadName(parts[0], parts[1])
			found[name] = append(found[name], m)
		}
	}
	return found, nil
}

// removeLeftover puts a marker in place of each document, and then purges both.
func (r *Runner) removeLeftover(ctx context.Context, p documents.Projection, found map[string][]streams.Message, ended map[string]uint64) error {
	if len(found) == 0 {
		return nil
	}
	stream, err := r.log.JetStream().Stream(ctx, "KV_"+r.log.Config().Names.Bucket(p.Bucket))
	if err != nil {
		return err
	}
	for name, list := range found {
		for _, m := range list {
			if _, removed := markerSeq(m.Header); removed {
				continue
			}
			header := marker(ended[name])
			header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(m.Seq, 10)}
			header[jetstream.MsgIDHeader] = []string{nuid.Next()} // so that the runner's fence sees it
			_, err := r.log.JetStream().PublishMsg(ctx, &nats.Msg{Subject: r.subjectOf(p.Bucket, m.Subject), Header: header})
			if err != nil && !isConflict(err) { // else another process sweeps too
				return err
			}
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(r.subjectOf(p.Bucket, name+".>"))); err != nil {
			return err
		}
	}
	return nil
}
