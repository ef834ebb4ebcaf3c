package eventlog

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// What may wait to be answered; more is dropped.
const (
	pendingRequests = 64
	pendingBytes    = 16 << 20
)

// answerWithin is how long a request is worked on.
const answerWithin = 5 * time.Second

// Answer answers who reports operations, and who asks for them. It ends with the connection.
func (s *Operations) Answer(nc *nats.Conn) error {
	names := s.conn.Config().Names
	for subject, do := range map[string]func(context.Context, []byte) (any, error){
		names.OperationReport(): s.report, names.OperationList(): s.list,
	} {
		sub, err := nc.QueueSubscribe(subject, events.WorkerQueue, func(m *nats.Msg) {
			if !names.Answerable(m.Reply) {
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
			defer cancel()
			out, err := do(ctx, m.Data)
			_ = m.RespondMsg(reply(out, err)) // who asked may have gone
		})
		if err == nil {
			err = sub.SetPendingLimits(pendingRequests, pendingBytes)
		}
		if err != nil {
			return err
		}
	}
	return nc.Flush()
}

func (s *Operations) report(_ context.Context, body []byte) (any, error) {
	return struct{}{}, s.Record(body)
}

func (s *Operations) list(ctx context.Context, body []byte) (any, error) {
	var asked struct{}
	if len(body) > 0 && json.Unmarshal(body, &asked, json.RejectUnknownMembers(true)) != nil {
		return nil, events.Invalid("", "a request for operations is {}")
	}
	return s.List(ctx)
}

// reply returns an answer, in the form that all of Skein's have.
func reply(out any, err error) *nats.Msg {
	m := &nats.Msg{}
	if err == nil {
		m.Data, err = json.Marshal(out, json.Deterministic(true))
	}
	if err != nil {
		e := events.AsError(err)
		m.Header, m.Data = e.Headers(), events.EncodeError(e)
	}
	return m
}
