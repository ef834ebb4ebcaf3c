package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/internal/retry"
)

// ErrNoMessage says that a stream's leader has no such message.
var ErrNoMessage = errors.New("no such message")

// Leader asks the leader of a stream for one message, or returns ErrNoMessage. Unlike
// a direct get, the answer is never older than what was acknowledged before. It retries
// as [Config.Patience] says.
func (c *Conn) Leader(ctx context.Context, name string, q GetRequest) (m Message, err error) {
	err = retry.Do(ctx, retry.Policy{First: min(time.Second, c.readTimeout), Limit: c.cfg.Patience}, func() error {
		m, err = c.leaderOnce(ctx, name, q)
		return err
	}, func(err error) bool {
		return c.cfg.Patience > 0 && (MayPass(err) || errors.Is(err, nats.ErrDisconnected))
	})
	return m, err
}

func (c *Conn) leaderOnce(ctx context.Context, name string, q GetRequest) (Message, error) {
	request, err := json.Marshal(q)
	if err != nil {
		return Message{}, err
	}
	if !c.wire.IsConnected() { // the question would wait for the connection
		return Message{}, fmt.Errorf("asking the leader of %s: %w", name, nats.ErrDisconnected)
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.AckTimeout)
	defer cancel()
	reply, err := c.wire.RequestWithContext(ctx, c.cfg.API+".STREAM.MSG.GET."+name, request)
	if err != nil {
		return Message{}, fmt.Errorf("asking the leader of %s: %w", name, err)
	}
	var answer struct {
		Error   *Refusal `json:"error"`
		Message *struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Headers []byte `json:"hdrs"`
			Data    []byte `json:"data"`
			Time    string `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return Message{}, fmt.Errorf("the answer of the leader of %s cannot be read: %w", name, err)
	}
	m := answer.Message
	switch {
	case answer.Error != nil && answer.Error.ErrCode == codeNoMessage:
		return Message{}, ErrNoMessage
	case answer.Error != nil:
		return Message{}, answer.Error
	case m == nil:
		return Message{}, fmt.Errorf("the answer of the leader of %s holds no message", name)
	}
	header := nats.Header{}
	if len(m.Headers) > 0 {
		if header, err = nats.DecodeHeadersMsg(m.Headers); err != nil {
			return Message{}, fmt.Errorf("the headers of message %d of %s: %w", m.Seq, name, err)
		}
	}
	header[nats.JSTimeStamp] = []string{m.Time} // as in the answer to a direct get
	return Message{Subject: m.Subject, Seq: m.Seq, Header: header, Data: m.Data}, nil
}
