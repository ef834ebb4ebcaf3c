package eventlog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// Streams, without their prefix.
const (
	LogStream      = "LOG"
	TimelineStream = "TIMELINE"
	ChunkStream    = "CHUNKS"
	CommandStream  = "COMMANDS"
	RunStream      = "RUNS"
	TimerStream    = "TIMERS"
)

// SubmittedAtMost is how many submitted commands of one name may wait for one
// tenant. The server refuses more, and whoever publishes them is told.
const SubmittedAtMost = 10_000

// Buckets that are not read models.
const (
	LeaseBucket    = "thread_leases"    // who runs what, see Lease
	SnapshotBucket = "thread_snapshots" // object store: thread states, see Snapshots
	FileBucket     = "thread_files"     // object store: contents of files, see package files
	ArchiveBucket  = "thread_archive"   // object store: commits of cold threads, see package archive
)

// AssetError says that a stream or bucket that Skein needs is there, but is
// such that using it would lose data. Nothing was changed.
type AssetError struct {
	Name    string
	Problem string
	Hint    string
}

func (e *AssetError) Error() string {
	return fmt.Sprintf("stream %s: %s; %s", e.Name, e.Problem, e.Hint)
}

// asset is one stream: as it is wanted, and whether it can be made anew.
type asset struct {
	config  jetstream.StreamConfig
	derived bool
	owns    func(subject string) bool // what else it may take already; nil: nothing
}

// assets lists the log's own streams.
func (l *Log) assets() []asset {
	n, c := l.cfg.Names, l.cfg
	return []asset{
		{config: jetstream.StreamConfig{
			Name: n.Stream(LogStream), Description: "Skein: commits of threads, the truth. Only Skein writes here.",
			Subjects: []string{n.Log("*", "*")}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardNew, Replicas: c.Replicas, Compression: l.compression(),
			// Deletes are not denied: a purged thread is overwritten on the disk, message by message; see Erase.
			AllowDirect: true, AllowAtomicPublish: true, Duplicates: time.Second,
		}},
		// Before the chunks: a stream that takes all of the timeline would store them.
		{derived: true, owns: l.ofTimeline, config: jetstream.StreamConfig{
			Name: n.Stream(TimelineStream), Description: "Skein: events of threads, one a message; derived from the log.",
			Subjects: timelineSubjects(n), Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardOld, Replicas: c.Replicas, MaxAge: c.TimelineAge,
			AllowDirect: true, PersistMode: l.persist(), Duplicates: time.Second, AllowAtomicPublish: c.Replicas > 1,
		}},
		{derived: true, config: jetstream.StreamConfig{
			Name: n.Stream(ChunkStream), Description: "Skein: what executions stream, for those who watch; transport only.",
			Subjects: []string{n.Chunk("*", "*", "*")}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardOld, Replicas: c.Replicas, MaxAge: c.ChunkAge,
			AllowDirect: true, PersistMode: l.persist(), Duplicates: min(time.Second, c.ChunkAge),
			RePublish: &jetstream.RePublish{
				Source:      n.Chunk("*", "*", "*"),
				Destination: n.Timeline("{{wildcard(1)}}", "{{wildcard(2)}}", events.ChunkEmittedType),
			},
		}},
		{config: jetstream.StreamConfig{
			Name: n.Stream(CommandStream), Description: "Skein: submitted commands that wait to be done.",
			Subjects: []string{n.Submit("*", "*.*")}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardNew, Replicas: c.Replicas, MaxAge: c.CommandAge,
			// Of one command of one tenant; more are refused when they are published.
			MaxMsgsPerSubject: SubmittedAtMost, DiscardNewPerSubject: true,
			AllowDirect: true, Duplicates: 0, Sources: l.noDuplicates(),
		}},
		{derived: true, config: jetstream.StreamConfig{
			Name: n.Stream(RunStream), Description: "Skein: executions that wait for a worker, or have one; derived from the log.",
			Subjects: []string{n.Run("*", "*")}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardOld, Replicas: c.Replicas, MaxMsgsPerSubject: 1, // one message an execution
			AllowDirect: true, PersistMode: l.persist(), Duplicates: time.Second,
		}},
		l.timers(),
	}
}

// noDuplicates makes the server store every message of a stream, whatever its
// Nats-Msg-Id: the ids are one space for all tenants, so that one tenant could have
// another's commands taken for duplicates, and a command's own id says that it is the
// same. The server has no option for that: 0 is the default window, except for a
// stream with sources, where it is none (stream.go, checkStreamCfg, storeMsgIdLocked).
// So the stream has a source of which nothing ever comes: a key that no lease has.
func (l *Log) noDuplicates() []*jetstream.StreamSource {
	bucket := l.cfg.Names.Bucket(LeaseBucket)
	return []*jetstream.StreamSource{{Name: "KV_" + bucket, FilterSubject: "$KV." + bucket + "._none"}}
}

