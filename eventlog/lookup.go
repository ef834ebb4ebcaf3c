package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// lookUp asks the log whether a unit was stored by an earlier try. The first
// commit of each aggregate after the expected sequence tells: it is ours if it
// has our chain. It returns true if all are stored; false and nil if none is
// there; a *ConflictError if an aggregate has moved on without us; or why the
// log could not be asked.
func (l *Log) lookUp(u *unit) (bool, error) {
	var seqs []uint64
	for _, w := range u.writes {
		subject := l.cfg.Names.Log(w.Commit.Tenant, w.Commit.Thread)
		m, err := l.leaderNext(subject, w.Expected+1)
		switch {
		case errors.Is(err, errNoMessage):
			continue
		case err != nil:
			return false, err
		case m.Header.Get(events.HeaderChain) != w.Commit.Chain:
			return false, &ConflictError{Subject: subject, Expected: w.Expected, Last: m.seq}
		}
		seqs = append(seqs, m.seq)
	}
	switch len(seqs) {
	case len(u.writes):
		for i := range u.writes {
			u.writes[i].Commit.Seq = seqs[i]
		}
		return true, nil
	case 0:
		return false, nil
	}
	return false, fmt.Errorf("%d of %d commits of one write are stored: the log contradicts itself", len(seqs), len(u.writes))
}

var errNoMessage = errors.New("no such message")

// leaderMsg is a message as the stream's leader gave it.
type leaderMsg struct {
	Header nats.Header
	seq    uint64
}

// leaderNext gives the first message of a subject from a sequence on, from the
// stream's leader: unlike a direct get, this never shows an older state than
// what was acknowledged.
func (l *Log) leaderNext(subject string, seq uint64) (*leaderMsg, error) {
	request, err := json.Marshal(struct {
		Seq  uint64 `json:"seq"`
		Next string `json:"next_by_subj"`
	}{seq, subject})
	if err != nil {
		return nil, err
	}
	if !l.nc.IsConnected() { // the question would wait for the connection
		return nil, fmt.Errorf("asking the log's leader: %w", nats.ErrDisconnected)
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.AckTimeout)
	defer cancel()
	reply, err := l.nc.RequestWithContext(ctx, l.cfg.API+".STREAM.MSG.GET."+l.cfg.Names.Stream(LogStream), request)
	if err != nil {
		return nil, fmt.Errorf("asking the log's leader: %w", err)
	}
	var answer struct {
		Error   *brokerError `json:"error"`
		Message *struct {
			Seq     uint64 `json:"seq"`
			Headers []byte `json:"hdrs"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return nil, fmt.Errorf("the leader's answer cannot be read: %w", err)
	}
	switch {
	case answer.Error != nil && answer.Error.ErrCode == codeNoMessage:
		return nil, errNoMessage
	case answer.Error != nil:
		return nil, answer.Error
	case answer.Message == nil:
		return nil, errors.New("the leader's answer holds no message")
	}
	header, err := nats.DecodeHeadersMsg(answer.Message.Headers)
	if err != nil {
		return nil, fmt.Errorf("the headers of commit %d: %w", answer.Message.Seq, err)
	}
	return &leaderMsg{Header: header, seq: answer.Message.Seq}, nil
}
