package client

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// Limits of one read of a stream.
const (
	storedBatch = 256
	storedBytes = 1 << 20
)

// storedTimeout is how long one read may take. Its answer may be lost with the
// connection, and the server answers some bad requests not at all.
const storedTimeout = 3 * time.Second

// stored gives the next messages of a stream with that subject, in order, from
// a sequence on, at most so many, and whether there are more. It leaves nothing behind on the
// server, unlike a consumer.
func (c *Client) stored(ctx context.Context, stream, subject string, from uint64, most int) (msgs []*nats.Msg, more bool, err error) {
	if !c.nc.IsConnected() { // the question would wait for the connection
		return nil, false, nats.ErrDisconnected
	}
	request, err := json.Marshal(struct {
		Seq      uint64 `json:"seq"`
		Next     string `json:"next_by_subj"`
		Batch    int    `json:"batch"`
		MaxBytes int    `json:"max_bytes"`
	}{from, subject, most, storedBytes})
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, storedTimeout, fmt.Errorf("stream %s did not answer within %v", stream, storedTimeout))
	defer cancel()
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection has gone
	if err := c.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, request); err != nil {
		return nil, false, err
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, false, err
		}
		switch m.Header.Get("Status") {
		case "":
			msgs = append(msgs, m)
			pending, _ := strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
			more = pending > 0
		case "204", "404":
			return msgs, more, nil
		case "503":
			return nil, false, fmt.Errorf("stream %s: %w", stream, nats.ErrNoResponders)
		default:
			return nil, false, fmt.Errorf("stream %s refused a read: %s", stream, m.Header.Get("Description"))
		}
	}
}
