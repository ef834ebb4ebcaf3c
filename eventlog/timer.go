package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Timers, on JetStream's message scheduler.
//
// A timer is a message on skein.timer.{tenant}.{thread}.{id} that the server
// turns into one on skein.due.{tenant}.{thread}.{id} when its time has come. The
// server looks for what is due at most four times a second (nats-server 2.15.2,
// server/scheduler.go), so a timer fires up to a quarter of a second late. It is
// therefore set TimerLead early, and whoever receives it waits for the rest: the
// time is as exact as the receiver's clock. What is due within the lead is put on
// skein.due at once.
//
// What is due waits, as in a work queue, until one receiver has acknowledged it;
// of several receivers one gets it. Timers survive a restart of the server, and
// those that were missed fire then. They are derived: who keeps the truth can
// put them again at any time, and must know what to do with one that comes twice.

// TimerLead is how long before its time a timer fires.
const TimerLead = time.Second

const (
	dueConsumer     = "skein-due"
	dueInHand       = 10000 // at all receivers together
	headerSchedule  = "Nats-Schedule"
	headerSchTarget = "Nats-Schedule-Target"
)

// timers gives the stream of timers and of what is due. Reads are answered by
// its leader: see DueWaits.
func (l *Log) timers() streams.Asset {
	n := l.cfg.Names
	return streams.Asset{Derived: true, Config: jetstream.StreamConfig{
		Name: n.Stream(TimerStream), Description: "Skein: timers, and what is due; derived from the log.",
		Subjects: []string{n.Timer("*", "*", "*"), n.Due("*", "*", "*")}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardOld, Replicas: l.cfg.Replicas, PersistMode: l.persist(), Duplicates: time.Second,
		AllowMsgSchedules: true, AllowRollup: true,
	}}
}

// Timer is something that is to be done at a time.
type Timer struct {
	Tenant, Thread, ID string // each one token of a subject
	At                 time.Time
	Data               []byte // for whoever receives it
}

// PutTimer sets a timer, in place of the one of the same name, and returns when
// the server has it.
func (l *Log) PutTimer(ctx context.Context, t Timer) error {
	due := l.cfg.Names.Due(t.Tenant, t.Thread, t.ID)
	m := &nats.Msg{Subject: due, Data: t.Data}
	if early := t.At.Add(-TimerLead); time.Until(early) > 0 {
		m.Subject = l.cfg.Names.Timer(t.Tenant, t.Thread, t.ID)
		m.Header = nats.Header{headerSchedule: {"@at " + early.UTC().Format(time.RFC3339Nano)}, headerSchTarget: {due}}
	}
	if _, err := l.conn.JetStream().PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("a timer: %w", err)
	}
	return nil
}

// DropTimers removes a timer that has not fired; with * as id all of the thread.
// What is due already stays.
func (l *Log) DropTimers(ctx context.Context, tenant, thread, id string) error {
	stream, err := l.conn.JetStream().Stream(ctx, l.cfg.Names.Stream(TimerStream))
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(l.cfg.Names.Timer(tenant, thread, id)))
	}
	if err != nil {
		return fmt.Errorf("dropping timers: %w", err)
	}
	return nil
}

// Timers gives the names, {tenant}.{thread}.{id}, of all that have a timer, or
// are due and not acknowledged.
func (l *Log) Timers(ctx context.Context) (map[string]struct{}, error) {
	stream, err := l.conn.JetStream().Stream(ctx, l.cfg.Names.Stream(TimerStream))
	var info *jetstream.StreamInfo
	if err == nil {
		info, err = stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	}
	if err != nil {
		return nil, fmt.Errorf("the list of timers: %w", err)
	}
	names := make(map[string]struct{}, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		if tenant, thread, id, ok := l.cfg.Names.ParseTimer(subject); ok {
			names[tenant+"."+thread+"."+id] = struct{}{}
		}
	}
	return names, nil
}

// DueWaits reports whether what is due under that sequence and name is still to
// be acknowledged, as the stream's leader knows it.
func (l *Log) DueWaits(ctx context.Context, seq uint64, tenant, thread, id string) (bool, error) {
	stream, err := l.conn.JetStream().Stream(ctx, l.cfg.Names.Stream(TimerStream))
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
	return m.Subject == l.cfg.Names.Due(tenant, thread, id), nil
}

// Due gives what is due to whoever asks: the same consumer for all. What is not
// acknowledged, nor said to be in progress, within wait is given to another.
func (l *Log) Due(ctx context.Context, wait time.Duration) (jetstream.Consumer, error) {
	c, err := l.conn.JetStream().CreateOrUpdateConsumer(ctx, l.cfg.Names.Stream(TimerStream), jetstream.ConsumerConfig{
		Durable: dueConsumer, Description: "Skein: what is due.", FilterSubject: l.cfg.Names.Due("*", "*", "*"),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: wait, MaxDeliver: -1, MaxAckPending: dueInHand,
	})
	if err != nil {
		return nil, fmt.Errorf("the consumer of what is due: %w", err)
	}
	return c, nil
}

// NameOfDue takes the name of what is due apart.
func (l *Log) NameOfDue(m jetstream.Msg) (tenant, thread, id string, ok bool) {
	if !strings.HasPrefix(m.Subject(), l.cfg.Names.Prefix+".due.") {
		return "", "", "", false
	}
	return l.cfg.Names.ParseTimer(m.Subject())
}
