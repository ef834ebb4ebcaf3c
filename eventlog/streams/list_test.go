package streams_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

// Requests that a server can ignore: for messages of a consumer, and for a new consumer.
const (
	pulls = "$JS.API.CONSUMER.MSG.NEXT.*.*"
	makes = "$JS.API.CONSUMER.CREATE.*.*"
)

// startIgnoring runs a server that can ignore requests, like one that does not know yet
// that it leads a consumer. Ignored requests are sent to a channel.
func startIgnoring(t *testing.T) (l *eventlog.Log, ignore func(to string, on bool), ignored <-chan *nats.Msg) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(natstest.Patience) {
		t.Fatal("the server does not start")
	}
	nc := natstest.Dial(t, s.ClientURL())
	lost := make(chan *nats.Msg, 64)
	if _, err := nc.ChanSubscribe("lost", lost); err != nil {
		t.Fatal(err)
	}
	if l, err = eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, func(to string, on bool) {
		if !on {
			s.GlobalAccount().RemoveMapping(to)
		} else if err := s.GlobalAccount().AddMapping(to, "lost"); err != nil {
			t.Fatal(err)
		}
	}, lost
}

// fill makes a stream with a message for each of the subjects, in their order.
func fill(t *testing.T, l *eventlog.Log, subjects ...string) jetstream.Stream {
	t.Helper()
	stream, err := l.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Storage: jetstream.MemoryStorage, AllowDirect: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, subject := range subjects {
		if _, err := l.JetStream().PublishAsync(subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 { // more outstanding ones would stall on a slow machine
			<-l.JetStream().PublishAsyncComplete()
		}
	}
	natstest.Within(t, "everything stored", l.JetStream().PublishAsyncComplete())
	return stream
}

func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}

// listed returns the subjects of a list when it has ended.
func listed(ctx context.Context, l *eventlog.Log, from jetstream.OrderedConsumerConfig) <-chan []string {
	done := make(chan []string, 1)
	go func() {
		var got []string
		for m, err := range l.Streams().List(ctx, "S", from) {
			if err != nil {
				got = append(got, err.Error())
				break
			}
			got = append(got, m.Subject())
		}
		done <- got
	}()
	return done
}

// A list whose first request was lost asks again: nobody would ever answer it.
func TestListAsksAgain(t *testing.T) {
	t.Parallel()
	l, ignore, ignored := startIgnoring(t)
	want := numbered("s.", 100)
	fill(t, l, want...)
	ignore(pulls, true)
	done := listed(t.Context(), l, jetstream.OrderedConsumerConfig{})
	natstest.Within(t, "the request", ignored)
	ignore(pulls, false)
	if got := natstest.Within(t, "the end of the list", done); !slices.Equal(got, want) {
		t.Errorf("listed %d of %d: %.200q", len(got), len(want), got)
	}
}

// A list whose request for a consumer was lost asks again, soon: nobody would ever answer it.
func TestList_LostRequestForAConsumer(t *testing.T) {
	t.Parallel()
	l, ignore, ignored := startIgnoring(t)
	l.Streams().SetReadTimeout(500 * time.Millisecond)
	want := numbered("s.", 100)
	fill(t, l, want...)
	ignore(makes, true)
	done := listed(t.Context(), l, jetstream.OrderedConsumerConfig{})
	first := natstest.Within(t, "the request", ignored)
	again := natstest.Within(t, "the second one", ignored)
	ignore(makes, false)
	if got := natstest.Within(t, "the end of the list", done); !slices.Equal(got, want) {
		t.Errorf("listed %d of %d: %.200q", len(got), len(want), got)
	}
	if string(first.Data) != string(again.Data) {
		t.Errorf("another consumer was asked for: %s, then %s", first.Data, again.Data)
	}
}

// A list of a server that answers nothing ends with the time that an operator gave it.
func TestList_EndsWithPatience(t *testing.T) {
	t.Parallel()
	l, ignore, _ := startIgnoring(t)
	fill(t, l, "s.a")
	hurried, err := eventlog.Open(l.Conn(), eventlog.Config{Patience: time.Second}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hurried.Close)
	ignore(makes, true)
	got := natstest.Within(t, "the end of the list", listed(t.Context(), hurried, jetstream.OrderedConsumerConfig{}))
	if len(got) != 1 || !strings.Contains(got[0], "the server did not answer within 1") {
		t.Errorf("listed %q", got)
	}
}

// A request that takes the server long is given more time with each try.
func TestAsk_WaitsLongerEachTime(t *testing.T) {
	t.Parallel()
	l, _, _ := startIgnoring(t)
	l.Streams().SetReadTimeout(20 * time.Millisecond)
	tries := 0
	err := l.Streams().Ask(t.Context(), func(ctx context.Context) error {
		tries++
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
			return nil
		}
	})
	if err != nil || tries < 3 || tries > 6 {
		t.Errorf("%d tries, %v", tries, err)
	}
}

