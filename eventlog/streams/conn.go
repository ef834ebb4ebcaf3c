package streams

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// Config configures a [Conn]. Every field but Embedded, Patience and Writing is required.
type Config struct {
	Names      events.Names
	API        string        // prefix of JetStream's API
	Replicas   int           // copies of every stream that is made
	Embedded   bool          // this process checks the server's files before the server starts
	Sample     string        // the stream whose number of copies all streams have
	AckTimeout time.Duration // how long a publish, or a request to a leader, may take
	Patience   time.Duration // for how long an unanswered read is retried; 0: it is not
	Floors     *Floors
	Writing    *Writing
	Damage     func(stream string, from, to uint64) error // returns why messages cannot be read, or nil if that is unknown
}

// OwnAPI is the prefix of JetStream's API in the account that has the streams.
const OwnAPI = "$JS.API"

// Conn reads and writes streams over one connection. It is safe for concurrent use.
type Conn struct {
	nc    *nats.Conn // nil if it was opened on a wire
	wire  Wire
	js    jetstream.JetStream
	cfg   Config
	inbox *inbox

	ends        sharedEnds
	readTimeout time.Duration // of a direct get
	scanWorth   uint64        // see Scan.widen
	copies      atomic.Int32  // of every stream; 0: not known yet
	rottenFor   time.Duration // see the constant
	rotten      sync.Map      // by name of a stream: when a read of it was found to stay unanswered while others were answered
	unreadable  sync.Map      // the same, of streams of which it says that it cannot read what it found
}

// Open returns a Conn on a connection. Close it before the connection.
func Open(nc *nats.Conn, cfg Config) (*Conn, error) {
	// A publish whose acknowledgement is lost ends only by this.
	js, err := jetstream.NewWithAPIPrefix(nc, cfg.API, jetstream.WithPublishAsyncTimeout(cfg.AckTimeout), jetstream.WithDefaultTimeout(max(cfg.Patience, ReadTimeout)))
	if err != nil {
		return nil, fmt.Errorf("JetStream on this connection: %w", err)
	}
	c, err := OpenOn(nc, js, cfg)
	if err != nil {
		return nil, err
	}
	c.nc = nc
	return c, nil
}

// OpenOn returns a Conn on a wire and the JetStream that it leads to. Its NATS
// connection is nil.
func OpenOn(wire Wire, js jetstream.JetStream, cfg Config) (*Conn, error) {
	in, err := newInbox(wire)
	if err != nil {
		return nil, err
	}
	if cfg.Writing == nil {
		cfg.Writing = &Writing{}
	}
	return &Conn{wire: wire, js: js, cfg: cfg, inbox: in, readTimeout: ReadTimeout, scanWorth: scanWorth, rottenFor: rottenFor}, nil
}

// Close ends the subscription through which answers come.
func (c *Conn) Close() { c.inbox.close() }

// Embedded reports whether the server runs in this process, which checks its files before it starts.
func (c *Conn) Embedded() bool { return c.cfg.Embedded }

// Config returns the configuration.
func (c *Conn) Config() Config { return c.cfg }

// NATS returns the connection, or nil if the Conn was opened on a wire.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// Wire returns what messages are sent over.
func (c *Conn) Wire() Wire { return c.wire }

// JetStream returns the connection's JetStream.
func (c *Conn) JetStream() jetstream.JetStream { return c.js }

// ReadOnly reports whether the streams are seen through another account, as auditors
// see them: they can be read by direct gets, and no consumer can be made.
func (c *Conn) ReadOnly() bool { return c.cfg.API != OwnAPI }

// LastSeq returns a stream's last sequence, from its leader.
func (c *Conn) LastSeq(ctx context.Context, stream string) (uint64, error) {
	end, err := c.End(ctx, stream)
	return end.Seq, err
}

// End is where a stream ends.
type End struct {
	Seq         uint64 // the last sequence
	Incarnation string // another one if the stream was created again, or restored
}

// End returns where a stream ends, from its leader. Calls that come while the leader is asked share
// the next question.
func (c *Conn) End(ctx context.Context, stream string) (End, error) {
	return c.ends.get(ctx, stream, c.askEnd)
}

// askEnd asks the leader where a stream ends.
func (c *Conn) askEnd(ctx context.Context, stream string) (End, error) {
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return End{}, fmt.Errorf("stream %s: %w", stream, err)
	}
	info := s.CachedInfo()
	c.cfg.Floors.Raise(stream, info.State.LastSeq)
	return End{Seq: info.State.LastSeq, Incarnation: incarnation(info)}, nil
}

// IncarnationKey is the key of a stream's metadata under which a restore stores the name of the
// new incarnation: the server restores a stream with the time at which the old one was created.
const IncarnationKey = "skein.incarnation"

// NewIncarnation returns a name for an incarnation that no other one has. Names begin with a letter.
func NewIncarnation() string { return "r" + strings.ToLower(rand.Text()[:15]) }

// incarnation returns the name of a stream's incarnation: a stream that was created again, or
// restored, has another one. It stays the same for as long as sequences stand for the same messages.
func incarnation(info *jetstream.StreamInfo) string {
	if name := info.Config.Metadata[IncarnationKey]; events.ValidID(name) {
		return name
	}
	return "c" + strconv.FormatInt(info.Created.UnixMicro(), 36)
}

// Ends returns the last sequence of a stream, from its leader. ok is false if there
// is no such stream.
func (c *Conn) Ends(ctx context.Context, stream string) (last uint64, ok bool, err error) {
	last, err = c.LastSeq(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, false, nil
	}
	return last, err == nil, err
}

// Connects returns a channel that receives a value whenever the connection has been
// re-established, and a function that ends that.
func (c *Conn) Connects() (connected chan nats.Status, stop func()) {
	connected = c.wire.StatusChanged(nats.CONNECTED)
	return connected, func() { c.wire.RemoveStatusListener(connected) }
}

// Reconnects returns how often the connection has been re-established.
func (c *Conn) Reconnects() uint64 { return c.wire.Stats().Reconnects }

// ErrReconnected says that the connection has been re-established: the server may be
// another one, or may have lost its newest writes.
var ErrReconnected = errors.New("the connection was re-established")

// UntilReconnect calls do with a context that also ends when connects receives a value (see
// [Conn.Connects]). It returns ErrReconnected in that case, and otherwise the error of do.
func UntilReconnect(ctx context.Context, connects <-chan nats.Status, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-connects:
			cancel(ErrReconnected)
		case <-done:
		}
	}()
	err := do(ctx)
	if errors.Is(context.Cause(ctx), ErrReconnected) {
		return ErrReconnected
	}
	return err
}
