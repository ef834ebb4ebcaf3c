package eventlog

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Log is the log on one connection. It is safe for concurrent use.
type Log struct {
	conn    *streams.Conn
	cfg     Config
	logger  zerolog.Logger
	metrics Metrics

	ownPace  ownPace // of its tails; tests change it
	archives archiveIndex

	incarnation atomic.Pointer[string] // nil: not known yet

	queue    chan *unit
	away     time.Time       // since when the appender has missed the connection
	busy     map[string]bool // the subjects of writes that are late; the append loop's, as parked is
	parked   []*unit         // wait for one of them
	late     chan *unit      // of those, what is answered
	stopping chan struct{}
	stopped  chan struct{}
	stopOnce sync.Once
}

// Metrics is told what the log does. Each method must return at once.
type Metrics interface {
	// Appended is told of a write: how many commits and bytes it had, whether
	// as one atomic batch, and how long its acknowledgement took.
	Appended(commits int, bytes int, batch bool, seconds float64)
	// Broken is told of a commit that cannot be read, by who met it.
	Broken(reader string, seq uint64)
	// Relayed is told of each commit that was put on the timeline.
	Relayed(seq uint64)
	// Healed is told how many messages that Skein did not write were removed from
	// the timeline.
	Healed(messages int)
}

// NoMetrics tells nobody.
type NoMetrics struct{}

// Appended implements Metrics.
func (NoMetrics) Appended(int, int, bool, float64) {}

// Broken implements Metrics.
func (NoMetrics) Broken(string, uint64) {}

// Relayed implements Metrics.
func (NoMetrics) Relayed(uint64) {}

// Healed implements Metrics.
func (NoMetrics) Healed(int) {}

// Open returns the log on a connection and starts its appender. It makes no
// stream; see Ensure. Close the log before the connection.
func Open(nc *nats.Conn, cfg Config, logger zerolog.Logger, metrics Metrics) (*Log, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	conn, err := streams.Open(nc, cfg.streams())
	if err != nil {
		return nil, err
	}
	return open(conn, cfg, logger, metrics), nil
}

// OpenOn returns the log on a wire and the JetStream that it leads to, as [Open]
// does on a connection. Its Conn is nil: what needs a whole connection, such as
// the service of commands, cannot use it.
func OpenOn(wire streams.Wire, js jetstream.JetStream, cfg Config, logger zerolog.Logger, metrics Metrics) (*Log, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	conn, err := streams.OpenOn(wire, js, cfg.streams())
	if err != nil {
		return nil, err
	}
	return open(conn, cfg, logger, metrics), nil
}

func open(conn *streams.Conn, cfg Config, logger zerolog.Logger, metrics Metrics) *Log {
	if metrics == nil {
		metrics = NoMetrics{}
	}
	l := &Log{
		conn: conn, cfg: cfg, logger: logger, metrics: metrics, ownPace: defaultOwnPace(),
		queue: make(chan *unit, cfg.QueueCommits), busy: map[string]bool{}, late: make(chan *unit), stopping: make(chan struct{}), stopped: make(chan struct{}),
	}
	go l.appendLoop()
	return l
}

// Ensure creates the streams of Skein, or brings them up to date, as [assets.Ensure] does.
func (l *Log) Ensure(ctx context.Context) error {
	return assets.Ensure(ctx, l.conn, assets.Ages{Timeline: l.cfg.TimelineAge, Chunk: l.cfg.ChunkAge, Command: l.cfg.CommandAge})
}

// Close ends the appender: what was accepted is written first, what comes later
// is refused. It may be called twice.
func (l *Log) Close() {
	l.stopOnce.Do(func() { close(l.stopping) })
	<-l.stopped
	l.conn.Close()
}

// Config returns the configuration, defaults filled in.
func (l *Log) Config() Config { return l.cfg }

// Streams returns what the packages below eventlog read and write streams with.
func (l *Log) Streams() *streams.Conn { return l.conn }

// Logger returns the logger of what stands on the log.
func (l *Log) Logger() *zerolog.Logger { return &l.logger }

// Metrics returns what is told of what happens.
func (l *Log) Metrics() Metrics { return l.metrics }

// Closing is closed when the log begins to close.
func (l *Log) Closing() <-chan struct{} { return l.stopping }

// JetStream returns the connection's JetStream.
func (l *Log) JetStream() jetstream.JetStream { return l.conn.JetStream() }

// Conn returns the connection, or nil if the log was opened on a wire.
func (l *Log) Conn() *nats.Conn { return l.conn.NATS() }

// Bucket returns the documents of a read model's bucket.
func (l *Log) Bucket(name string) streams.Bucket { return l.conn.Bucket(name) }

// MaxPayload returns the size of the largest message that the server accepts.
func (l *Log) MaxPayload() int64 { return l.conn.Wire().MaxPayload() }

// End returns the sequence of the log's last commit, and the name of the log's incarnation.
func (l *Log) End(ctx context.Context) (streams.End, error) {
	end, err := l.conn.End(ctx, l.cfg.Names.Stream(assets.LogStream))
	if err == nil {
		l.incarnation.Store(&end.Incarnation)
	}
	return end, err
}

// Incarnation returns the name of the log's incarnation. The server is asked once: no log is
// replaced while a Skein runs.
func (l *Log) Incarnation(ctx context.Context) (string, error) {
	if known := l.incarnation.Load(); known != nil {
		return *known, nil
	}
	end, err := l.End(ctx)
	return end.Incarnation, err
}

// Reaches reports whether the log has come to a sequence. The server is asked only about one that is
// newer than all that this process has appended.
func (l *Log) Reaches(ctx context.Context, seq uint64) (bool, error) {
	if r := l.cfg.Recent; r != nil && seq <= r.Newest() {
		return true, nil
	}
	end, err := l.LastSeq(ctx)
	return seq <= end, err
}

// LastSeq returns the sequence of the log's last commit, 0 if it is empty.
func (l *Log) LastSeq(ctx context.Context) (uint64, error) {
	return l.conn.LastSeq(ctx, l.cfg.Names.Stream(assets.LogStream))
}
