package eventlog

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
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
	SnapshotBucket = "thread_snapshots" // object store: thread states, see Snapshots
	FileBucket     = "thread_files"     // object store: contents of files, see package files
	ArchiveBucket  = "thread_archive"   // object store: commits of cold threads, see package archive
)

// assets lists the log's own streams.
func (l *Log) assets() []streams.Asset {
	n, c := l.cfg.Names, l.cfg
	return []streams.Asset{
		{Config: jetstream.StreamConfig{
			Name: n.Stream(LogStream), Description: "Skein: commits of threads, the truth. Only Skein writes here.",
			Subjects: []string{n.Log("*", "*")}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardNew, Replicas: c.Replicas, Compression: l.compression(),
			// Deletes are not denied: a purged thread is overwritten on the disk, message by message; see Erase.
			AllowDirect: true, AllowAtomicPublish: true, Duplicates: time.Second,
		}},
		// Before the chunks: a stream that takes all of the timeline would store them.
		{Derived: true, Owns: l.ofTimeline, Widen: l.widened, Config: jetstream.StreamConfig{
			Name: n.Stream(TimelineStream), Description: "Skein: events of threads, one a message; derived from the log.",
			Subjects: timelineSubjects(n), Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardOld, Replicas: c.Replicas, MaxAge: c.TimelineAge,
			AllowDirect: true, PersistMode: l.persist(), Duplicates: time.Second, AllowAtomicPublish: c.Replicas > 1,
		}},
		{Derived: true, Config: jetstream.StreamConfig{
			Name: n.Stream(ChunkStream), Description: "Skein: what executions stream, for those who watch; transport only.",
			Subjects: []string{n.Chunk("*", "*", "*")}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardOld, Replicas: c.Replicas, MaxAge: c.ChunkAge,
			AllowDirect: true, PersistMode: l.persist(), Duplicates: min(time.Second, c.ChunkAge),
			RePublish: &jetstream.RePublish{
				Source:      n.Chunk("*", "*", "*"),
				Destination: n.Timeline("{{wildcard(1)}}", "{{wildcard(2)}}", events.ChunkEmittedType),
			},
		}},
		{Config: jetstream.StreamConfig{
			Name: n.Stream(CommandStream), Description: "Skein: submitted commands that wait to be done.",
			Subjects: []string{n.Submit("*", "*.*")}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardNew, Replicas: c.Replicas, MaxAge: c.CommandAge,
			// Of one command of one tenant; more are refused when they are published.
			MaxMsgsPerSubject: SubmittedAtMost, DiscardNewPerSubject: true,
			AllowDirect: true, Duplicates: 0, Sources: l.noDuplicates(),
		}},
		{Derived: true, Config: jetstream.StreamConfig{
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
	bucket := l.cfg.Names.Bucket(derived.LeaseBucket)
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
func (l *Log) bucket(name string) streams.Asset {
	name = l.cfg.Names.Bucket(name)
	return streams.Asset{Derived: true, Config: jetstream.StreamConfig{
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
		if err := l.conn.Ensure(ctx, a); err != nil {
			return err
		}
	}
	l.conn.Made(l.cfg.Replicas)
	err := l.conn.Patiently(ctx, func(ctx context.Context) error {
		return l.conn.EnsureObjects(ctx, SnapshotBucket, "Skein: states of long threads; derived from the log.")
	})
	if err != nil {
		return err
	}
	for bucket, description := range map[string]string{
		FileBucket:    "Skein: contents of files, by tenant and SHA-256. Only Skein writes here.",
		ArchiveBucket: "Skein: archived commits of threads, by tenant, thread and sequence. Only Skein writes here.",
	} {
		if err := l.conn.Patiently(ctx, func(ctx context.Context) error { return l.conn.EnsureContents(ctx, bucket, description) }); err != nil {
			return err
		}
	}
	return nil
}

// EnsureBucket does the same for a read model's bucket.
func (l *Log) EnsureBucket(ctx context.Context, name string) error {
	return l.conn.Ensure(ctx, l.bucket(name))
}

// timers returns the stream of timers and of what is due. Reads are answered by
// its leader: see queues.Timers.Waits.
func (l *Log) timers() streams.Asset {
	n := l.cfg.Names
	return streams.Asset{Derived: true, Config: jetstream.StreamConfig{
		Name: n.Stream(TimerStream), Description: "Skein: timers, and what is due; derived from the log.",
		Subjects: []string{n.Timer("*", "*", "*"), n.Due("*", "*", "*")}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardOld, Replicas: l.cfg.Replicas, PersistMode: l.persist(), Duplicates: time.Second,
		AllowMsgSchedules: true, AllowRollup: true,
	}}
}

// leases returns the bucket of leases, which expire by themselves.
func (l *Log) leases() streams.Asset {
	a := l.bucket(derived.LeaseBucket)
	a.Config.Description, a.Config.MaxAge, a.Config.PersistMode = "Skein: who runs what, now.", derived.LeaseTTL, jetstream.DefaultPersistMode
	// In memory: a lease that was held when the server went down is gone when it is back,
	// and no process need wait for that.
	a.Config.Storage = jetstream.MemoryStorage
	a.Config.AllowAtomicPublish = false // no fence writes it
	return a
}
