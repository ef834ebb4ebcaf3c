package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// On a cluster a direct get is answered by any replica of a stream, also by one
// that lags: it shows an older state than what was acknowledged. What must not
// be old is asked of the stream's leader. (A leader that was cut off from the
// others may take a few seconds to notice, and shows an older state until then;
// it cannot store anything.)

// errNoMessage says that a stream holds no such message.
var errNoMessage = errors.New("no such message")

// leaderRequest is the body of a question to a stream's leader: for the message
// with a sequence, the first of a subject from a sequence on, or the last of a
// subject, which may be a pattern.
type leaderRequest struct {
	Seq  uint64 `json:"seq,omitzero"`
	Next string `json:"next_by_subj,omitzero"`
	Last string `json:"last_by_subj,omitzero"`
}

// leader asks a stream's leader for a message. The error is errNoMessage if
// there is none.
func (l *Log) leader(ctx context.Context, stream string, q leaderRequest) (Message, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return Message{}, err
	}
	if !l.nc.IsConnected() { // the question would wait for the connection
		return Message{}, fmt.Errorf("asking the leader of stream %s: %w", stream, nats.ErrDisconnected)
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.AckTimeout)
	defer cancel()
	reply, err := l.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, body)
	if err != nil {
		return Message{}, fmt.Errorf("asking the leader of stream %s: %w", stream, err)
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
		return Message{}, fmt.Errorf("the answer of the leader of stream %s cannot be read: %w", stream, err)
	}
	switch {
	case answer.Error != nil && answer.Error.ErrCode == codeNoMessage:
		return Message{}, errNoMessage
	case answer.Error != nil:
		return Message{}, answer.Error
	case answer.Message == nil:
		return Message{}, fmt.Errorf("the answer of the leader of stream %s holds no message", stream)
	}
	m := Message{Subject: answer.Message.Subject, Seq: answer.Message.Seq, Data: answer.Message.Data}
	if len(answer.Message.Headers) > 0 {
		if m.Header, err = nats.DecodeHeadersMsg(answer.Message.Headers); err != nil {
			return Message{}, fmt.Errorf("the headers of message %d of stream %s: %w", m.Seq, stream, err)
		}
	}
	return m, nil
}

// replicated reports whether the streams have several copies, as the log's own
// stream has it: a tool need not be told.
func (l *Log) replicated(ctx context.Context) (bool, error) {
	if n := l.copies.Load(); n > 0 {
		return n > 1, nil
	}
	stream, err := l.js.Stream(ctx, l.cfg.Names.Stream(LogStream))
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return l.cfg.Replicas > 1, nil
	case err != nil:
		return false, fmt.Errorf("stream %s: %w", l.cfg.Names.Stream(LogStream), err)
	}
	n := int32(max(stream.CachedInfo().Config.Replicas, 1))
	l.copies.Store(n)
	return n > 1, nil
}

// lastOf gives the last message of a subject, as fresh as its stream's leader
// has it. The error is errNoMessage if there is none.
func (l *Log) lastOf(ctx context.Context, stream, subject string) (Message, error) {
	several, err := l.replicated(ctx)
	switch {
	case err != nil:
		return Message{}, err
	case several:
		return l.leader(ctx, stream, leaderRequest{Last: subject})
	}
	got, err := l.direct(ctx, stream, getRequest{Multi: []string{subject}})
	if err == nil && len(got) == 0 {
		err = errNoMessage
	}
	if err != nil {
		return Message{}, err
	}
	return got[len(got)-1], nil
}

// at gives the message with a sequence, in the same way.
func (l *Log) at(ctx context.Context, stream string, seq uint64) (Message, error) {
	got, err := l.direct(ctx, stream, getRequest{Seq: seq})
	if err != nil {
		return Message{}, err
	}
	if len(got) == 1 && got[0].Seq == seq { // it is the same in every copy
		return got[0], nil
	}
	several, err := l.replicated(ctx)
	switch {
	case err != nil:
		return Message{}, err
	case several:
		return l.leader(ctx, stream, leaderRequest{Seq: seq})
	}
	return Message{}, errNoMessage
}
