package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// Besides commands and queries, a tenant's other operations work across accounts, and
// stay within the tenant: live events, submitted commands, and effects that a worker's
// process runs.
func TestAccess_OtherThanCommands(t *testing.T) {
	t.Parallel()
	users := append(everybody(), access.User{Name: "mailer", Roles: []access.Role{access.Worker}, Effects: []string{"mail"}})
	g := startGuarded(t, access.InitOptions{}, users...)
	ctx := t.Context()
	app, other := g.client("acme", "app"), g.client("globex", "app")
	made, err := app.Send(ctx, "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := other.Send(ctx, "", events.CreateThread{}, client.ThreadID(made.ThreadID)) // with the same id
	if err != nil {
		t.Fatal(err)
	}

	// Live events.
	live, err := app.LiveEvents(ctx, made.ThreadID)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	for _, e := range []struct {
		by *client.Client
		is string
	}{{other, "of another tenant"}, {app, "ours"}} {
		st, err := e.by.WithMinSeq(own.Seq).Thread(ctx, own.ThreadID)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Emit(ctx, "said", e.is); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := live.Next(ctx); err != nil || string(e.Data) != `"ours"` {
		t.Errorf("%+v, %v", e, err)
	}

	// A submitted command.
	line, err := app.Timeline(ctx, client.SubscribeOptions{Thread: made.ThreadID})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	if _, err := g.client("acme", "pub").Submit(ctx, "item.create", client.Request{ThreadID: made.ThreadID, Data: saying("later")}); err != nil {
		t.Fatal(err)
	}
	until := func(kind events.Type) {
		t.Helper()
		for {
			if e, err := line.Next(ctx); err != nil {
				t.Fatal(err)
			} else if e.Type == kind {
				return
			}
		}
	}
	until(events.ItemCreatedType)

	// An effect, in a process that has only the worker's permissions.
	nc, _ := g.plain("", "mailer")
	ran := make(chan *runtime.EffectInput, 1)
	service, err := remote.ServeEffect(nc, events.DefaultNames(), "mail", runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		ran <- in
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = service.Close(context.Background()) }()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	scheduled, err := app.Send(ctx, made.ThreadID, events.ScheduleEffect{Name: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case in := <-ran:
		if in.EffectID != scheduled.Result.EffectID || in.Tenant != "acme" || in.ThreadID != made.ThreadID {
			t.Errorf("it received %+v", in)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the effect was not run")
	}
	until(events.EffectCompletedType)
}
