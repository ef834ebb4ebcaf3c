package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/server"
)

// store is a nats-server that is not killed, with a Skein that takes commands, maintains
// the read models, and executes nothing itself.
type store struct {
	t   testing.TB
	url string
	*client.Client
}

func startStore(t testing.TB) *store {
	t.Helper()
	s := &store{t: t, url: natstest.Start(t).URL()}
	startServe(t, server.Config{NATS: s.url, HTTPListen: "127.0.0.1:0", Workers: -1})
	s.Client = connect(t, s.url)
	return s
}

// startServe runs a Skein in the test's own process.
func startServe(t testing.TB, cfg server.Config) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t testing.TB, url string) *client.Client {
	t.Helper()
	c, err := client.Connect(url, client.Options{Tenant: tenant, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// patient returns the test's context with a deadline that only a failure reaches.
func patient(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func waitFor[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("this never came: %s", what)
		panic("unreachable")
	}
}

// The ids are the test's own, so that they are the same in every run.
func executionID(n, turn int) string { return fmt.Sprintf("exe_%d_%d", n, turn) }
func triggerID(n, turn int) string   { return fmt.Sprintf("itm_%d_%d_said", n, turn) }
func reactionID(n, turn int) string  { return fmt.Sprintf("itm_%d_%d_answer", n, turn) }

// ask begins a turn of a talk, whose thread must have had none yet.
func (k talk) ask(ctx context.Context, c *client.Client, turn int) (*events.Reply, error) {
	quoted, err := jsontext.AppendQuote(nil, k.said[turn])
	if err != nil {
		return nil, err
	}
	said := events.JSON(`[{"type":"input_text","text":` + string(quoted) + `}]`)
	return c.Send(ctx, k.thread, events.ReactThread{
		AgentID: agent, ExecutionID: executionID(k.n, turn), ReactionItemID: reactionID(k.n, turn),
		Item: &events.NewItem{ID: triggerID(k.n, turn), Type: events.Message, Role: events.User, Content: said},
	}, client.CommandID(executionID(k.n, turn)))
}

// have has a whole talk: one turn after another, each to its end.
func (k talk) have(ctx context.Context, c *client.Client) error {
	if _, err := c.Send(ctx, "", events.CreateThread{AgentID: agent}, client.ThreadID(k.thread)); err != nil {
		return err
	}
	for turn := range k.said {
		reply, err := k.ask(ctx, c, turn)
		if err != nil {
			return fmt.Errorf("thread %d, turn %d: %w", k.n, turn, err)
		}
		seq := reply.Seq
		x, err := c.WaitRun(ctx, events.GetExecution{ThreadID: k.thread, ExecutionID: executionID(k.n, turn), Fresh: events.Fresh{MinSeq: &seq}})
		if err != nil {
			return fmt.Errorf("thread %d, turn %d: %w; %s", k.n, turn, err, k.describe(c))
		}
		if x.Status != events.ExecutionCompleted && !strings.HasPrefix(x.ErrorText, "the limit of 20 steps") { // some were longer
			return fmt.Errorf("thread %d, turn %d ended %s: %s", k.n, turn, x.Status, x.ErrorText)
		}
	}
	return nil
}

// describe returns what the log has of a thread, for the message of a failure.
func (k talk) describe(c *client.Client) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	line, err := c.Timeline(ctx, client.SubscribeOptions{Thread: k.thread, From: client.Start(), History: true})
	if err != nil {
		return err.Error()
	}
	defer line.Close()
	text := "the log has"
	for e, err := range line.All(ctx) {
		if err != nil {
			return text + ", and then " + err.Error()
		}
		text += " " + string(e.Type)
	}
	return text
}

// audited checks all that is stored.
func audited(t testing.TB, url string) {
	t.Helper()
	nc := natstest.Dial(t, url)
	log, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	validator, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := audit.Verify(patient(t, patience), log, validator, audit.Options{Finding: func(f audit.Finding) {
		t.Errorf("the audit found %+v", f)
	}})
	if err != nil || sum.Findings > 0 || sum.Events == 0 {
		t.Errorf("the audit: %+v, %v", sum, err)
	}
}
