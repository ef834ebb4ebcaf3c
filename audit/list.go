package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// aggregate is one subject of the log.
type aggregate struct{ tenant, id string }

// listed is an aggregate in the log's list.
type listed struct {
	aggregate
	last uint64 // its last commit when the list was created
	left int64  // how many follow in the list
}

// validAggregate reports whether a name can name an aggregate: a plain subject token.
func validAggregate(id string) bool {
	digest, isKey := strings.CutPrefix(id, "K-")
	return events.ValidThreadID(id) || id == events.TenantAggregate || isKey && len(digest) == 32 && events.ValidID(digest)
}

// Bounds of a list: how many names are fetched at once, how long one batch may take, and how
// long the server keeps an unused list.
const (
	listBatch = 512
	listPause = 2 * time.Second // after which it asks whether there are more
	listWait  = time.Minute     // for a server that reports more
	listAgain = 50 * time.Millisecond
	listKept  = time.Hour
)

// list yields every aggregate of a tenant (of all tenants: "*") in the log, each once. It
// holds eight bytes of each in memory, and no names; the server keeps the list. Where no list
// can be created, as on an auditor's log, the log is read completely first, and the names are
// held.
//
// An aggregate never leaves the log: erasing it leaves a tombstone. While the list is read,
// the commit by which it lists an aggregate may be erased, and the list skips it. So it is
// created a second time: a skipped aggregate is then listed by its tombstone, which is never
// erased. Those of the first list are left out of the second.
//
// Of a block that it cannot read, the server lists nothing, and does not say so. If the list ends
// before the log does, or lacks names that the server knows without its blocks, these are listed
// too.
func list(ctx context.Context, log *eventlog.Log, tenant string) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		if log.Streams().ReadOnly() {
			listRead(ctx, log, tenant, yield)
			return
		}
		var stream jetstream.Stream
		err := log.Streams().Ask(ctx, func(ctx context.Context) (err error) {
			stream, err = log.JetStream().Stream(ctx, log.Config().Names.Stream(assets.LogStream))
			return err
		})
		if err != nil {
			yield(listed{}, fmt.Errorf("list threads of the log: %w", err))
			return
		}
		seen := map[uint64]struct{}{}
		seed := maphash.MakeSeed()
		more, whole := true, true
		take := func(one listed) bool {
			hash := maphash.Comparable(seed, one.aggregate)
			if _, again := seen[hash]; again {
				return true
			}
			seen[hash] = struct{}{}
			more = yield(one, nil)
			return more
		}
		for n := 0; n < 2 && more; n++ {
			complete, err := listOnce(ctx, log, tenant, take)
			if err != nil {
				yield(listed{}, fmt.Errorf("list threads of the log: %w", err))
				return
			}
			whole = whole && complete
		}
		if !more || whole && (tenant != "*" || uint64(len(seen)) >= stream.CachedInfo().State.NumSubjects) {
			return
		}
		if err := listKnown(ctx, log, tenant, take); err != nil {
			yield(listed{}, fmt.Errorf("list threads of the log: %w", err))
		}
	}
}

