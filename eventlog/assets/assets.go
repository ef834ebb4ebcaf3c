package assets

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Ages says how long streams keep their messages. All are required.
type Ages struct {
	Timeline time.Duration // an event of the timeline
	Chunk    time.Duration // a chunk of an execution
	Command  time.Duration // a submitted command that waits
}

// Ensure creates the streams, or brings them up to date. It returns a
// *[streams.AssetError] if one exists that would lose data, and a *[format.NewerError] if a newer
// Skein has stored the log.
func Ensure(ctx context.Context, conn *streams.Conn, ages Ages) error {
	for _, a := range append(settingsFor(conn).streams(ages), derived.LeaseStream(conn.Config()), Sessions(conn)) {
		if err := conn.Ensure(ctx, a); err != nil {
			return err
		}
	}
	conn.Made(conn.Config().Replicas)
	err := conn.Patiently(ctx, func(ctx context.Context) error {
		return conn.EnsureObjects(ctx, SnapshotBucket, "Skein: states of long threads; derived from the log.")
	})
	if err != nil {
		return err
	}
	for bucket, description := range map[string]string{
		FileBucket:    "Skein: contents of files, by tenant and SHA-256. Only Skein writes here.",
		ArchiveBucket: "Skein: archived commits of threads, by tenant, thread and sequence. Only Skein writes here.",
	} {
		if err := conn.Patiently(ctx, func(ctx context.Context) error { return conn.EnsureContents(ctx, bucket, description) }); err != nil {
			return err
		}
	}
	return nil
}

// EnsureBucket creates the bucket of a read model, or brings it up to date.
func EnsureBucket(ctx context.Context, conn *streams.Conn, name string) error {
	return conn.Ensure(ctx, settingsFor(conn).bucket(name))
}

// settings is what the definitions of the streams depend on.
type settings struct {
	names    events.Names
	replicas int
	embedded bool
}

func settingsFor(conn *streams.Conn) settings {
	return settings{names: conn.Config().Names, replicas: conn.Config().Replicas, embedded: conn.Embedded()}
}

// streams lists the streams that are no buckets.
func (s settings) streams(ages Ages) []streams.Asset {
	n := s.names
	return []streams.Asset{
		{Config: jetstream.StreamConfig{
			Name: n.Stream(LogStream), Description: "Skein: commits of threads, the truth. Only Skein writes here.",
			Subjects: []string{n.Log("*", "*")}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardNew, Replicas: s.replicas, Compression: s.compression(),
			// Deletes are not denied: a purged thread is overwritten on the disk, message by
			// message; see streams.Conn.Erase.
			AllowDirect: true, AllowAtomicPublish: true, Duplicates: time.Second,
			Metadata: streams.FormatMetadata(),
		}},
		// Before the chunks: a stream that takes all of the timeline would store them.
		{Derived: true, Owns: s.ownsOnTimeline, Widen: s.widened, Config: jetstream.StreamConfig{
			Name: n.Stream(TimelineStream), Description: "Skein: events of threads, one a message; derived from the log.",
			Subjects: timelineSubjects(n), Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardOld, Replicas: s.replicas, MaxAge: ages.Timeline, Compression: s.derivedCompression(),
			AllowDirect: true, PersistMode: s.persistMode(), Duplicates: time.Second, AllowAtomicPublish: s.replicas > 1,
		}},
		{Derived: true, Config: jetstream.StreamConfig{
			Name: n.Stream(ChunkStream), Description: "Skein: what executions stream, for those who watch; transport only.",
			Subjects: []string{n.Chunk("*", "*", "*")}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardOld, Replicas: s.replicas, MaxAge: ages.Chunk,
			AllowDirect: true, PersistMode: s.persistMode(), Duplicates: min(time.Second, ages.Chunk),
			RePublish: &jetstream.RePublish{
				Source:      n.Chunk("*", "*", "*"),
				Destination: n.Timeline("{{wildcard(1)}}", "{{wildcard(2)}}", events.ChunkEmittedType),
			},
		}},
		{Config: jetstream.StreamConfig{
			Name: n.Stream(CommandStream), Description: "Skein: submitted commands that wait to be done.",
			Subjects: []string{n.Submit("*", "*.*")}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardNew, Replicas: s.replicas, MaxAge: ages.Command,
			// Of one command of one tenant; more are refused when they are published.
			MaxMsgsPerSubject: SubmittedAtMost, DiscardNewPerSubject: true,
			AllowDirect: true, Duplicates: 0, Sources: s.noDuplicates(),
		}},
		{Derived: true, Config: jetstream.StreamConfig{
			Name: n.Stream(RunStream), Description: "Skein: executions that wait for a worker, or have one; derived from the log.",
			Subjects: []string{n.Run("*", "*")}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardOld, Replicas: s.replicas, MaxMsgsPerSubject: 1, // one message an execution
			AllowDirect: true, PersistMode: s.persistMode(), Duplicates: time.Second,
		}},
		// Reads of timers are answered by the leader: see queues.Timers.Waits.
		{Derived: true, Config: jetstream.StreamConfig{
			Name: n.Stream(TimerStream), Description: "Skein: timers, and what is due; derived from the log.",
			Subjects: []string{n.Timer("*", "*", "*"), n.Due("*", "*", "*")}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardOld, Replicas: s.replicas, PersistMode: s.persistMode(), Duplicates: time.Second,
			AllowMsgSchedules: true, AllowRollup: true,
		}},
	}
}

