package edge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// The bucket of tickets and sessions is read and written by its subjects, without the API of
// JetStream: a gateway's credentials permit the subjects of its tenants, and nothing that names the
// bucket alone.

const (
	storeWithin = 5 * time.Second // for an answer of the bucket
	lookAgain   = 250 * time.Millisecond
	dropLasts   = time.Second // the shortest that the server takes; then the key is free
)

// errPassTaken says that the key of a pass has another one meanwhile.
var errPassTaken = errors.New("another ticket or session has this key")

// putPass stores a pass, if the last message of its key has a sequence; 0: if it has none.
func (e *Edge) putPass(ctx context.Context, key string, value []byte, lasts time.Duration, last uint64) error {
	m := &nats.Msg{Subject: key, Data: value, Header: nats.Header{}}
	return e.publishPass(ctx, m, lasts, last)
}

// dropPass removes the pass that a key has at a sequence. The error is errNoPass if it has another.
func (e *Edge) dropPass(ctx context.Context, key string, last uint64) error {
	m := &nats.Msg{Subject: key, Header: nats.Header{"KV-Operation": {"DEL"}}}
	if err := e.publishPass(ctx, m, dropLasts, last); !errors.Is(err, errPassTaken) {
		return err
	}
	return errNoPass
}

func (e *Edge) publishPass(ctx context.Context, m *nats.Msg, lasts time.Duration, last uint64) error {
	m.Header.Set(jetstream.MsgTTLHeader, strconv.Itoa(int(lasts.Seconds()))+"s")
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last, 10))
	got, err := e.askStore(ctx, m)
	if err != nil {
		return err
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(got.Data, &ack); {
	case err != nil:
		return storeFailed(err)
	case ack.Error == nil:
		return nil
	case ack.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence, ack.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return errPassTaken
	default:
		return storeFailed(ack.Error)
	}
}

// getPass returns the pass of a key, and its sequence. A replica that is behind may not have it yet,
// so one that is not found is looked for again.
func (e *Edge) getPass(ctx context.Context, key string) (pass, uint64, error) {
	found, seq, err := e.lookUpPass(ctx, key)
	if !errors.Is(err, errNoPass) {
		return found, seq, err
	}
	select {
	case <-time.After(lookAgain):
		return e.lookUpPass(ctx, key)
	case <-ctx.Done():
		return pass{}, 0, err
	}
}

func (e *Edge) lookUpPass(ctx context.Context, key string) (pass, uint64, error) {
	got, err := e.askStore(ctx, nats.NewMsg(e.opts.Names.SessionGet(key)))
	if err != nil {
		return pass{}, 0, err
	}
	switch status := got.Header.Get("Status"); {
	case status == "404", got.Header.Get("KV-Operation") != "":
		return pass{}, 0, errNoPass
	case status != "":
		return pass{}, 0, storeFailed(fmt.Errorf("status %s: %s", status, got.Header.Get("Description")))
	}
	seq, err := strconv.ParseUint(got.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return pass{}, 0, storeFailed(err)
	}
	var found pass
	if err := json.Unmarshal(got.Data, &found); err != nil {
		return pass{}, 0, storeFailed(err)
	}
	return found, seq, nil
}

func (e *Edge) askStore(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	got, err := e.opts.Conn.RequestMsgWithContext(ctx, m)
	if err != nil {
		return nil, storeFailed(err)
	}
	return got, nil
}

func storeFailed(err error) error {
	return events.Errorf(events.Unavailable, "tickets and sessions cannot be read or written now: %w; try again later, or send the key itself", err)
}