// listKnown passes the aggregates whose names the server knows to take, until it returns false.
// Where their commits are is not known: they are listed at the end of the log.
func listKnown(ctx context.Context, log *eventlog.Log, tenant string, take func(listed) bool) error {
	names := log.Config().Names
	var info *jetstream.StreamInfo
	err := log.Streams().Ask(ctx, func(ctx context.Context) error {
		stream, err := log.JetStream().Stream(ctx, names.Stream(assets.LogStream))
		if err == nil {
			info, err = stream.Info(ctx, jetstream.WithSubjectFilter(names.Log(tenant, "*")))
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		if tenant, id, ok := names.ParseLog(subject); ok && !take(listed{aggregate{tenant, id}, info.State.LastSeq, 0}) {
			return nil
		}
	}
	return nil
}

// listOnce passes the log's current aggregates to take, in the order of their last commits,
// until take returns false. One that is written to meanwhile may be listed twice. It reports
// whether the list went as far as the log.
func listOnce(ctx context.Context, log *eventlog.Log, tenant string, take func(listed) bool) (complete bool, err error) {
	names := log.Config().Names
	stream := names.Stream(assets.LogStream)
	config := jetstream.ConsumerConfig{
		Name: rand.Text(), DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: names.Log(tenant, "*"), HeadersOnly: true,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: listKept,
	}
	var consumer jetstream.Consumer
	err = log.Streams().Ask(ctx, func(ctx context.Context) (err error) {
		consumer, err = log.JetStream().CreateConsumer(ctx, stream, config)
		return err
	})
	if err != nil {
		return false, err
	}
	name := consumer.CachedInfo().Name
	defer func() { // even if ctx has ended
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), listWait)
		defer cancel()
		_ = log.JetStream().DeleteConsumer(ending, stream, name) // the server expires it anyway
	}()
	end, err := lastOf(ctx, log, names.Log(tenant, "*")) // after the list was created: later commits are not in it
	if err != nil || consumer.CachedInfo().NumPending == 0 {
		return end == 0, err
	}
	given, lastReply, silent := uint64(0), time.Now(), 0
	for at := uint64(0); at < end; {
		// The server's count of what is left does not show the end: it subtracts what is
		// erased even if that is not in the list.
		batch, err := consumer.Fetch(listBatch, jetstream.FetchMaxWait(listPause))
		if err != nil {
			return false, err
		}
		got := 0
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			got++
			if given++; err != nil || meta.Sequence.Consumer != given {
				return false, fmt.Errorf("list threads: interrupted after %d; start again", given-1)
			}
			at = meta.Sequence.Stream
			if tenant, id, ok := names.ParseLog(m.Subject()); ok && !take(listed{aggregate{tenant, id}, at, int64(meta.NumPending)}) {
				return true, nil
			}
			if at >= end {
				return true, nil
			}
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if got > 0 {
			lastReply, silent = time.Now(), 0
			continue
		}
		// On a cluster the server of this connection learns of a consumer a little later.
		if errors.Is(batch.Error(), nats.ErrNoResponders) && time.Since(lastReply) < listWait {
			retry.Sleep(ctx, listAgain)
			continue
		}
		// The last entry of the list may have been erased since: a server that reports twice
		// that it has no more is at the end.
		var info *jetstream.ConsumerInfo
		err = log.Streams().Ask(ctx, func(ctx context.Context) (err error) {
			info, err = consumer.Info(ctx)
			return err
		})
		switch silent++; {
		case err != nil:
			return false, err
		case info.NumPending == 0 && silent >= 2:
			return false, nil
		case time.Since(lastReply) > listWait:
			return false, errors.Join(fmt.Errorf("list threads: the server reports %d more, but sent none within %v", info.NumPending, listWait), batch.Error())
		}
	}
	return true, nil
}

// lastOf returns the sequence of the log's last commit under a subject, 0 if there is none, and
// that of the whole log if the commit cannot be read.
func lastOf(ctx context.Context, log *eventlog.Log, subject string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	stream, err := log.JetStream().Stream(ctx, log.Config().Names.Stream(assets.LogStream))
	if err != nil {
		return 0, err
	}
	m, err := stream.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
		if err != nil || len(info.State.Subjects) == 0 {
			return 0, err
		}
		return info.State.LastSeq, nil
	case err != nil:
		return 0, err
	}
	return m.Sequence, nil
}

// listRead does the same as list, by reading every commit.
func listRead(ctx context.Context, log *eventlog.Log, tenant string, yield func(listed, error) bool) {
	names := log.Config().Names
	last := map[aggregate]uint64{}
	for m, err := range log.Stored(ctx, names.Log(tenant, "*"), 1) {
		if err != nil {
			yield(listed{}, fmt.Errorf("list threads of the log: %w", err))
			return
		}
		if tenant, id, ok := names.ParseLog(m.Subject); ok {
			last[aggregate{tenant, id}] = m.Seq
		}
	}
	all := make([]listed, 0, len(last))
	for a, seq := range last {
		all = append(all, listed{aggregate: a, last: seq})
	}
	slices.SortFunc(all, func(a, b listed) int { return cmp.Compare(a.last, b.last) })
	for i, one := range all {
		one.left = int64(len(all) - i - 1)
		if !yield(one, nil) {
			return
		}
	}
}

// Range selects commits: from a sequence or time to another, both included. The zero value of
// a field sets no bound. The time of a commit is when the log stored it.
type Range struct {
	From, To         uint64
	FromTime, ToTime time.Time
}

// whole reports whether the range sets no bound.
func (r Range) whole() bool { return r == Range{} }

