package cleanup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// sweptTogether is how many deleted threads are searched for with one read of a bucket.
const sweptTogether = 256

// Sweep removes documents of deleted threads, which exist only if a server was killed and has
// restored purged documents. Notes name the threads to check. An older Skein writes no notes: if
// one has removed documents last, or within the last minutes, all deleted threads are checked.
//
// It needs no lease, and may run alongside a runner: no process writes documents of a thread after
// its marker, and each write of Sweep is conditional on the message that it replaces.
func (c *Cleaner) Sweep(ctx context.Context) error {
	swept, err := c.sweep(ctx)
	if swept > 0 {
		c.logger.Info().Int("threads", swept).Msg("documents of deleted threads, which the server had restored after a crash, were removed again")
	}
	return err
}

// sweep is Sweep, and returns for how many threads it has removed documents.
func (c *Cleaner) sweep(ctx context.Context) (swept int, err error) {
	bucket := c.log.Bucket(c.models.Of(documents.Threads).Bucket)
	checkpoint, err := buckets.ReadCheckpoint(ctx, c.log, c.models.Of(documents.Threads))
	if err != nil {
		return 0, err
	}
	if checkpoint.Checkpoint == nil || !checkpoint.Removals {
		return c.sweepAll(ctx, bucket)
	}
	deleted, broken, err := removed(ctx, bucket)
	if err != nil {
		return 0, err
	}
	if broken != "" {
		c.logger.Error().Str("key", broken).Msg("a note of removed documents cannot be read; all deleted threads are looked for instead")
		return c.sweepAll(ctx, bucket)
	}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(deleted)), sweptTogether) {
		part := make(map[string]uint64, len(names))
		for _, name := range names {
			part[name] = deleted[name]
		}
		n, err := c.sweepThreads(ctx, part)
		if swept += n; err != nil {
			return swept, err
		}
	}
	return swept, nil
}

// removed returns the threads, by name, that may have documents restored by a killed server, with
// the sequences of their tombstones. broken is the key of a note that cannot be read.
func removed(ctx context.Context, threads streams.Bucket) (deleted map[string]uint64, broken string, err error) {
	if err := threads.ShowsAll(ctx); err != nil {
		return nil, "", err
	}
	notes, err := threads.All(ctx, buckets.RemovalPrefix+">")
	if err != nil {
		return nil, "", fmt.Errorf("reading the notes of removed documents: %w", err)
	}
	deleted = map[string]uint64{}
	for _, m := range notes {
		note, ok := buckets.ParseRemoval(m.Data)
		if !ok {
			return nil, m.Subject, nil
		}
		maps.Copy(deleted, note.Threads)
	}
	return deleted, "", nil
}

// sweepAll sweeps all deleted threads. The bucket of threads keeps a marker of each.
func (c *Cleaner) sweepAll(ctx context.Context, threads streams.Bucket) (swept int, err error) {
	deleted := map[string]uint64{}
	for m, err := range c.log.Streams().List(ctx, threads.Stream(), jetstream.OrderedConsumerConfig{HeadersOnly: true}) {
		if err != nil {
			return swept, fmt.Errorf("listing the deleted threads: %w", err)
		}
		key := threads.Key(m.Subject())
		seq, removed := buckets.MarkerSeq(m.Headers())
		if _, ok := documents.ParsePlace(documents.Threads, key); !ok || !removed {
			continue
		}
		deleted[key] = seq
		if len(deleted) == sweptTogether {
			n, err := c.sweepThreads(ctx, deleted)
			if swept += n; err != nil {
				return swept, err
			}
			clear(deleted)
		}
	}
	n, err := c.sweepThreads(ctx, deleted)
	return swept + n, err
}

// sweepThreads removes the documents of some deleted threads, which are given by name with the
// sequences of their tombstones. It returns how many of them had documents.
func (c *Cleaner) sweepThreads(ctx context.Context, deleted map[string]uint64) (int, error) {
	if len(deleted) == 0 {
		return 0, nil
	}
	var (
		sweeping sync.WaitGroup
		mu       sync.Mutex // guards what follows
		failed   []error
		swept    = map[string]bool{}
	)
	for _, p := range c.models.List() {
		if p.Kind == documents.Threads || p.Kind == documents.Definitions {
			continue
		}
		sweeping.Go(func() {
			found, err := c.leftover(ctx, p, deleted)
			if err == nil {
				err = c.removeLeftover(ctx, p, found, deleted)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, fmt.Errorf("sweeping documents of deleted threads in the bucket of %s: %w", p.Name, err))
			}
			for name := range found {
				swept[name] = true
			}
		})
	}
	sweeping.Wait()
	return len(swept), errors.Join(failed...)
}

// leftover reads the documents of deleted threads in a bucket. It includes markers, unless one
// read does not return everything.
func (c *Cleaner) leftover(ctx context.Context, p documents.Projection, deleted map[string]uint64) (map[string][]streams.Message, error) {
	patterns := make([]string, 0, len(deleted))
	for name := range deleted {
		patterns = append(patterns, name+".>")
	}
	got, err := c.log.Bucket(p.Bucket).GetWithMarkers(ctx, patterns...)
	if errors.Is(err, streams.ErrTooMany) {
		got, err = c.log.Bucket(p.Bucket).All(ctx, patterns...)
	}
	if err != nil {
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

// removeLeftover replaces each document by a marker, and then purges the markers.
func (c *Cleaner) removeLeftover(ctx context.Context, p documents.Projection, found map[string][]streams.Message, deleted map[string]uint64) error {
	if len(found) == 0 {
		return nil
	}
	bucket := c.log.Bucket(p.Bucket)
	stream, err := c.log.Streams().Stream(ctx, bucket.Stream())
	if err != nil {
		return err
	}
	for name, list := range found {
		for _, m := range list {
			if _, removed := buckets.MarkerSeq(m.Header); removed {
				continue
			}
			header := buckets.Marker(deleted[name])
			header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(m.Seq, 10)}
			header[jetstream.MsgIDHeader] = []string{rand.Text()} // so that the runner's fence sees it
			_, err := c.log.JetStream().PublishMsg(ctx, &nats.Msg{Subject: bucket.Subject(m.Subject), Header: header})
			if err != nil && !buckets.IsConflict(err) { // after a conflict another process sweeps, too
				return err
			}
		}
		if err := streams.Purge(ctx, stream, jetstream.WithPurgeSubject(bucket.Subject(name+".>"))); err != nil {
			return err
		}
	}
	return nil
}
