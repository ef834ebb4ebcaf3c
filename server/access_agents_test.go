package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/runtime"
)

// A tenant's users find the tenant's agents where every client looks, ask them and answer their
// questions. Nobody reaches another tenant's, and a subscriber asks nobody.
func TestAccess_AgentsProtocol(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	err := g.server.Registry().AddReactor("asks", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		if in.Iteration == 0 {
			r := runtime.Answer("let me ask")
			r.ToolCalls = []runtime.ToolCall{{CallID: in.ExecutionID, Name: "how_much", Arguments: events.JSON(`{"question":"How much?"}`)}}
			return r, nil
		}
		told := ""
		for i := range in.Items {
			told += string(in.Items[i].Content)
		}
		if !strings.Contains(told, `"output":"7"`) {
			return nil, errors.New("it was not told the answer, but " + told)
		}
		return runtime.Answer("it is 7"), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"acme", "globex"} {
		c := g.client(tenant, "app")
		_, err := c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
			{Kind: events.ToolKind, Definition: events.JSON(`{"name":"how_much","description":"Asks.","type":"person"}`)},
			{Kind: events.AgentKind, Definition: events.JSON(`{"name":"triage","type":"ai_human","reactor":"asks","tools":["how_much"]}`)},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	app, refused := g.plain("acme", "app")
	open := func(nc *nats.Conn, user, subject, body string) chan *nats.Msg {
		t.Helper()
		inbox := access.InboxOf(user) + "." + nats.NewInbox()[7:]
		messages := make(chan *nats.Msg, 64)
		sub, err := nc.ChanSubscribe(inbox, messages)
		if err == nil {
			err = nc.PublishRequest(subject, inbox, []byte(body))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sub.Unsubscribe() })
		return messages
	}
	natstest.Eventually(t, "one agent is found", func() bool {
		found := open(app, "app", "$SRV.INFO.agents", "")
		n := 0
		for {
			select {
			case m := <-found:
				var i micro.Info
				if err := json.Unmarshal(m.Data, &i); err == nil && i.Name == "agents" {
					if n++; i.Metadata["owner"] != "acme" {
						t.Errorf("acme finds %+v", i)
					}
				}
				continue
			case <-time.After(500 * time.Millisecond):
			}
			return n == 1
		}
	})
	next := func(messages chan *nats.Msg) string {
		t.Helper()
		for {
			m := natstest.Within(t, "a message", messages)
			if string(m.Data) != `{"type":"status","data":"ack"}` {
				return string(m.Data)
			}
		}
	}
	asked := open(app, "app", "agents.prompt.triage.acme.main", "hello")
	var q struct {
		Data struct {
			Reply string `json:"reply_subject"`
		} `json:"data"`
	}
	for text := next(asked); q.Data.Reply == ""; {
		if text == "" {
			t.Fatal("the stream ended without a query")
		}
		if strings.Contains(text, `"query"`) {
			if err := json.Unmarshal([]byte(text), &q); err != nil {
				t.Fatal(err)
			}
			break
		}
		text = next(asked)
	}
	if err := app.Publish(q.Data.Reply, []byte("7")); err != nil {
		t.Fatal(err)
	}
	said := ""
	for text := next(asked); text != ""; text = next(asked) {
		said += text
	}
	if !strings.Contains(said, "it is 7") {
		t.Errorf("the agent said %s", said)
	}
	sub, denied := g.plain("acme", "sub")
	beats := make(chan *nats.Msg, 64)
	if _, err := sub.ChanSubscribe("agents.hb.*.acme.*", beats); err != nil {
		t.Fatal(err)
	}
	if status := natstest.Within(t, "a status", open(sub, "sub", "agents.status.triage.acme.main", "")); !strings.Contains(string(status.Data), `"owner":"acme"`) {
		t.Errorf("%s", status.Data)
	}
	for _, c := range []struct {
		nc      *nats.Conn
		user    string
		refused <-chan error
		subject string
	}{
		{sub, "sub", denied, "agents.prompt.triage.acme.main"},
		{app, "app", refused, "agents.prompt.triage.globex.main"},
		{app, "app", refused, "agents.status.triage.globex.main"},
		{app, "app", refused, "agents.find.INFO.globex"},
		{app, "app", refused, strings.Replace(q.Data.Reply, ".acme.", ".globex.", 1)},
	} {
		open(c.nc, c.user, c.subject, "hello")
		if err := natstest.Within(t, "a refusal of "+c.subject, c.refused); !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v", c.subject, err)
		}
	}
}