// persist gives the way in which derived streams are stored: without waiting
// for the disk, where the server allows that.
func (l *Log) persist() jetstream.PersistModeType {
	if l.cfg.Replicas == 1 {
		return jetstream.AsyncPersistMode
	}
	return jetstream.DefaultPersistMode
}

// compression gives the way in which the log is compressed, which alone is kept for
// long enough to be worth it. Not at all on a cluster: nats-server 2.15.2 can append
// to a block that it has compressed, after it was killed and started again, and the
// next start finds a copy that it cannot read (internal/faults met it; filestore.go,
// Truncate).
func (l *Log) compression() jetstream.StoreCompression {
	if l.cfg.Replicas == 1 {
		return jetstream.S2Compression
	}
	return jetstream.NoCompression
}

// Bucket gives the stream of a read model's bucket: a key-value bucket for any
// client, which Skein alone writes.
func (l *Log) bucket(name string) asset {
	name = l.cfg.Names.Bucket(name)
	return asset{derived: true, config: jetstream.StreamConfig{
		Name: "KV_" + name, Description: "Skein: a read model; derived from the log.",
		Subjects: []string{"$KV." + name + ".>"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Replicas: l.cfg.Replicas, MaxMsgsPerSubject: 1, MaxMsgSize: -1,
		AllowDirect: true, AllowRollup: true, DenyDelete: true, PersistMode: l.persist(), Duplicates: time.Second,
		AllowAtomicPublish: l.cfg.Replicas > 1, // see Fence
	}}
}

// Ensure makes the log's streams, or brings them up to date. It returns an
// *AssetError if one is there that would lose data.
func (l *Log) Ensure(ctx context.Context) error {
	for _, a := range append(l.assets(), l.leases()) {
		if err := l.ensure(ctx, a); err != nil {
			return err
		}
	}
	l.copies.Store(int32(l.cfg.Replicas))
	err := l.patiently(ctx, func(ctx context.Context) error {
		return l.ensureObjects(ctx, SnapshotBucket, "Skein: states of long threads; derived from the log.")
	})
	if err != nil {
		return err
	}
	for bucket, description := range map[string]string{
		FileBucket:    "Skein: contents of files, by tenant and SHA-256. Only Skein writes here.",
		ArchiveBucket: "Skein: archived commits of threads, by tenant, thread and sequence. Only Skein writes here.",
	} {
		if err := l.patiently(ctx, func(ctx context.Context) error { return l.ensureContents(ctx, bucket, description) }); err != nil {
			return err
		}
	}
	return nil
}

// ensureContents makes a store that is not derived: one that would lose what is
// put into it is refused.
func (l *Log) ensureContents(ctx context.Context, bucket, description string) error {
	if err := l.ensureObjects(ctx, bucket, description); err != nil {
		return err
	}
	name := "OBJ_" + l.cfg.Names.Bucket(bucket)
	stream, err := l.js.Stream(ctx, name)
	if err != nil {
		return assetFailed(name, err)
	}
	have := stream.CachedInfo().Config
	have.Subjects = have.Subjects[:1] // of chunks; that of names was made with it
	want := jetstream.StreamConfig{Subjects: have.Subjects, Replicas: l.cfg.Replicas}
	if problem := losesData(have, want, asset{config: want}); problem != "" {
		return &AssetError{Name: name, Problem: problem, Hint: "rename or remove that stream, or choose another prefix"}
	}
	return nil
}

// EnsureBucket does the same for a read model's bucket.
func (l *Log) EnsureBucket(ctx context.Context, name string) error {
	return l.ensure(ctx, l.bucket(name))
}

func (l *Log) ensure(ctx context.Context, a asset) error {
	return l.patiently(ctx, func(ctx context.Context) error { return l.ensureOnce(ctx, a) })
}

func (l *Log) ensureOnce(ctx context.Context, a asset) error {
	want := a.config
	stream, err := l.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = l.js.CreateStream(ctx, want)
		return assetFailed(want.Name, err)
	}
	if err != nil {
		return assetFailed(want.Name, err)
	}
	have := stream.CachedInfo().Config
	if a.owns != nil {
		want.Subjects = l.widened(have.Subjects, want.Subjects)
	}
	if problem := losesData(have, want, a); problem != "" {
		return &AssetError{Name: want.Name, Problem: problem, Hint: "rename or remove that stream, or choose another prefix"}
	}
	if a.derived && have.PersistMode != want.PersistMode {
		// The server never lets the mode change. The stream is derived: made
		// anew, it is filled from the log.
		anew := merged(have, want)
		anew.PersistMode = want.PersistMode
		if err := l.js.DeleteStream(ctx, want.Name); err != nil {
			return assetFailed(want.Name, err)
		}
		_, err = l.js.CreateStream(ctx, anew)
		return assetFailed(want.Name, err)
	}
	if same(have, want) {
		return nil
	}
	if want.Duplicates == 0 && have.Duplicates > shortestWindow {
		// The server throws away the ids that are past the window, and takes the new
		// window only then (stream.go, updateWithAdvisory): with one update they may stay
		// for as long as the old one. With two, all are past the window at the second.
		first := merged(have, want)
		first.Duplicates = shortestWindow
		if _, err := l.js.UpdateStream(ctx, first); err != nil {
			return assetFailed(want.Name, err)
		}
		select {
		case <-time.After(shortestWindow):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	_, err = l.js.UpdateStream(ctx, merged(have, want))
	return assetFailed(want.Name, err)
}

// shortestWindow is the shortest in which the server looks for duplicates, besides
// none.
const shortestWindow = 100 * time.Millisecond

// losesData says why an existing stream must not be used, or nothing.
func losesData(have, want jetstream.StreamConfig, a asset) string {
	switch {
	case !takes(have.Subjects, want.Subjects, a.owns):
		return fmt.Sprintf("it takes the subjects %v, not %v", have.Subjects, want.Subjects)
	case have.Retention != want.Retention:
		return fmt.Sprintf("its retention is %v, not %v", have.Retention, want.Retention)
	case have.Storage != want.Storage:
		return "it is kept in memory"
	case have.Mirror != nil || len(have.Sources) > 0 && !sameSources(have.Sources, want.Sources):
		return "it is a mirror or has sources"
	case have.SubjectTransform != nil:
		return "it changes the subjects of messages"
	case have.Sealed:
		return "it is sealed"
	case have.NoAck:
		return "it acknowledges nothing"
	case have.MaxMsgsPerSubject != unlimited(want.MaxMsgsPerSubject) && !(want.DiscardNewPerSubject && (have.DiscardNewPerSubject || have.MaxMsgsPerSubject < 0)):
		return fmt.Sprintf("it keeps %d messages a subject, not %d", have.MaxMsgsPerSubject, unlimited(want.MaxMsgsPerSubject))
	case a.derived:
		return ""
	case have.MaxAge != want.MaxAge && want.MaxAge == 0:
		return fmt.Sprintf("it drops messages after %v", have.MaxAge)
	case have.Discard == jetstream.DiscardOld && (have.MaxMsgs > 0 || have.MaxBytes > 0):
		return "it drops its oldest messages when it is full"
	case have.PersistMode == jetstream.AsyncPersistMode:
		return "it acknowledges messages before they are stored"
	case have.Replicas > max(want.Replicas, 1):
		return fmt.Sprintf("it keeps %d copies, and this process was told to keep %d (--replicas)", have.Replicas, max(want.Replicas, 1))
	}
	return ""
}

func unlimited(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// same reports whether nothing that Skein sets differs.
func same(have, want jetstream.StreamConfig) bool {
	return have.Description == want.Description && have.Replicas == want.Replicas && have.MaxAge == want.MaxAge &&
		have.Discard == want.Discard && have.AllowDirect == want.AllowDirect && have.AllowAtomicPublish == want.AllowAtomicPublish &&
		(have.DenyDelete || !want.DenyDelete) && have.AllowRollup == want.AllowRollup && have.Duplicates == want.Duplicates &&
		have.Compression == want.Compression && have.AllowMsgSchedules == want.AllowMsgSchedules &&
		(!want.DiscardNewPerSubject || have.DiscardNewPerSubject && have.MaxMsgsPerSubject == want.MaxMsgsPerSubject) &&
		slices.Equal(have.Subjects, want.Subjects) && sameRePublish(have.RePublish, want.RePublish) && sameSources(have.Sources, want.Sources)
}

func sameSources(have, want []*jetstream.StreamSource) bool {
	return slices.EqualFunc(have, want, func(a, b *jetstream.StreamSource) bool { return reflect.DeepEqual(a, b) })
}

func sameRePublish(have, want *jetstream.RePublish) bool {
	return have == want || have != nil && want != nil && *have == *want
}

// merged gives what exists with what Skein sets, so that an operator's limits
// and placement stay.
func merged(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	out := have
	out.Description, out.Replicas, out.MaxAge, out.Discard = want.Description, want.Replicas, want.MaxAge, want.Discard
	out.AllowDirect, out.AllowAtomicPublish = want.AllowDirect, want.AllowAtomicPublish
	out.DenyDelete = have.DenyDelete || want.DenyDelete // the server never takes it back
	out.AllowRollup, out.Duplicates, out.Compression = want.AllowRollup, want.Duplicates, want.Compression
	out.AllowMsgSchedules = want.AllowMsgSchedules
	out.Subjects, out.RePublish, out.Sources = want.Subjects, want.RePublish, want.Sources
	if want.DiscardNewPerSubject { // else it is as losesData wants it
		out.DiscardNewPerSubject, out.MaxMsgsPerSubject = true, want.MaxMsgsPerSubject
	}
	return out
}

func assetFailed(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stream %s could not be made ready: %w", name, err)
}