// A list ends even if all messages that it was still to return have been removed.
func TestList_EndsWhenTheRestWasRemoved(t *testing.T) {
	t.Parallel()
	l, ignore, ignored := startIgnoring(t)
	stream := fill(t, l, numbered("s.", 100)...)
	ignore(pulls, true)
	done := listed(t.Context(), l, jetstream.OrderedConsumerConfig{})
	natstest.Within(t, "the request", ignored)
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	ignore(pulls, false)
	if got := natstest.Within(t, "the end of the list", done); len(got) != 0 {
		t.Errorf("listed %.200q", got)
	}
}

// A list of the last message of each subject whose consumer is lost goes on with
// one that delivers every message. They are more than were counted at first, and the
// last of them is listed all the same.
func TestListGoesOnWithAnotherConsumer(t *testing.T) {
	t.Parallel()
	l, _, _ := startIgnoring(t)
	var subjects []string
	subjects = append(subjects, numbered("s.early.", streams.ListRequest+100)...)
	subjects = append(subjects, slices.Repeat([]string{"s.often"}, 3000)...)
	subjects = append(subjects, numbered("s.late.", 50)...)
	stream := fill(t, l, subjects...)
	got := map[string]bool{}
	for m, err := range l.Streams().List(t.Context(), "S", jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}) {
		if err != nil {
			t.Fatal(err)
		}
		got[m.Subject()] = true
		if len(got) > 1 {
			continue
		}
		meta, err := m.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.DeleteConsumer(t.Context(), meta.Consumer); err != nil {
			t.Fatal(err)
		}
	}
	if want := streams.ListRequest + 100 + 1 + 50; len(got) != want {
		t.Errorf("listed %d subjects of %d", len(got), want)
	}
}

// A list that its reader leaves ends, and so does one whose context ends, also
// while it waits for another consumer.
func TestListIsLeft(t *testing.T) {
	t.Parallel()
	l, ignore, ignored := startIgnoring(t)
	fill(t, l, numbered("s.", 100)...)
	ctx, cancel := context.WithCancelCause(t.Context())
	for m, err := range l.Streams().List(ctx, "S", jetstream.OrderedConsumerConfig{}) {
		if err != nil || m.Subject() != "s.0" {
			t.Errorf("%v, %v", m, err)
		}
		break
	}
	ignore(pulls, true)
	done := listed(ctx, l, jetstream.OrderedConsumerConfig{})
	natstest.Within(t, "the request", ignored)
	ignore(makes, true)
	natstest.Within(t, "the request for another consumer", ignored)
	cancel(errors.New("enough"))
	if got := natstest.Within(t, "the end of the list", done); len(got) != 1 || got[0] != "listing the stream S: enough" {
		t.Errorf("listed %.200q", got)
	}
}

// What a consumer delivers is what direct reads return.
func TestDelivered_IsWhatMessagesReads(t *testing.T) {
	t.Parallel()
	l, _, _ := startIgnoring(t)
	fill(t, l, numbered("s.a.", 700)...)
	if _, err := l.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: "s.a.700", Data: []byte("y"), Header: nats.Header{"Skein-Seq": {"7"}}}); err != nil {
		t.Fatal(err)
	}
	read := func(list iter.Seq2[streams.Message, error]) (got []string) {
		t.Helper()
		for m, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(m.Seq, m.Subject, string(m.Data), m.Header.Get("Skein-Seq")))
		}
		return got
	}
	for subject, n := range map[string]int{">": 701, "s.a.7": 1, "s.b.*": 0} {
		want, got := read(l.Streams().Messages(t.Context(), "S", subject, 1)), read(l.Streams().Delivered(t.Context(), "S", subject))
		if len(got) != n || !slices.Equal(got, want) {
			t.Errorf("%s: %d messages, %d direct: %.200q", subject, len(got), len(want), got)
		}
	}
}

// A consumer that reports more and delivers nothing ends the read: what is next may be unreadable.
func TestDelivered_EndsWhereNothingCanBeRead(t *testing.T) {
	t.Parallel()
	l, _, _ := startIgnoring(t)
	stream := fill(t, l)
	for range 24 { // more than the client asks for at once
		if _, err := l.JetStream().Publish(t.Context(), "s.x", make([]byte, 512<<10)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	var failed error
	for _, err := range l.Streams().Delivered(t.Context(), "S", ">") {
		if failed = err; err != nil {
			break
		}
		if n++; n > 1 {
			continue
		}
		for info := range stream.ListConsumers(t.Context()).Info() {
			if _, err := l.JetStream().PauseConsumer(t.Context(), "S", info.Name, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var stalled *streams.StalledError
	if !errors.As(failed, &stalled) || stalled.Left != uint64(24-n) {
		t.Errorf("after %d messages: %v", n, failed)
	}
}
