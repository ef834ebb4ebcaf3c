package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// world is a whole Skein, with a client of one tenant.
type world struct {
	t      *testing.T
	cfg    server.Config
	server *server.Server
	*client.Client
}

func startWorld(t *testing.T, cfg server.Config, tenant string) *world {
	t.Helper()
	w := &world{t: t, cfg: cfg}
	w.start(tenant)
	t.Cleanup(w.stop)
	return w
}

func (w *world) start(tenant string) {
	w.t.Helper()
	server, err := server.Start(w.t.Context(), w.cfg, zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = server
	w.Client = w.as(tenant)
}

// as returns a client of another tenant.
func (w *world) as(tenant string) *client.Client {
	w.t.Helper()
	c, err := client.Connect(w.server.Addresses().NATS, client.Options{Tenant: tenant, Names: w.cfg.Names, Timeout: time.Minute})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) stop() {
	if w.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := w.server.Stop(ctx); err != nil {
		w.t.Error(err)
	}
	w.server = nil
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// latest returns a client whose queries show everything written before.
func (w *world) latest() *client.Client {
	w.t.Helper()
	return must(w.UpToDate(w.t.Context()))(w.t)
}

func store(t *testing.T) server.Config {
	return server.Config{Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0"}
}

const (
	user      = `[{"type":"input_text","text":"Create a project plan."}]`
	asked     = `[{"type":"output_text","text":"I will build the plan in phases."},{"type":"tool-plan_writer","toolCallId":"tc_1","input":{"scope":"full"}}]`
	answered  = `[{"type":"output_text","text":"I will build the plan in phases."},{"type":"tool-plan_writer","toolCallId":"tc_1","state":"output-available","input":{"scope":"full"},"output":{"ok":true}}]`
	toolAsked = `{"type":"tool-plan_writer","toolCallId":"tc_1","input":{"scope":"full"}}`
	toolDone  = `{"type":"tool-plan_writer","toolCallId":"tc_1","state":"output-available","input":{"scope":"full"},"output":{"ok":true}}`
)

// canonicalTurn executes EK 14 with the ids of the specification.
func canonicalTurn(t *testing.T, c *client.Client) (threadID string) {
	t.Helper()
	ctx := t.Context()
	zero, no := int64(0), false
	created := must(c.Send(ctx, "", events.CreateThread{}))(t)
	id := created.ThreadID
	do := func(r *events.Reply, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(c.Send(ctx, id, events.CreateItem{Item: events.NewItem{
		ID: "itm_u1", Type: events.Message, Role: events.User, CreatedAt: "2026-02-20T12:00:00.000Z", Content: events.JSON(user),
	}}))
	do(c.Send(ctx, id, events.SetThreadStatus{To: events.ThreadStreaming}))
	do(c.Send(ctx, id, events.SetContextStatus{To: events.ContextStreaming}))
	do(c.Send(ctx, id, events.CreateExecution{ID: "exe_1", TriggerItemID: "itm_u1", ReactionItemID: "itm_a1"}))
	do(c.Send(ctx, id, events.CreateStep{ID: "stp_1", ExecutionID: "exe_1"}))
	one := int64(1)
	do(c.Send(ctx, id, events.PutPart{StepID: "stp_1", Idx: &zero, Type: "output_text", Part: events.JSON(`{"type":"output_text","text":"I will build the plan in phases."}`)}))
	do(c.Send(ctx, id, events.PutPart{StepID: "stp_1", Idx: &one, Type: "tool-plan_writer", Part: events.JSON(toolAsked)}))
	do(c.Send(ctx, id, events.CreateItem{Item: events.NewItem{
		ID: "itm_a1", Type: events.Message, Role: events.Assistant, Status: events.ItemPending, Content: events.JSON(asked),
	}}))
	do(c.Send(ctx, id, events.PutPart{StepID: "stp_1", Idx: &one, Type: "tool-plan_writer", Part: events.JSON(toolDone)}))
	do(c.Send(ctx, id, events.EditMessage{ItemID: "itm_a1", Content: events.JSON(answered)}))
	do(c.Send(ctx, id, events.SetStepStatus{StepID: "stp_1", To: events.StepCompleted, ContinueLoop: &no}))
	do(c.Send(ctx, id, events.SetItemStatus{ItemID: "itm_a1", To: events.ItemCompleted}))
	do(c.Send(ctx, id, events.SetExecutionStatus{ExecutionID: "exe_1", To: events.ExecutionCompleted}))
	do(c.Send(ctx, id, events.FinishThread{ExecutionID: "exe_1"}))
	do(c.Send(ctx, id, events.SetContextStatus{To: events.ContextOpen}))
	do(c.Send(ctx, id, events.SetThreadStatus{To: events.ThreadOpen}))
	return id
}

func wantJSON(t *testing.T, got events.JSON, want string) {
	t.Helper()
	g, w := jsontext.Value(got).Clone(), jsontext.Value(want)
	if err := errors.Join(g.Canonicalize(), w.Canonicalize()); err != nil || string(g) != string(w) {
		t.Errorf("got  %s\nwant %s (%v)", got, want, err)
	}
}

// The canonical turn of EK 14, through the client, and all of it still there after a
// restart: EK-2, EK-14, EK-29, EK-79, EK-100, EK-187..EK-194.
func TestCanonicalTurnSurvivesRestart(t *testing.T) {
	t.Parallel()
	w := startWorld(t, store(t), "acme")
	id := canonicalTurn(t, w.Client)
	checkTurn(t, w.latest(), id)
	w.stop()
	w.start("acme")
	checkTurn(t, w.latest(), id)
	// And an idle thread accepts the next turn.
	if _, err := w.Send(t.Context(), id, events.SetThreadStatus{To: events.ThreadStreaming}); err != nil {
		t.Error(err)
	}
}

func checkTurn(t *testing.T, c *client.Client, id string) {
	t.Helper()
	ctx := t.Context()
	thread := must(client.Read(ctx, c, events.GetThread{ThreadID: id}))(t)
	context := must(client.Read(ctx, c, events.GetContext{ThreadID: id}))(t)
	if thread.Status != events.ThreadOpen || context.Status != events.ContextOpen || context.ThreadID != id {
		t.Errorf("thread %s, context %s of %s", thread.Status, context.Status, context.ThreadID)
	}
	trigger := must(client.Read(ctx, c, events.GetItem{ThreadID: id, ItemID: "itm_u1"}))(t)
	if trigger.CreatedAt != "2026-02-20T12:00:00.000Z" || trigger.Role != events.User || trigger.ContextID != context.ID {
		t.Errorf("trigger %+v", trigger)
	}
	wantJSON(t, trigger.Content, user)
	reaction := must(client.Read(ctx, c, events.GetItem{ThreadID: id, ItemID: "itm_a1"}))(t)
	if reaction.Status != events.ItemCompleted {
		t.Errorf("reaction %s", reaction.Status)
	}
	wantJSON(t, reaction.Content, answered)
	execution := must(client.Read(ctx, c, events.GetExecution{ThreadID: id, ExecutionID: "exe_1"}))(t)
	if execution.Status != events.ExecutionCompleted || execution.TriggerItemID != "itm_u1" || execution.ReactionItemID != "itm_a1" || !execution.Finished {
		t.Errorf("execution %+v", execution)
	}
	parts := must(client.Read(ctx, c, events.ListParts{ThreadID: id, StepID: "stp_1"}))(t).Parts
	if len(parts) != 2 || parts[1].Key != "stp_1:1" {
		t.Fatalf("parts %+v", parts)
	}
	wantJSON(t, parts[1].Part, toolDone)
	// Before the tool ran, the reaction was pending (EK-189).
	list := must(client.Read(ctx, c, events.ListEvents{ThreadID: id, Types: []string{"item.created"}}))(t)
	var pending events.Event
	for _, raw := range list.Events {
		pending = must(events.DecodeEvent(raw))(t)
	}
	version := pending.Version
	then := must(client.Read(ctx, c, events.GetItem{ThreadID: id, ItemID: "itm_a1", At: &events.At{Version: &version}}))(t)
	if then.Status != events.ItemPending {
		t.Errorf("reaction was %s", then.Status)
	}
	wantJSON(t, then.Content, asked)
	// The whole history is valid for machines and links.
	all := must(client.Read(ctx, c, events.ListEvents{ThreadID: id}))(t)
	var history []events.Event
	for _, raw := range all.Events {
		history = append(history, must(events.DecodeEvent(raw))(t))
	}
	if err := events.ValidateTimeline(history); err != nil || len(history) != int(thread.Version) {
		t.Errorf("%d events at version %d: %v", len(history), thread.Version, err)
	}
}

// Editing what an item shows leaves the parts of its step unchanged: the parts are
// authoritative, and the item's content is a copy. EK-79, EK-80.
func TestParts_AreAuthoritative(t *testing.T) {
	t.Parallel()
	w := startWorld(t, store(t), "acme")
	id := canonicalTurn(t, w.Client)
	if _, err := w.Send(t.Context(), id, events.EditMessage{ItemID: "itm_a1", Content: events.JSON(`[]`)}); err != nil {
		t.Fatal(err)
	}
	parts := must(client.Read(t.Context(), w.latest(), events.ListParts{ThreadID: id, StepID: "stp_1"}))(t).Parts
	if len(parts) != 2 {
		t.Fatalf("parts %+v", parts)
	}
	wantJSON(t, parts[1].Part, toolDone)
}

// The six entities that EK adds to Open Responses each have events of their own,
// documents of their own, and are available in the client; invalid changes are refused
// and change nothing. EK-5, EK-12, EK-29, EK-151..EK-159.
func TestEntities(t *testing.T) {
	t.Parallel()
	w := startWorld(t, store(t), "acme")
	id := canonicalTurn(t, w.Client)
	js := must(jetstream.New(natstest.Dial(t, w.server.Addresses().NATS)))(t)
	defer js.Conn().Close()
	thread := must(client.Read(t.Context(), w.latest(), events.GetThread{ThreadID: id}))(t)
	for bucket, least := range map[string]int{
		"thread_threads": 1, "thread_contexts": 1, "thread_items": 2, "thread_executions": 1, "thread_steps": 1, "thread_parts": 2,
		"thread_trace_runs": 1, "thread_trace_spans": 1, "thread_trace_events": 0,
	} {
		kv := must(js.KeyValue(t.Context(), bucket))(t)
		keys := must(kv.ListKeysFiltered(t.Context(), "acme.>"))(t)
		have := 0
		for range keys.Keys() {
			have++
		}
		if have < least {
			t.Errorf("%s holds %d documents, not %d", bucket, have, least)
		}
	}
	_, err := w.Send(t.Context(), id, events.SetThreadStatus{To: events.ThreadClosed})
	if e := events.AsError(err); e.Code != events.IllegalTransition || len(e.Details.Allowed) != 1 || e.Details.Allowed[0] != "streaming" {
		t.Errorf("open -> closed: %v", err)
	}
	again := must(client.Read(t.Context(), w.latest(), events.GetThread{ThreadID: id}))(t)
	a, b := must(json.Marshal(thread))(t), must(json.Marshal(again))(t)
	if string(a) != string(b) {
		t.Errorf("a refused command changed the thread:\n%s\n%s", a, b)
	}
}

// Every request names a tenant, and sees nothing of another one; two installations on
// one server, with prefixes of their own, are separate as well. EK-178..EK-181.
func TestTenantsAndInstallationsAreApart(t *testing.T) {
	t.Parallel()
	w := startWorld(t, store(t), "acme")
	id := canonicalTurn(t, w.Client)
	other := w.as("globex")
	notThere := func(what string, err error) {
		t.Helper()
		if events.AsError(err).Code != events.NotFound {
			t.Errorf("%s: %v, want not_found", what, err)
		}
	}
	_, err := client.Read(t.Context(), other, events.GetThread{ThreadID: id})
	notThere("another tenant's query", err)
	_, err = other.Send(t.Context(), id, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON(user)}})
	notThere("another tenant's command", err)
	_, err = client.Read(t.Context(), other, events.GetItem{ItemID: "itm_u1"})
	notThere("another tenant's item by its id alone", err)
	list := must(client.Read(t.Context(), must(other.UpToDate(t.Context()))(t), events.ListThreads{}))(t)
	if len(list.Threads) != 0 {
		t.Errorf("another tenant lists %d threads", len(list.Threads))
	}
	if _, err := client.Connect(w.server.Addresses().NATS, client.Options{}); err == nil {
		t.Error("a client without a tenant was made")
	}
	second := startWorld(t, server.Config{
		NATS: w.server.Addresses().NATS, HTTPListen: "127.0.0.1:0", Names: events.Names{Prefix: "second"},
	}, "acme")
	_, err = client.Read(t.Context(), second.Client, events.GetThread{ThreadID: id})
	notThere("another installation's query", err)
	if _, err := second.Send(t.Context(), "", events.CreateThread{}, client.ThreadID(id)); err != nil {
		t.Errorf("the same id in another installation: %v", err)
	}
}
