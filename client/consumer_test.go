package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/internal/natstest"
)

// A timeline that has read the log leaves no consumer behind, which the server would
// keep for half a minute.
func TestTimeline_LeavesNoConsumer(t *testing.T) {
	t.Parallel()
	url := start(t)
	c := connect(t, url)
	thread := newThread(t, c)
	nc := natstest.Dial(t, url)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	consumers := func() int {
		stream, err := js.Stream(t.Context(), "SKEIN_LOG")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		list := stream.ListConsumers(t.Context())
		for info := range list.Info() {
			if strings.Contains(info.Config.FilterSubject+strings.Join(info.Config.FilterSubjects, " "), thread) {
				n++ // and not one of Skein's own
			}
		}
		if err := list.Err(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 5 {
		line, err := c.Timeline(t.Context(), client.SubscribeOptions{Thread: thread, History: true})
		if err != nil {
			t.Fatal(err)
		}
		next(t, line)
		line.Close()
	}
	for deadline := time.Now().Add(5 * time.Minute); consumers() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d consumers were left", consumers())
		}
	}
}