// noDuplicates returns the sources with which the server stores every message of a stream,
// whatever its Nats-Msg-Id. The ids are one space for all tenants, so one tenant could make
// another tenant's commands look like duplicates; and a command that is sent twice is
// recognized by its own id. The server has no option for that: 0 is the default window,
// except for a stream with sources, where it means none (stream.go, checkStreamCfg,
// storeMsgIdLocked). So the stream has a source that never delivers anything: a key that no
// lease has.
func (s settings) noDuplicates() []*jetstream.StreamSource {
	bucket := s.names.Bucket(derived.LeaseBucket)
	return []*jetstream.StreamSource{{Name: "KV_" + bucket, FilterSubject: "$KV." + bucket + "._none"}}
}

// persistMode returns how derived streams are stored: without waiting for the disk, where
// the server allows that.
func (s settings) persistMode() jetstream.PersistModeType {
	if s.replicas == 1 {
		return jetstream.AsyncPersistMode
	}
	return jetstream.DefaultPersistMode
}

// compression returns how the log is compressed. On a cluster it is not: nats-server 2.15.2 can
// append to a block that it has compressed, after it was killed and restarted, and the next start
// finds a replica that it cannot read (dev/faults reproduced it; filestore.go, Truncate).
func (s settings) compression() jetstream.StoreCompression {
	if s.replicas == 1 {
		return jetstream.S2Compression
	}
	return jetstream.NoCompression
}

// derivedCompression returns how the timeline and the buckets of the read models are compressed,
// which take most of the disk. They do not wait for the disk, so that a power cut may take a whole
// block and leave the compressed one before it as the last, to which nats-server 2.15.2 then appends
// (filestore.go, checkLastBlock). Only where operator/store unpacks it before the server starts is
// that safe. It also keeps what can be read of a damaged block, which a server alone would remove
// with the stream; while it serves, the audit names what such a block of the timeline held
// ([streams.Conn.Readable]), and a bucket of which one is damaged takes no document that replaces
// one in it, until the next start.
func (s settings) derivedCompression() jetstream.StoreCompression {
	if s.embedded {
		return s.compression()
	}
	return jetstream.NoCompression
}

// bucket returns the stream of a read model's bucket: a key-value bucket for any client,
// which Skein alone writes.
func (s settings) bucket(name string) streams.Asset {
	name = s.names.Bucket(name)
	return streams.Asset{Derived: true, Config: jetstream.StreamConfig{
		Name: "KV_" + name, Description: "Skein: a read model; derived from the log.",
		Subjects: []string{"$KV." + name + ".>"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Replicas: s.replicas, MaxMsgsPerSubject: 1, MaxMsgSize: -1, Compression: s.derivedCompression(),
		AllowDirect: true, AllowRollup: true, DenyDelete: true, PersistMode: s.persistMode(), Duplicates: time.Second,
		AllowAtomicPublish: s.replicas > 1, // see derived.Fence
	}}
}
