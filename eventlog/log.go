package eventlog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// Log is the log on one connection. It is safe for concurrent use.
type Log struct {
	nc      *nats.Conn // nil if the log was opened on a wire
	wire    Wire
	js      jetstream.JetStream
	scans   jetstream.JetStream // the same, for requests that take the longer the more is stored
	cfg     Config
	logger  zerolog.Logger
	metrics Metrics
	inbox   *inbox

	leaseTTL    time.Duration // tests shorten it
	readTimeout time.Duration // of a direct get; tests lengthen it
	scanWorth   uint64        // see scan.widen; tests lower it
	ownPace     ownPace       // of its tails; tests change it
	copies      atomic.Int32  // of every stream; 0: not known yet
	archives    archiveIndex

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

// Open gives the log on a connection and starts its appender. It makes no
// stream; see Ensure. Close the log before the connection.
func Open(nc *nats.Conn, cfg Config, logger zerolog.Logger, metrics Metrics) (*Log, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	// A publish whose acknowledgement is lost ends only by this.
	js, err := jetstream.NewWithAPIPrefix(nc, cfg.API, jetstream.WithPublishAsyncTimeout(cfg.AckTimeout), jetstream.WithDefaultTimeout(max(cfg.Patience, directTimeout)))
	if err != nil {
		return nil, fmt.Errorf("JetStream on this connection: %w", err)
	}
	scans, err := jetstream.NewWithAPIPrefix(nc, cfg.API, jetstream.WithDefaultTimeout(scanTimeout))
	if err != nil {
		return nil, fmt.Errorf("JetStream on this connection: %w", err)
	}
	l, err := OpenOn(nc, js, cfg, logger, metrics)
	if err != nil {
		return nil, err
	}
	l.nc, l.scans = nc, scans
	return l, nil
}

// Close ends the appender: what was accepted is written first, what comes later
// is refused. It may be called twice.
func (l *Log) Close() {
	l.stopOnce.Do(func() { close(l.stopping) })
	<-l.stopped
	l.inbox.close()
}

// Config gives the configuration, defaults filled in.
func (l *Log) Config() Config { return l.cfg }

// JetStream gives the connection's JetStream.
func (l *Log) JetStream() jetstream.JetStream { return l.js }

// Conn gives the connection.
func (l *Log) Conn() *nats.Conn { return l.nc }

// LastSeq gives the sequence of the log's last commit, 0 if it is empty.
func (l *Log) LastSeq(ctx context.Context) (uint64, error) {
	return l.streamLast(ctx, l.cfg.Names.Stream(LogStream))
}

// streamLast gives a stream's last sequence, from its leader.
func (l *Log) streamLast(ctx context.Context, name string) (uint64, error) {
	stream, err := l.js.Stream(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("stream %s: %w", name, err)
	}
	last := stream.CachedInfo().State.LastSeq
	l.cfg.Floors.raise(name, last)
	return last, nil
}
