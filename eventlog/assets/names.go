package assets

// Streams, without their prefix.
const (
	LogStream      = "LOG"
	TimelineStream = "TIMELINE"
	ChunkStream    = "CHUNKS"
	CommandStream  = "COMMANDS"
	RunStream      = "RUNS"
	TimerStream    = "TIMERS"
	restoreStream  = "RESTORE" // while a backup is being restored
)

// Object stores, without their prefix.
const (
	SnapshotBucket = "thread_snapshots" // states of threads, see eventlog.Snapshots
	FileBucket     = "thread_files"     // contents of files, see package files
	ArchiveBucket  = "thread_archive"   // commits of cold threads, see package archives
)

// SubmittedAtMost is how many submitted commands of one name may wait for one tenant. The
// server refuses more, and reports that to the publisher.
const SubmittedAtMost = 10_000
