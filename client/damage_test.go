package client_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// A refusal that names damage of the store ends what a client reads, and is not repeated.
func TestRequest_UnreadableStreamIsFinal(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	c, err := client.New(nc, client.Options{Tenant: "acme", Timeout: natstest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	refuse := func(m *nats.Msg) {
		asked.Add(1)
		e := events.Unreadable("SKEIN_LOG", 7, nil)
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header(e.Headers()), Data: events.EncodeError(e)})
	}
	for _, query := range []string{"history.list", "thread.get", "execution.get"} {
		if _, err := nc.Subscribe("skein.query.acme."+query, refuse); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nc.Subscribe("skein.query.acme.history.get", func(m *nats.Msg) { _ = m.Respond([]byte(`{"lastSeq":9}`)) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	thread := "T-01900000-0000-7000-8000-000000000000"
	for name, read := range map[string]func(context.Context) error{
		"query": func(ctx context.Context) error {
			_, err := client.Read(ctx, c, events.GetThread{ThreadID: thread})
			return err
		},
		"history": func(ctx context.Context) error {
			timeline, err := c.Timeline(ctx, client.SubscribeOptions{History: true})
			if err != nil {
				return err
			}
			defer timeline.Close()
			_, err = timeline.Next(ctx)
			return err
		},
		"follow": func(ctx context.Context) error {
			timeline, err := c.Timeline(ctx, client.SubscribeOptions{})
			if err != nil {
				return err
			}
			defer timeline.Close()
			_, err = timeline.Next(ctx)
			return err
		},
		"run": func(ctx context.Context) error {
			_, err := c.WaitRun(ctx, events.GetExecution{ThreadID: thread, ExecutionID: "x"})
			return err
		},
	} {
		asked.Store(0)
		err := read(t.Context())
		if n := asked.Load(); !events.IsUnreadable(err) || events.AsError(err).Details.Seq != 7 || n != 1 {
			t.Errorf("%s: %d requests, and then %v; want one, and the sequence 7", name, n, err)
		}
	}
}
