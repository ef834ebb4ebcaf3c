package backup

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/internal/natstest"
)

// What a copy lacks is missing, unless it was removed from the stream while it was copied.
func TestSnapshot_Complete(t *testing.T) {
	log, err := eventlog.Open(natstest.Connect(t, natstest.Start(t)), eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	conn := log.Streams()
	stream, err := conn.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "some", Subjects: []string{"some.>"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := conn.JetStream().Publish(t.Context(), fmt.Sprint("some.", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, seq := range []uint64{1, 2, 5, 7} {
		if err := stream.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	copied := func(messages uint64, gaps ...gap) *snapshot {
		s := &snapshot{messages: messages, gaps: gaps}
		s.state.Messages, s.state.First, s.state.Last = 9, 1, 10 // 5 was removed before
		return s
	}
	for _, s := range []*snapshot{copied(9, gap{5, 5}), copied(8, gap{5, 5}, gap{7, 7}), copied(6, gap{1, 2}, gap{5, 5}, gap{7, 7})} {
		if err := s.complete(t.Context(), conn, "some"); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for missing, s := range map[uint64]*snapshot{
		6: copied(8, gap{5, 6}), 3: copied(5, gap{1, 3}, gap{5, 5}, gap{7, 7}), 10: copied(7, gap{5, 5}, gap{7, 7}, gap{10, 10}),
	} {
		var incomplete *IncompleteError
		if err := s.complete(t.Context(), conn, "some"); !errors.As(err, &incomplete) || incomplete.Seq != missing {
			t.Errorf("without %d: %v", missing, err)
		}
	}
}
