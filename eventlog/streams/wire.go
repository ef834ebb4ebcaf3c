package streams

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// Wire is the subset of a NATS connection that the log uses. *nats.Conn is one, and says what each
// method does; dev/sim has another, whose server is simulated.
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
	Stats() nats.Statistics
	StatusChanged(statuses ...nats.Status) chan nats.Status
	RemoveStatusListener(listener chan nats.Status)
}
