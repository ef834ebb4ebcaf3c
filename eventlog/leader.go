package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

var errNoMessage = errors.New("no such message")

// leader asks the leader of a stream for one message.
// Unlike a direct get, the answer is never older than what was acknowledged
// before. errNoMessage if there is none. It asks again as [Config.Patience] says.
func (l *Log) leader(ctx context.Context, name string, q getRequest) (m Message, err error) {
	err = again(ctx, l.cfg.Patience, min(time.Second, l.readTimeout), func() error {
		m, err = l.leaderOnce(ctx, name, q)
		return err
	}, func(err error) bool {
		return l.cfg.Patience > 0 && (passes(err) || errors.Is(err, nats.ErrDisconnected))
	})
	return m, err
}

func (l *Log) leaderOnce(ctx context.Context, name string, q getRequest) (Message, error) {
	request, err := json.Marshal(q)
	if err != nil {
		return Message{}, err
	}
	if !l.wire.IsConnected() { // the question would wait for the connection
		return Message{}, fmt.Errorf("asking the leader of %s: %w", name, nats.ErrDisconnected)
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.AckTimeout)
	defer cancel()
	reply, err := l.wire.RequestWithContext(ctx, l.cfg.API+".STREAM.MSG.GET."+name, request)
	if err != nil {
		return Message{}, fmt.Errorf("asking the leader of %s: %w", name, err)
	}
	var answer struct {
		Error   *brokerError `json:"error"`
		Message *struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Headers []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return Message{}, fmt.Errorf("the answer of the leader of %s cannot be read: %w", name, err)
	}
	m := answer.Message
	switch {
	case answer.Error != nil && answer.Error.ErrCode == codeNoMessage:
		return Message{}, errNoMessage
	case answer.Error != nil:
		return Message{}, answer.Error
	case m == nil:
		return Message{}, fmt.Errorf("the answer of the leader of %s holds no message", name)
	}
	var header nats.Header
	if len(m.Headers) > 0 {
		if header, err = nats.DecodeHeadersMsg(m.Headers); err != nil {
			return Message{}, fmt.Errorf("the headers of message %d of %s: %w", m.Seq, name, err)
		}
	}
	return Message{Subject: m.Subject, Seq: m.Seq, Header: header, Data: m.Data}, nil
}

// Reachable asks the log's leader for its newest message, and returns an error if
// it does not answer before ctx ends. A cluster that lost its quorum has no
// leader, though each of its servers may go on answering direct gets.
func (l *Log) Reachable(ctx context.Context) error {
	_, err := l.leader(ctx, l.cfg.Names.Stream(LogStream), getRequest{Last: ">"})
	if errors.Is(err, errNoMessage) {
		return nil
	}
	return err
}

// After gives the first commit of an aggregate after a sequence, as the log's
// leader has it: what was acknowledged before is never missed, where a direct
// get may lag. Nil if there is none.
func (l *Log) After(ctx context.Context, tenant, aggregate string, seq uint64) (*events.Commit, error) {
	c, err := l.ofLeader(ctx, getRequest{Seq: seq + 1, Next: l.cfg.Names.Log(tenant, aggregate)})
	if d, ok := Record(c); !ok || uint64(d.LastSeq) <= seq || uint64(d.LastSeq) >= c.Seq {
		return c, err
	}
	for c, err := range l.Thread(ctx, tenant, aggregate, seq+1) { // others are archived before it
		return c, err
	}
	return c, err
}

// Newest gives the last commit of an aggregate, as the log's leader has it. Nil
// if it has none.
func (l *Log) Newest(ctx context.Context, tenant, aggregate string) (*events.Commit, error) {
	return l.ofLeader(ctx, getRequest{Last: l.cfg.Names.Log(tenant, aggregate)})
}

func (l *Log) ofLeader(ctx context.Context, q getRequest) (*events.Commit, error) {
	m, err := l.leader(ctx, l.cfg.Names.Stream(LogStream), q)
	switch {
	case errors.Is(err, errNoMessage):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return l.Decode(m)
}

// Key reads the document of a bucket under a key, as the leader of its stream has
// it. ok is false if there is none.
func (l *Log) Key(ctx context.Context, bucket, key string) (doc Message, ok bool, err error) {
	bucket = l.cfg.Names.Bucket(bucket)
	m, err := l.leader(ctx, "KV_"+bucket, getRequest{Last: keyPrefix(bucket) + key})
	if errors.Is(err, errNoMessage) {
		return Message{}, false, nil
	}
	if err != nil {
		return Message{}, false, err
	}
	got := documents([]Message{m}, keyPrefix(bucket))
	if len(got) == 0 {
		return Message{}, false, nil
	}
	return got[0], true, nil
}
