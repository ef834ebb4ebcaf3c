package projections

import (
	"math/rand/v2"
	"time"

	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/cleanup"
)

// Config bounds a runner. The zero value of a field means its default.
type Config struct {
	BatchCommits    int               // commits folded before they are written; default 8,192
	BatchBytes      int               // bytes of commits folded before they are written; default 64 MiB
	BatchTime       time.Duration     // how long a batch that is due keeps collecting while more commits wait; default 100 ms
	Linger          time.Duration     // how long a batch waits for a second commit while no reader waits for the first; default 5 ms, negative: not at all
	Rest            time.Duration     // the longest rest between batches, see pace.go; default 750 ms, negative: none
	RestLag         time.Duration     // how far behind the log it is allowed to rest; default 1.5 s
	Purges          int               // deleted threads whose documents are purged before their batch is shown; the others follow; default 16
	CacheBytes      int64             // of documents kept in memory; default 32 MiB
	CheckpointEvery time.Duration     // how often checkpoints of untouched buckets move on; default 5 s
	Settle          time.Duration     // after which time a removal is certainly on the disk of the server, which syncs every two minutes; default 5 min
	EraseTurn       time.Duration     // the length of a purged thread's first turn of erasing; default 15 s
	Contents        cleanup.Eraser    // erases the contents of purged threads' files; default: the collector deletes them later
	Progress        *buckets.Progress // receives its progress; default one of its own
	Now             func() time.Time  // default time.Now
	Jitter          func(n int) int   // returns a random number below n, so that two runners do not retry in lockstep; default rand.IntN
}

func (c Config) withDefaults() Config {
	if c.BatchCommits == 0 {
		c.BatchCommits = 8192
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = 64 << 20
	}
	if c.BatchTime == 0 {
		c.BatchTime = 100 * time.Millisecond
	}
	if c.Linger == 0 {
		c.Linger = 5 * time.Millisecond
	}
	if c.Rest == 0 {
		c.Rest = 750 * time.Millisecond
	}
	if c.RestLag == 0 {
		c.RestLag = 1500 * time.Millisecond
	}
	if c.Purges == 0 {
		c.Purges = 16
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = 32 << 20
	}
	if c.CheckpointEvery == 0 {
		c.CheckpointEvery = 5 * time.Second
	}
	if c.Settle == 0 {
		c.Settle = 5 * time.Minute
	}
	if c.EraseTurn == 0 {
		c.EraseTurn = 15 * time.Second
	}
	if c.Progress == nil {
		c.Progress = buckets.NewProgress()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.IntN
	}
	return c
}

// Metrics receives measurements of the runner. Its methods must return at once.
type Metrics interface {
	cleanup.Metrics
	// Broken receives a commit, or an event in it, that was skipped.
	Broken(seq uint64)
	// Batch receives a batch that was stored: how many commits it had, how many documents
	// it wrote, and how long that took.
	Batch(commits, documents int, seconds float64)
}

// NoMetrics does nothing.
type NoMetrics struct{}

// Broken implements Metrics.
func (NoMetrics) Broken(uint64) {}

// Batch implements Metrics.
func (NoMetrics) Batch(int, int, float64) {}

// Ends implements Metrics.
func (NoMetrics) Ends(int) {}