// sequences returns the first and the last sequence of the range, which ends at end at the
// latest.
func (r Range) sequences(ctx context.Context, log *eventlog.Log, end uint64) (first, last uint64, err error) {
	first, last = max(r.From, 1), end
	if r.To != 0 {
		last = min(last, r.To)
	}
	if !r.FromTime.IsZero() {
		seq, err := firstSince(ctx, log, r.FromTime, end)
		if err != nil {
			return 0, 0, err
		}
		first = max(first, seq)
	}
	if !r.ToTime.IsZero() {
		seq, err := firstSince(ctx, log, r.ToTime.Add(time.Nanosecond), end)
		if err != nil {
			return 0, 0, err
		}
		last = min(last, seq-1)
	}
	return first, last, nil
}

// ahead reads the log once in its own order, ahead of the checks, and keeps the commits of the
// aggregates that are not complete yet. The list has the aggregates in the order of their last
// commits, so that one whose commits lie close together needs no request of its own. What
// exceeds the bounds is dropped, oldest first; its aggregates are read one by one.
type ahead struct {
	next func() (streams.Message, error, bool)
	stop func()
	upTo uint64 // what was read; math.MaxUint64: the reading has ended

	bytes int
	order []aggregate // of the messages, the oldest first
	held  map[aggregate][]streams.Message
	gone  map[uint64]struct{} // digests of aggregates of which messages were dropped
	seed  maphash.Seed
}

// Bounds of what is held.
const (
	aheadBytes    = 8 << 20
	aheadEach     = 128 << 10 // of one aggregate: a longer one is worth a request
	aheadMessages = 16 << 10

	aheadChunk = 1 << 20 // of bytes that are received, and not looked at yet
)

// readAhead begins to read the log of a tenant, or of all.
func readAhead(ctx context.Context, log *eventlog.Log, tenant string) *ahead {
	r := &ahead{held: map[aggregate][]streams.Message{}, gone: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
	r.next, r.stop = iter.Pull2(streams.Prefetch(ctx, aheadChunk, sizeOfOne, func(ctx context.Context) iter.Seq2[streams.Message, error] {
		return log.Stored(ctx, log.Config().Names.Log(tenant, "*"), 1)
	}))
	return r
}

// take returns the commits that the log has of an aggregate, up to the last one that the list
// names, and forgets them; nil if it does not have all of them.
func (r *ahead) take(names events.Names, one listed) []streams.Message {
	for r.upTo < one.last {
		m, err, more := r.next()
		if err != nil || !more { // what is damaged is found where it is read again
			r.upTo = math.MaxUint64
			break
		}
		r.upTo = m.Seq
		if tenant, id, ok := names.ParseLog(m.Subject); ok {
			r.hold(aggregate{tenant, id}, m)
		}
	}
	commits := r.release(one.aggregate)
	if len(commits) == 0 || commits[len(commits)-1].Seq != one.last {
		return nil
	}
	for _, m := range commits {
		if bytes.Contains(m.Data, []byte(events.LifecycleArchivedType)) { // others are in an archive
			return nil
		}
	}
	return commits
}

// release forgets what is held of an aggregate, and returns it.
func (r *ahead) release(a aggregate) []streams.Message {
	commits := r.held[a]
	delete(r.held, a)
	r.bytes -= sizeOf(commits)
	return commits
}

func (r *ahead) hold(a aggregate, m streams.Message) {
	digest := maphash.Comparable(r.seed, a)
	if _, dropped := r.gone[digest]; dropped {
		return
	}
	r.held[a] = append(r.held[a], m)
	r.order = append(r.order, a)
	r.bytes += sizeOf(r.held[a][len(r.held[a])-1:])
	if sizeOf(r.held[a]) > aheadEach {
		r.release(a)
		r.gone[digest] = struct{}{}
	}
	for r.bytes > aheadBytes || len(r.order) > aheadMessages {
		oldest := r.order[0]
		if r.order = r.order[1:]; len(r.release(oldest)) > 0 { // else it was taken
			r.gone[maphash.Comparable(r.seed, oldest)] = struct{}{}
		}
	}
}

// sizeOf estimates the memory of messages.
func sizeOf(list []streams.Message) (n int) {
	for _, m := range list {
		n += sizeOfOne(m)
	}
	return n
}

func sizeOfOne(m streams.Message) int { return len(m.Data) + 1<<10 }
