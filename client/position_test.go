package client_test

import (
	"errors"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// A timeline that begins beyond the end of the log, or in another log, is refused; one whose log is
// replaced by an older copy, or by another log, while it is open, ends. Neither waits.
func TestTimeline_PositionAhead(t *testing.T) {
	t.Parallel()
	long, short := start(t), start(t)
	write := func(n int) func(c *client.Client) int64 {
		return func(c *client.Client) (seq int64) {
			for range n {
				r, err := c.Send(t.Context(), "", events.CreateThread{})
				if err != nil {
					t.Fatal(err)
				}
				seq = r.Seq
			}
			return seq
		}
	}
	here := connect(t, long)
	end := write(5)(here)
	write(2)(connect(t, short))

	name := ""
	for from, refused := range map[client.Position]bool{
		client.Seq(end + 1): false, client.Seq(end + 2): true, client.Seq(1): false, client.Now(): false,
		client.At(events.Position{Seq: 1, Log: "r0ther"}): true,
	} {
		line, err := here.Timeline(t.Context(), client.SubscribeOptions{From: from})
		if got := errors.Is(err, &events.Error{Code: events.PositionAhead}); got != refused || err != nil && !got {
			t.Errorf("from %v: %v, refused: want %v", from, err, refused)
		}
		if err == nil {
			name = line.Log()
			line.Close()
		}
	}
	line, err := here.Timeline(t.Context(), client.SubscribeOptions{From: client.At(events.Position{Seq: end, Log: name})})
	if err != nil {
		t.Fatal(err)
	}
	if e := next(t, line); e.Seq != end {
		t.Errorf("from %d of this log: event of %d", end, e.Seq)
	}
	line.Close()

	for what, from := range map[string]int64{"a log that ends before": end, "another log": 1} {
		proxy := natstest.NewProxy(t, long)
		c, err := client.New(proxy.Connect(t), client.Options{Tenant: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		open, err := c.Timeline(t.Context(), client.SubscribeOptions{From: client.Seq(from)})
		if err != nil {
			t.Fatal(err)
		}
		for e := next(t, open); e.Seq < end; e = next(t, open) {
		}
		proxy.Lead(t, short)
		proxy.Cut()
		for err = nil; err == nil; {
			_, err = open.Next(t.Context())
		}
		if !errors.Is(err, &events.Error{Code: events.PositionAhead}) {
			t.Errorf("%s: %v", what, err)
		}
		open.Close()
	}
}
