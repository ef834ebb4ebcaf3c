package server_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// echoes registers a reactor that repeats the message, and an effect that counts its runs.
func echoes(effects *atomic.Int64) func(*runtime.Registry) error {
	return func(r *runtime.Registry) error {
		if err := r.AddEffect("count", runtime.EffectFunc(func(context.Context, *runtime.EffectInput) error {
			effects.Add(1)
			return nil
		})); err != nil {
			return err
		}
		return r.AddReactor("echo", runtime.ReactorFunc(func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
			return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":"received"}`)}}}, nil
		}))
	}
}

// works checks that reads, the timeline, runs and effects go on.
func works(t *testing.T, c *client.Client, effects *atomic.Int64, round int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	before := effects.Load()
	made, err := c.Send(ctx, "", events.CreateThread{AgentID: "echo"})
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	if answer, err := c.Ask(ctx, made.ThreadID, "hello"); err != nil || answer.Text != "received" {
		t.Fatalf("round %d: the answer is %+v, %v", round, answer, err)
	}
	if _, err := c.Send(ctx, made.ThreadID, events.ScheduleEffect{Name: "count", DelayMs: new(int64(100))}); err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	natstest.Eventually(t, fmt.Sprintf("the effect of round %d", round), func() bool { return effects.Load() > before })
	end, err := c.HistoryEnd(ctx)
	if err != nil {
		t.Fatal(err)
	}
	natstest.Eventually(t, fmt.Sprintf("the read models of round %d", round), func() bool {
		_, err = client.Read(ctx, c, events.ListThreads{Fresh: events.Fresh{MinSeq: &end}})
		return err == nil
	})
}

// A single nats-server that is stopped and started again has forgotten the leases. Two Skeins
// that use it go on with what they do in the background: read models, timeline, runs, effects.
func TestNATSRestart_WorkGoesOn(t *testing.T) {
	t.Parallel()
	address, store := natstest.FreeAddress(t), natstest.StoreDir(t.TempDir())
	ns := natstest.Start(t, natstest.Listen(address), store)
	var effects atomic.Int64
	cfg := server.Config{NATS: ns.URL(), HTTPListen: "127.0.0.1:0", Register: echoes(&effects)}
	first, second := run(t, cfg), run(t, cfg)
	defer stop(t, first) // before the last server is
	defer stop(t, second)
	c, err := client.Connect(ns.URL(), client.Options{Tenant: "acme", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	works(t, c, &effects, 0)
	for round := range 2 {
		ns.Shutdown()
		ns = natstest.Start(t, natstest.Listen(address), store)
		works(t, c, &effects, round+1)
		readyWithin(t, first)
	}
}

// A cluster whose three servers were all stopped goes on, too.
func TestNATSRestart_WholeCluster(t *testing.T) {
	servers := natstest.StartCluster(t)
	var effects atomic.Int64
	defer stop(t, run(t, server.Config{NATS: servers.URL(), Replicas: 3, HTTPListen: "127.0.0.1:0", Register: echoes(&effects)}))
	c, err := client.Connect(servers.URL(), client.Options{Tenant: "acme", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	works(t, c, &effects, 0)
	for i := range natstest.ClusterSize {
		servers.Stop(i)
	}
	for i := range natstest.ClusterSize {
		servers.Start(i)
	}
	works(t, c, &effects, 1)
}
