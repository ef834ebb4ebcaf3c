package streams

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// Headers of JetStream's.
const (
	HeaderExpected    = "Nats-Expected-Last-Subject-Sequence"
	HeaderExpectedSeq = "Nats-Expected-Last-Sequence"
	HeaderExpectedID  = "Nats-Expected-Last-Msg-Id"
	HeaderID          = "Nats-Msg-Id"

	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// Ack is JetStream's answer to a publish. Of a batch, Seq is the sequence of its last message, and
// the others precede it without a gap.
type Ack struct {
	Error   *Refusal `json:"error"`
	Seq     uint64   `json:"seq"`
	Count   int      `json:"count"`
	Seconds float64  `json:"-"` // until it came
}

// Publish sends a message and waits for its acknowledgement, for [Config.AckTimeout]. The error
// is a *[FullError] if there is no room for it; then it was not sent.
func (c *Conn) Publish(m *nats.Msg) (Ack, error) {
	if err := c.cfg.Writing.RoomFor(len(m.Data)); err != nil {
		return Ack{}, err
	}
	return c.publish(m)
}

func (c *Conn) publish(m *nats.Msg) (Ack, error) {
	start := time.Now()
	reply, err := c.wire.RequestMsg(m, c.cfg.AckTimeout)
	if err != nil {
		return Ack{}, err
	}
	ack := Ack{Seconds: time.Since(start).Seconds()}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return ack, fmt.Errorf("an acknowledgement that cannot be read: %w", err)
	}
	c.cfg.Writing.Answered(ack.Error)
	return ack, nil
}

// PublishBatch sends messages as one atomic batch: all are stored, or none. Only the
// last is acknowledged. The error is a *[FullError] if there is no room for them; then nothing
// was sent.
func (c *Conn) PublishBatch(msgs []*nats.Msg) (Ack, error) {
	bytes := 0
	for _, m := range msgs {
		bytes += len(m.Data)
	}
	if err := c.cfg.Writing.RoomFor(bytes); err != nil {
		return Ack{}, err
	}
	id := rand.Text()
	for i, m := range msgs {
		b := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: make(nats.Header, len(m.Header)+3)}
		for k, v := range m.Header {
			b.Header[k] = v
		}
		b.Header[headerBatchID] = []string{id}
		b.Header[headerBatchSequence] = []string{strconv.Itoa(i + 1)}
		if i == len(msgs)-1 {
			b.Header[headerBatchCommit] = []string{"1"}
			return c.publish(b)
		}
		if err := c.wire.PublishMsg(b); err != nil {
			return Ack{}, err
		}
	}
	return Ack{}, nil
}
