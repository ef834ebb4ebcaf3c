package streams_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
)

// A server whose storage limit was reached is full, not out of reach: until another answer, also
// one about a condition that does not hold, or one to a program that only renews its lease.
func TestWriting_ServerIsFull(t *testing.T) {
	server := natstest.Start(t, func(o *embedded.Options) { o.MaxStore = 4 << 20 })
	nc := natstest.Connect(t, server)
	writing := &streams.Writing{}
	names := events.DefaultNames()
	conn, err := streams.Open(nc, streams.Config{
		Names: names, API: streams.OwnAPI, Replicas: 1, Sample: "LOG", AckTimeout: natstest.Patience, Floors: &streams.Floors{}, Writing: writing,
		Damage: func(string, uint64, uint64) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	stream, err := conn.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log.*"}, AllowAtomicPublish: true})
	if err != nil {
		t.Fatal(err)
	}
	message := func() *nats.Msg { return &nats.Msg{Subject: "log.a", Data: make([]byte, 1<<20)} }
	write := func() error {
		ack, err := conn.Publish(message())
		if err == nil && ack.Error != nil {
			return ack.Error
		}
		return err
	}
	for err == nil {
		err = write()
	}
	refused := events.AsError(err)
	if refused.Code != events.Unavailable || refused.Message == events.AsError(errors.New("other")).Message {
		t.Errorf("refused as %v", refused)
	}
	var full *streams.FullError
	if !errors.As(writing.Err(), &full) {
		t.Errorf("it is full, and it is said: %v", writing.Err())
	}
	ack, err := conn.PublishBatch([]*nats.Msg{message(), message()})
	if err != nil || ack.Error == nil || streams.Classify(err, ack.Error) != streams.Unavailable || events.AsError(ack.Error).Message != refused.Message {
		t.Errorf("a batch: %+v, %v", ack, err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	conditional := message()
	conditional.Header = nats.Header{streams.HeaderExpected: {"7"}}
	if ack, err := conn.Publish(conditional); err != nil || ack.Error == nil {
		t.Fatalf("%+v, %v", ack, err)
	}
	if err := writing.Err(); err != nil {
		t.Errorf("with room: %v", err)
	}
	for err = write(); err == nil; {
		_, err = conn.JetStream().PublishMsg(t.Context(), message())
		writing.AnsweredAs(err)
	}
	if !errors.As(writing.Err(), &full) {
		t.Errorf("full by package jetstream: %v, %v", err, writing.Err())
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = conn.JetStream().PublishMsg(t.Context(), message())
	if writing.AnsweredAs(err); err != nil || writing.Err() != nil {
		t.Errorf("with room again: %v, %v", err, writing.Err())
	}
}

// What does not fit on the disk is not sent, and the store counts as full until it fits.
func TestWriting_Room(t *testing.T) {
	free := 100
	writing := &streams.Writing{Room: func(bytes int) error {
		if bytes > free {
			return errors.New("too little")
		}
		return nil
	}}
	nc := natstest.Connect(t, natstest.Start(t))
	conn, err := streams.Open(nc, streams.Config{Names: events.DefaultNames(), API: streams.OwnAPI, Replicas: 1, AckTimeout: natstest.Patience, Floors: &streams.Floors{}, Writing: writing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	var full *streams.FullError
	_, err = conn.Publish(&nats.Msg{Subject: "nobody", Data: make([]byte, 101)})
	if !errors.As(err, &full) || streams.Classify(err, nil) != streams.Unavailable {
		t.Errorf("%v", err)
	}
	if _, err := conn.Publish(&nats.Msg{Subject: "nobody", Data: make([]byte, 100)}); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("what fits: %v", err)
	}
	if !errors.As(writing.Err(), &full) {
		t.Errorf("it counts as having room: %v", writing.Err())
	}
	free = 101
	if err := writing.Err(); err != nil {
		t.Errorf("with room: %v", err)
	}
	half := make([]byte, 51)
	if _, err := conn.PublishBatch([]*nats.Msg{{Subject: "nobody", Data: half}, {Subject: "nobody", Data: half}}); !errors.As(err, &full) {
		t.Errorf("a batch: %v", err)
	}
}
