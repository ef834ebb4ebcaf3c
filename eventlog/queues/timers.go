package queues

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Timers, on JetStream's message scheduler.
//
// A timer is a message on skein.timer.{tenant}.{thread}.{id} that the server
// turns into one on skein.due.{tenant}.{thread}.{id} when its time has come. The
// server looks for what is due at most four times a second (nats-server 2.15.2,
// server/scheduler.go), so a timer fires up to a quarter of a second late. It is
// therefore set TimerLead early, and its receiver waits for the rest: the
// time is as exact as the receiver's clock. What is due within the lead is put on
// skein.due at once.
//
// A due message waits, as in a work queue, until one of the receivers has acknowledged
// it. Timers survive a restart of the server, and those that were missed fire then. They
// are derived: their owner can set them again at any time, and must expect to receive one
// twice.

// TimerLead is how long before its time a timer fires.
const TimerLead = time.Second

const (
	headerSchedule  = "Nats-Schedule"
	headerSchTarget = "Nats-Schedule-Target"
)

// Timers sets timers and delivers due messages.
type Timers struct{ conn *streams.Conn }

// TimersOf returns the timers of a log.
func TimersOf(log *eventlog.Log) Timers { return Timers{log.Streams()} }

func (q Timers) stream() string { return q.conn.Config().Names.Stream(assets.TimerStream) }

// Timer is a message to deliver at a time.
type Timer struct {
	Tenant, Thread, ID string // each one token of a subject
	At                 time.Time
	Data               []byte // for the receiver
}

// Put sets a timer, in place of the one of the same name, and returns when the server has
// stored it.
func (q Timers) Put(ctx context.Context, t Timer) error {
	due := q.conn.Config().Names.Due(t.Tenant, t.Thread, t.ID)
	m := &nats.Msg{Subject: due, Data: t.Data}
	if early := t.At.Add(-TimerLead); time.Until(early) > 0 {
		m.Subject = q.conn.Config().Names.Timer(t.Tenant, t.Thread, t.ID)
		m.Header = nats.Header{headerSchedule: {"@at " + early.UTC().Format(time.RFC3339Nano)}, headerSchTarget: {due}}
	}
	if _, err := q.conn.JetStream().PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("a timer: %w", err)
	}
	return nil
}

// Drop removes a timer that has not fired; with * as id all of the thread. A due message
// stays.
func (q Timers) Drop(ctx context.Context, tenant, thread, id string) error {
	stream, err := q.conn.JetStream().Stream(ctx, q.stream())
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(q.conn.Config().Names.Timer(tenant, thread, id)))
	}
	if err != nil {
		return fmt.Errorf("dropping timers: %w", err)
	}
	return nil
}

// Names returns the names, {tenant}.{thread}.{id}, of all timers and of all due messages
// that are not acknowledged.
func (q Timers) Names(ctx context.Context) (map[string]struct{}, error) {
	stream, err := q.conn.JetStream().Stream(ctx, q.stream())
	var info *jetstream.StreamInfo
	if err == nil {
		info, err = stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	}
	if err != nil {
		return nil, fmt.Errorf("the list of timers: %w", err)
	}
	names := make(map[string]struct{}, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		if tenant, thread, id, ok := q.conn.Config().Names.ParseTimer(subject); ok {
			names[tenant+"."+thread+"."+id] = struct{}{}
		}
	}
	return names, nil
}

// Waits reports whether the due message of that sequence and name is not acknowledged, as
// the stream's leader knows it.
func (q Timers) Waits(ctx context.Context, seq uint64, tenant, thread, id string) (bool, error) {
	stream, err := q.conn.JetStream().Stream(ctx, q.stream())
	var m *jetstream.RawStreamMsg
	if err == nil {
		m, err = stream.GetMsg(ctx, seq)
	}
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("what is due: %w", err)
	}
	return m.Subject == q.conn.Config().Names.Due(tenant, thread, id), nil
}

// Depth returns the number of due messages.
func (q Timers) Depth(ctx context.Context) (Depth, error) {
	return depth(ctx, q.conn, q.stream(), dueConsumer)
}

// Erase erases the timers and due messages of a thread.
func (q Timers) Erase(ctx context.Context, tenant, thread string) error {
	n := q.conn.Config().Names
	return errors.Join(
		q.conn.Erase(ctx, q.stream(), n.Timer(tenant, thread, "*"), 0),
		q.conn.Erase(ctx, q.stream(), n.Due(tenant, thread, "*"), 0),
	)
}
