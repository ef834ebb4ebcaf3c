package eventlog

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// Wire is what the log needs of a connection to NATS. *nats.Conn is one, and
// says what each method does; internal/sim has another, whose server is
// simulated.
type Wire interface {
	PublishMsg(m *nats.Msg) error
	PublishRequest(subject, reply string, data []byte) error
	RequestMsg(m *nats.Msg, timeout time.Duration) (*nats.Msg, error)
	RequestMsgWithContext(ctx context.Context, m *nats.Msg) (*nats.Msg, error)
	RequestWithContext(ctx context.Context, subject string, data []byte) (*nats.Msg, error)
	Subscribe(subject string, deliver nats.MsgHandler) (*nats.Subscription, error)
	NewInbox() string
	IsConnected() bool
	IsClosed() bool
	MaxPayload() int64
	StatusChanged(statuses ...nats.Status) chan nats.Status
	RemoveStatusListener(listener chan nats.Status)
}

// OpenOn gives the log on a wire and the JetStream that it leads to, as [Open]
// does on a connection. Its Conn is nil: what needs a whole connection, such as
// the service of commands, cannot use it.
func OpenOn(wire Wire, js jetstream.JetStream, cfg Config, logger zerolog.Logger, metrics Metrics) (*Log, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if metrics == nil {
		metrics = NoMetrics{}
	}
	in, err := newInbox(wire)
	if err != nil {
		return nil, err
	}
	l := &Log{
		wire: wire, js: js, scans: js, cfg: cfg, logger: logger, metrics: metrics, inbox: in,
		leaseTTL: leaseTTL, readTimeout: directTimeout, scanWorth: scanWorth, ownPace: defaultOwnPace(),
		queue: make(chan *unit, cfg.QueueCommits), busy: map[string]bool{}, late: make(chan *unit), stopping: make(chan struct{}), stopped: make(chan struct{}),
	}
	go l.appendLoop()
	return l, nil
}

// MaxPayload gives the size of the largest message that the server takes.
func (l *Log) MaxPayload() int64 { return l.wire.MaxPayload() }

// Connects gives a channel that is told whenever the connection was made anew,
// and a function that ends that.
func (l *Log) Connects() (told <-chan nats.Status, stop func()) {
	c := l.wire.StatusChanged(nats.CONNECTED)
	return c, func() { l.wire.RemoveStatusListener(c) }
}
