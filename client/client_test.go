package client_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// start runs a whole Skein for a test, and returns its URL.
func start(t testing.TB) string {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{
		Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true,
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s.Addresses().NATS
}

func connect(t testing.TB, url string) *client.Client {
	t.Helper()
	c, err := client.Connect(url, client.Options{Tenant: "acme", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newThread(t testing.TB, c *client.Client) string {
	t.Helper()
	reply, err := c.Send(t.Context(), "", events.CreateThread{Title: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	return reply.ThreadID
}

func message(text string) events.CreateItem {
	return events.CreateItem{Item: events.NewItem{
		Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"` + text + `"}]`),
	}}
}

// A tenant is required (EK-180, EK-181).
func TestConnect_RefusesMissingTenant(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"", "a.b", "a b", ">"} {
		if _, err := client.Connect("nats://127.0.0.1:1", client.Options{Tenant: tenant}); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
			t.Errorf("tenant %q: %v", tenant, err)
		}
	}
}

func TestCommands_RepliesAndRefusals(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	thread := newThread(t, c)
	reply, err := c.Send(t.Context(), thread, message("hello"), client.ExpectVersion(2))
	if err != nil || reply.Version != 3 || reply.Result.ItemID == "" {
		t.Fatalf("%+v, %v", reply, err)
	}
	var refusal *events.Error
	_, err = c.Send(t.Context(), thread, message("late"), client.ExpectVersion(2))
	if !errors.As(err, &refusal) || refusal.Code != events.VersionConflict || *refusal.Details.CurrentVersion != 3 {
		t.Errorf("a stale version: %v", err)
	}
	_, err = c.Send(t.Context(), thread, events.SetThreadStatus{To: events.ThreadClosed})
	if !errors.As(err, &refusal) || refusal.Code != events.IllegalTransition || len(refusal.Details.Allowed) != 1 {
		t.Errorf("a forbidden move: %v", err)
	}
	_, err = c.Send(t.Context(), "T-01900000-0000-7000-8000-000000000000", message("nowhere"))
	if !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("no such thread: %v", err)
	}
	again := func() *events.Reply {
		r, err := c.Send(t.Context(), thread, message("once"), client.CommandID("once"))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if one, two := again(), again(); one.Result.ItemID != two.Result.ItemID || one.Seq != two.Seq {
		t.Error("a repeated command was done twice")
	}
	first, _ := client.Sub("item.create", message("in"))
	second, _ := client.Sub("thread.status", events.SetThreadStatus{To: events.ThreadStreaming})
	if r, err := c.Commit(t.Context(), thread, []events.SubCommand{first, second}); err != nil || len(r.Events) != 2 {
		t.Errorf("a commit: %+v, %v", r, err)
	}
}

// A service that answers late, fails at first, or is not running yet receives the same
// command id with each attempt.
func TestRequest_RetriesKeepCommandID(t *testing.T) {
	t.Parallel()
	url := start(t)
	nc := natstest.Dial(t, url)
	// A second subject prefix serves as an unreliable service.
	names := events.Names{Prefix: "odd"}
	c, err := client.New(nc, client.Options{Tenant: "acme", Names: names, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var bodies []string
	go func() {
		time.Sleep(100 * time.Millisecond) // no responders until then
		_, _ = nc.Subscribe("odd.cmd.acme.>", func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			bodies = append(bodies, string(m.Data))
			if len(bodies) < 3 {
				refusal := nats.NewMsg(m.Reply)
				refusal.Header.Set(events.HeaderErrorCode, "503")
				refusal.Data = events.EncodeError(events.Errorf(events.Unavailable, "not now"))
				_ = m.RespondMsg(refusal)
				return
			}
			_ = m.Respond([]byte(`{"threadId":"T-01900000-0000-7000-8000-000000000000","version":1,"seq":1,"events":[]}`))
		})
	}()
	if _, err := c.Send(t.Context(), "", events.CreateThread{}); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 3 || bodies[0] != bodies[1] || bodies[1] != bodies[2] {
		t.Errorf("the requests were %q", bodies)
	}
}

// If a command may have been executed and no retry tells, the error says that the
// outcome is unknown, with the id under which the command can be repeated.
func TestRequest_ReportsUnknownOutcome(t *testing.T) {
	t.Parallel()
	nc := natstest.Dial(t, start(t))
	c, err := client.New(nc, client.Options{Tenant: "acme", Names: events.Names{Prefix: "odd"}, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var tries atomic.Int64
	var id atomic.Value
	// A second subject prefix serves as a service that loses track of what it wrote.
	if _, err := nc.Subscribe("odd.cmd.acme.>", func(m *nats.Msg) {
		var body events.Request
		_ = json.Unmarshal(m.Data, &body)
		id.Store(body.CommandID)
		e := events.Errorf(events.Unavailable, "not now")
		if tries.Add(1) == 1 {
			e.Details = &events.ErrorDetails{Outcome: "unknown"}
		}
		refusal := nats.NewMsg(m.Reply)
		refusal.Header.Set(events.HeaderErrorCode, "503")
		refusal.Data = events.EncodeError(e)
		_ = m.RespondMsg(refusal)
	}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Send(t.Context(), "", events.CreateThread{})
	var refusal *events.Error
	if !errors.As(err, &refusal) || refusal.Code != events.Unavailable || refusal.Details == nil || refusal.Details.Outcome != "unknown" || refusal.Details.ID != id.Load() || tries.Load() < 2 {
		t.Errorf("after %d tries with the id %v: %+v", tries.Load(), id.Load(), err)
	}
}

// A query tells the service how long the client waits.
func TestQuery_SendsDeadline(t *testing.T) {
	t.Parallel()
	nc := natstest.Dial(t, start(t))
	c, err := client.New(nc, client.Options{Tenant: "acme", Names: events.Names{Prefix: "odd"}, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	if _, err = nc.Subscribe("odd.query.acme.>", func(m *nats.Msg) {
		said <- m.Header.Get(events.HeaderWait)
		_ = m.Respond([]byte(`{}`))
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Thread(t.Context(), "T-01900000-0000-7000-8000-000000000000"); err != nil {
		t.Fatal(err)
	}
	if ms, err := strconv.Atoi(<-said); err != nil || ms < 1 || ms > 2000 {
		t.Errorf("the deadline sent is %d ms: %v", ms, err)
	}
}

func TestRequest_NoResponders(t *testing.T) {
	url := start(t)
	nc := natstest.Dial(t, url)
	c, _ := client.New(nc, client.Options{Tenant: "acme", Names: events.Names{Prefix: "odd"}, Timeout: 300 * time.Millisecond})
	begin := time.Now()
	_, err := c.Send(t.Context(), "", events.CreateThread{})
	var refusal *events.Error
	if !errors.As(err, &refusal) || refusal.Code != events.Unavailable || !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("without responders: %v", err)
	}
	if refusal.Details != nil && refusal.Details.Outcome != "" {
		t.Error("without responders the outcome is unknown")
	}
	if took := time.Since(begin); took > 10*time.Second { // the default is 20 s
		t.Errorf("it took %v to give up", took)
	}
}

// A client that has seen a commit sends its sequence with every query that waits for a read model,
// whatever form the data has, unless the data names one itself.
func TestQuery_SendsMinSeq(t *testing.T) {
	t.Parallel()
	nc := natstest.Dial(t, natstest.Start(t).URL())
	c, err := client.New(nc, client.Options{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 1)
	if _, err := nc.Subscribe("skein.query.acme.>", func(m *nats.Msg) {
		asked <- string(m.Data)
		_ = m.Respond([]byte(`{}`))
	}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, query string
		data        any
		want        string
	}{
		{"struct", "thread.get", events.GetThread{ThreadID: "T-1"}, `{"minSeq":7,"threadId":"T-1"}`},
		{"map", "item.list", map[string]any{"threadId": "T-1"}, `{"minSeq":7,"threadId":"T-1"}`},
		{"JSON", "item.list", events.JSON(` { }`), `{"minSeq":7}`},
		{"no data", "thread.list", nil, `{"minSeq":7}`},
		{"own minSeq", "thread.get", map[string]any{"threadId": "T-1", "minSeq": 9}, `{"minSeq":9,"threadId":"T-1"}`},
		{"no object", "thread.get", []int{1}, `[1]`},
		{"unknown query", "thread.weigh", map[string]any{}, `{}`},
	} {
		if _, err := c.WithMinSeq(7).Query(t.Context(), tt.query, tt.data); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := <-asked; got != tt.want {
			t.Errorf("%s: sent %s, want %s", tt.name, got, tt.want)
		}
		if _, err := c.Query(t.Context(), tt.query, tt.data); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := <-asked; strings.Contains(got, `"minSeq":7`) {
			t.Errorf("%s: a client without a sequence sent %s", tt.name, got)
		}
	}
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	thread := newThread(t, c)
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{Thread: thread, From: client.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	for range 2 { // the same id: executed once, even if stored twice
		if _, err := c.Submit(t.Context(), "item.create", client.Request{ThreadID: thread, Data: message("stored"), CommandID: "s1"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Submit(t.Context(), "thread.status", client.Request{ThreadID: thread, Data: events.SetThreadStatus{To: events.ThreadClosed}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []events.Type{events.ItemCreatedType, events.CommandRejectedType} {
		if e := next(t, line); e.Type != want {
			t.Errorf("%s, not %s", e.Type, want)
		}
	}
}

// A durable consumer sees each event in order; after a handler fails, it receives the
// same event again.
func TestConsume(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	thread := newThread(t, c)
	for range 3 {
		if _, err := c.Send(t.Context(), thread, message("m")); err != nil {
			t.Fatal(err)
		}
	}
	consume := func(until int) []int64 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var seen []int64
		var failed atomic.Bool
		err := c.Consume(ctx, "reader", client.Filter{Types: []string{"item.*"}}, func(_ context.Context, e client.Event) error {
			if e.Version == 4 && !failed.Swap(true) {
				return errors.New("not yet")
			}
			if seen = append(seen, e.Version); len(seen) == until {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return seen
	}
	if got := consume(3); len(got) != 3 || got[0] != 3 || got[1] != 4 || got[2] != 5 {
		t.Errorf("versions %v", got)
	}
	if _, err := c.Send(t.Context(), thread, message("later")); err != nil {
		t.Fatal(err)
	}
	if got := consume(1); got[len(got)-1] != 6 {
		t.Errorf("after a restart: versions %v", got)
	}
	// An event that a process did not finish before it ended is delivered to the next
	// one.
	seen := func(does error) (versions []int64) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_ = c.Consume(ctx, "another", client.Filter{Types: []string{"item.*"}}, func(_ context.Context, e client.Event) error {
			if versions = append(versions, e.Version); does == nil || len(versions) == 2 {
				cancel()
			}
			return does
		})
		return versions
	}
	if failed, again := seen(errors.New("not here")), seen(nil); len(failed) != 2 || failed[0] != 3 || failed[1] != 3 || len(again) != 1 || again[0] != 3 {
		t.Errorf("a process that could not do it saw %v, and the next one %v", failed, again)
	}
}

func next(t testing.TB, line *client.Timeline) client.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	e, err := line.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A query that was told how far its read model is says so, also where the time is over while it is
// repeated; and it is not repeated much longer than another Skein needs to take over.
func TestQuery_ProjectionBehind(t *testing.T) {
	t.Parallel()
	nc := natstest.Dial(t, start(t))
	for name, c := range map[string]struct {
		timeout time.Duration
		answers int64 // how many tries are answered
		least   time.Duration
	}{
		"short": {500 * time.Millisecond, 1, 0},
		"long":  {time.Hour, 1 << 40, 2 * events.FreshWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl, err := client.New(nc, client.Options{Tenant: "acme", Names: events.Names{Prefix: name}, Timeout: c.timeout})
			if err != nil {
				t.Fatal(err)
			}
			var tries atomic.Int64
			sub, err := nc.Subscribe(name+".query.acme.>", func(m *nats.Msg) {
				if tries.Add(1) > c.answers {
					return
				}
				refusal := nats.NewMsg(m.Reply)
				refusal.Header.Set(events.HeaderErrorCode, "503")
				refusal.Data = events.EncodeError(events.Errorf(events.ProjectionBehind, "up to 3, not yet 4"))
				_ = m.RespondMsg(refusal)
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = sub.Unsubscribe() }()
			began := time.Now()
			_, err = client.Read(t.Context(), cl, events.ListThreads{})
			if e := events.AsError(err); e.Code != events.ProjectionBehind || e.Message != "up to 3, not yet 4" || tries.Load() < 2 {
				t.Errorf("after %d tries: %v", tries.Load(), err)
			}
			if took := time.Since(began); took < c.least || took > c.least+20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
