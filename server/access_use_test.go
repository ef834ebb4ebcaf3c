package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/schema"
)

// settle waits until the read models and the timeline show a commit.
func (g *guarded) settle(c *client.Client, seq int64) {
	g.t.Helper()
	if _, err := client.Read(g.t.Context(), c.WithMinSeq(seq), events.ListThreads{}); err != nil {
		g.t.Fatal(err)
	}
	log := g.log("root", "")
	for deadline := time.Now().Add(5 * time.Minute); ; {
		at, err := timeline.Of(log).LastSeq(g.t.Context())
		if err != nil {
			g.t.Fatal(err)
		}
		if int64(at) >= seq {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("the timeline is at %d, not %d", at, seq)
		}
		time.Sleep(5 * time.Millisecond) // there is no signal for it
	}
}

// log opens the log as a user without a tenant.
func (g *guarded) log(name, api string) *eventlog.Log {
	g.t.Helper()
	nc, _ := g.plain("", name)
	log, err := eventlog.Open(nc, eventlog.Config{API: api}, zerolog.Nop(), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(log.Close)
	return log
}

func saying(text string) events.CreateItem {
	return events.CreateItem{Item: events.NewItem{
		Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"` + text + `"}]`),
	}}
}

// An application with the permissions of its tenant can use everything of the client.
func TestAccess_Application(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	app := g.client("acme", "app")
	line, err := app.Timeline(ctx, client.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	made, err := app.Send(ctx, "", events.CreateThread{Key: "support/1", Title: "an order"})
	if err != nil {
		t.Fatal(err)
	}
	item, err := app.Send(ctx, made.ThreadID, saying("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.Submit(ctx, "item.create", client.Request{ThreadID: made.ThreadID, Data: saying("later")}); err != nil {
		t.Fatal(err)
	}
	now, err := app.UpToDate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Read(ctx, now, events.GetThread{ThreadID: "key:support/1"}); err != nil || got.ID != made.ThreadID {
		t.Fatalf("%+v, %v", got, err)
	}
	see := func(line *client.Timeline, version int64) {
		t.Helper()
		for {
			e, err := line.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if e.ThreadID == made.ThreadID && e.Version >= version {
				return
			}
		}
	}
	see(line, 5)
	// From the start again, which only the log has.
	history, err := app.Timeline(ctx, client.SubscribeOptions{Thread: made.ThreadID, History: true})
	if err != nil {
		t.Fatal(err)
	}
	defer history.Close()
	see(history, 5)
	// A durable consumer.
	consuming, stop := context.WithCancel(ctx)
	defer stop()
	var seen []string
	err = app.Consume(consuming, "mailer", client.Filter{Types: []string{"item.*"}}, func(_ context.Context, e client.Event) error {
		if seen = append(seen, string(e.Type)); len(seen) == 2 {
			stop()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || len(seen) != 2 {
		t.Errorf("consumed %v: %v", seen, err)
	}
	// Chunks: some stored before, and live ones.
	execution, err := app.Send(ctx, made.ThreadID, events.CreateExecution{TriggerItemID: item.Result.ItemID})
	if err != nil {
		t.Fatal(err)
	}
	w, err := chunks.NewWriter(g.log("root", ""), chunks.Run{
		Tenant: "acme", Thread: made.ThreadID, Execution: execution.Result.ExecutionID, Token: 1, Version: 6,
	})
	if err != nil {
		t.Fatal(err)
	}
	say := func(kind, data string) {
		t.Helper()
		if err := w.Emit(ctx, "", kind, events.JSON(data)); err != nil {
			t.Fatal(err)
		}
	}
	say(events.ChunkTextDelta, `{"id":"t","delta":"a"}`)
	for stored := 0; stored == 0; {
		list, err := client.Read(ctx, app, events.ListChunks{ThreadID: made.ThreadID, ExecutionID: execution.Result.ExecutionID})
		if err != nil {
			t.Fatal(err)
		}
		stored = len(list.Chunks)
	}
	var kinds []string
	for chunk, err := range app.Chunks(ctx, made.ThreadID, execution.Result.ExecutionID) {
		if err != nil {
			t.Fatal(err)
		}
		if kinds = append(kinds, string(chunk.Type)); len(kinds) == 1 {
			say(events.ChunkTextDelta, `{"id":"t","delta":"b"}`)
			if err := w.Finish(ctx, events.Finish{Reason: "stop"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if strings.Join(kinds, " ") != "text-delta text-delta finish" {
		t.Errorf("chunks %v", kinds)
	}
}

// Each role can do its own work, and is refused immediately what it may not.
func TestAccess_RolesOfTenant(t *testing.T) {
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	ctx := t.Context()
	pub, sub := g.client("acme", "pub"), g.client("acme", "sub")
	line, err := sub.Timeline(ctx, client.SubscribeOptions{From: client.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	made, err := pub.Send(ctx, "", events.CreateThread{Title: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := line.Next(ctx); err != nil || e.ThreadID != made.ThreadID {
		t.Fatalf("%+v, %v", e, err)
	}
	if got, err := client.Read(ctx, sub.WithMinSeq(made.Seq), events.GetThread{ThreadID: made.ThreadID}); err != nil || got.Title != "x" {
		t.Errorf("%+v, %v", got, err)
	}
	began := time.Now()
	forbidden := &events.Error{Code: events.Forbidden}
	if _, err := sub.Send(ctx, made.ThreadID, saying("no")); !errors.Is(err, forbidden) {
		t.Errorf("a subscriber gave a command: %v", err)
	}
	if _, err := sub.Submit(ctx, "item.create", client.Request{ThreadID: made.ThreadID, Data: saying("no")}); !errors.Is(err, forbidden) {
		t.Errorf("a subscriber submitted a command: %v", err)
	}
	if _, err := pub.Timeline(ctx, client.SubscribeOptions{}); !errors.Is(err, forbidden) {
		t.Errorf("a publisher listens to the timeline: %v", err)
	}
	told := 0
	for _, err := range pub.Chunks(ctx, made.ThreadID, "exe_1") {
		if told++; !errors.Is(err, forbidden) {
			t.Errorf("a publisher reads chunks: %v", err)
		}
	}
	if told != 1 {
		t.Errorf("a publisher that reads chunks is told %d times that it may not", told)
	}
	if d := time.Since(began); d > 30*time.Second {
		t.Errorf("it took %v to be told", d)
	}
}

// The subject names the tenant. Anything of another tenant in a body is not found, and
// a body cannot name a tenant at all (EK-180, EK-181).
func TestTenantSubjectAndBodyAgree(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	ctx := t.Context()
	acme, globex := g.client("acme", "app"), g.client("globex", "app")
	made, err := globex.Send(ctx, "", events.CreateThread{Key: "secret", Title: "of globex"})
	if err != nil {
		t.Fatal(err)
	}
	item, err := globex.Send(ctx, made.ThreadID, saying("secret"))
	if err != nil {
		t.Fatal(err)
	}
	notFound := &events.Error{Code: events.NotFound}
	for _, ref := range []string{made.ThreadID, "key:secret"} {
		if _, err := acme.Send(ctx, ref, saying("intruder")); !errors.Is(err, notFound) {
			t.Errorf("a command on %s of another tenant: %v", ref, err)
		}
		if _, err := client.Read(ctx, acme, events.GetThread{ThreadID: ref}); !errors.Is(err, notFound) {
			t.Errorf("a query of %s of another tenant: %v", ref, err)
		}
	}
	if _, err := client.Read(ctx, acme.WithMinSeq(item.Seq), events.GetItem{ItemID: item.Result.ItemID}); !errors.Is(err, notFound) {
		t.Errorf("another tenant's item: %v", err)
	}
	if _, err := client.Read(ctx, acme, events.ListEvents{ThreadID: made.ThreadID}); !errors.Is(err, notFound) {
		t.Errorf("another tenant's events: %v", err)
	}
	if list, err := client.Read(ctx, acme, events.ListHistory{}); err != nil || len(list.Entries) != 0 {
		t.Errorf("the log shows another tenant's: %+v, %v", list, err)
	}
	if list, err := client.Read(ctx, acme, events.ListHistory{ThreadID: made.ThreadID}); err != nil || len(list.Entries) != 0 {
		t.Errorf("the log shows another tenant's thread: %+v, %v", list, err)
	}
	if list, err := client.Read(ctx, acme, events.ListChunks{ThreadID: made.ThreadID, ExecutionID: "exe_1"}); err != nil || len(list.Chunks) != 0 {
		t.Errorf("another tenant's chunks: %+v, %v", list, err)
	}
	// An id that another tenant uses is free here, and is another thread.
	if own, err := acme.Send(ctx, "", events.CreateThread{Title: "of acme"}, client.ThreadID(made.ThreadID)); err != nil || own.Version != 2 {
		t.Errorf("%+v, %v", own, err)
	}
	if got, err := client.Read(ctx, globex.WithMinSeq(item.Seq), events.GetThread{ThreadID: made.ThreadID}); err != nil || got.Title != "of globex" || got.Version != 4 {
		t.Errorf("globex's thread has changed: %+v, %v", got, err)
	}
	// The body has no field for a tenant.
	nc, _ := g.plain("acme", "app")
	for _, body := range []string{
		`{"tenant":"globex","data":{}}`, `{"data":{"tenant":"globex"}}`, `{"threadId":"globex.` + made.ThreadID + `","data":{}}`,
		`{"threadId":"../globex/` + made.ThreadID + `","data":{}}`,
	} {
		m, err := nc.Request("skein.cmd.acme.thread.update", []byte(body), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if e := events.DecodeError(m.Data); e == nil || e.Code != events.InvalidRequest {
			t.Errorf("%s: %s", body, m.Data)
		}
	}
	// A token of another tenant's consumer, and of no consumer at all.
	if _, err := globex.Query(ctx, "consumer.create", events.CreateConsumer{Name: "c"}); err != nil {
		t.Fatal(err)
	}
	raw, err := globex.Query(ctx, "consumer.next", events.NextOfConsumer{Name: "c"})
	var d events.Delivery
	if err != nil || json.Unmarshal(raw, &d) != nil || d.Token == "" {
		t.Fatalf("%s, %v", raw, err)
	}
	if _, err := acme.Query(ctx, "consumer.next", events.NextOfConsumer{Name: "c"}); !errors.Is(err, notFound) {
		t.Errorf("another tenant's consumer: %v", err)
	}
	for _, token := range []string{d.Token, "skein.log.globex.T-1", "$JS.ACK.SKEIN_TIMELINE.acme=c", "$JS.ACK.SKEIN_TIMELINE.acme=c.1.1.1.1.>", "$JS.API.STREAM.DELETE.SKEIN_LOG"} {
		_, err := acme.Query(ctx, "consumer.settle", events.SettleConsumer{Name: "c", Token: token, As: events.SettledDone})
		if !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
			t.Errorf("the token %s: %v", token, err)
		}
	}
}

// A worker receives requests and answers, with many messages to one; it cannot send to
// others.
func TestAccess_Worker(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	worker, refused := g.plain("", "shouter")
	skein, _ := g.plain("", "root")
	if _, err := worker.QueueSubscribe("skein.reactor.shout", "skein", func(m *nats.Msg) {
		for _, part := range []string{"one", "two", "three"} {
			_ = m.Respond([]byte(part))
		}
	}); err != nil {
		t.Fatal(err)
	}
	cancelled, err := worker.SubscribeSync("skein.cancel.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Flush(); err != nil {
		t.Fatal(err)
	}
	inbox := skein.NewInbox()
	answers, err := skein.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := skein.PublishRequest("skein.reactor.shout", inbox, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "two", "three"} {
		if m, err := answers.NextMsg(time.Minute); err != nil || string(m.Data) != want {
			t.Fatalf("%v, %v", m, err)
		}
	}
	if err := skein.Publish("skein.cancel.call1", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := cancelled.NextMsg(time.Minute); err != nil {
		t.Error(err)
	}
	if _, err := skein.Request("skein.tool.add", nil, time.Minute); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("no process serves the tool: %v", err)
	}
	if err := worker.Publish(inbox, []byte("forged")); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, refused, inbox)
}

// An auditor checks everything, and cannot change it.
func TestAccess_Auditor(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	var last uint64
	for _, tenant := range []string{"acme", "globex"} {
		c := g.client(tenant, "app")
		made, err := c.Send(t.Context(), "", events.CreateThread{Title: "x"})
		if err != nil {
			t.Fatal(err)
		}
		item, err := c.Send(t.Context(), made.ThreadID, saying("hello"))
		if err != nil {
			t.Fatal(err)
		}
		g.settle(c, item.Seq)
		last = uint64(item.Seq)
	}
	validator, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := audit.Verify(t.Context(), g.log("eye", access.AuditAPI), validator, audit.Options{
		Finding: func(f audit.Finding) { t.Error(f) },
	})
	if err != nil || sum.Threads != 2 || sum.LastSeq != last || sum.Documents == 0 || sum.Timeline == 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}
