package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// A name that no command and no query can have is refused before anything is sent: on a server
// that nobody serves, a request would be repeated for as long as the client may.
func TestNames_ImpossibleOnesAreRefused(t *testing.T) {
	nc := natstest.Dial(t, natstest.Start(t).URL())
	c, err := client.New(nc, client.Options{Tenant: "acme", Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	sent := nc.Stats().OutMsgs
	for _, name := range []string{
		"", ".", "thread", "thread.", ".get", "thread.get.now", "thread create", "thread.cre ate", "thread.*", "*.get", ">", "thread.>",
		"thread.get\r\n", "thread.get ", "thread.gét", "thread..get", strings.Repeat("x", 65) + ".get",
	} {
		_, do := c.Do(t.Context(), name, client.Request{})
		_, submit := c.Submit(t.Context(), name, client.Request{})
		_, query := c.Query(t.Context(), name, nil)
		for what, err := range map[string]error{"done": do, "submitted": submit, "asked": query} {
			if e := events.AsError(err); err == nil || e.Code != events.InvalidRequest || !strings.Contains(e.Message, "noun.verb") {
				t.Errorf("%q was %s: %v", name, what, err)
			}
		}
	}
	if now := nc.Stats().OutMsgs; now != sent {
		t.Errorf("%d messages were sent", now-sent)
	}
}

// The name of every command and query is one that the client sends.
func TestNames_OfTheCatalog(t *testing.T) {
	c := connect(t, start(t))
	for _, row := range events.Commands() {
		if _, err := c.Do(t.Context(), row.Name, client.Request{Data: map[string]any{"none": 1}}); err == nil || strings.Contains(err.Error(), "noun.verb") {
			t.Errorf("%s: %v", row.Name, err)
		}
	}
	for _, row := range events.Queries() {
		if _, err := c.Query(t.Context(), row.Name, map[string]any{"none": 1}); err == nil || strings.Contains(err.Error(), "noun.verb") {
			t.Errorf("%s: %v", row.Name, err)
		}
	}
	if _, err := c.Do(t.Context(), "thread.later", client.Request{}); events.AsError(err).Code != events.NotFound {
		t.Errorf("a command of a newer version: %v", err)
	}
}

func TestNew_NoConnection(t *testing.T) {
	c, err := client.New(nil, client.Options{Tenant: "acme"})
	if e := events.AsError(err); c != nil || err == nil || e.Code != events.InvalidRequest || !strings.Contains(e.Message, "nats.Connect") {
		t.Errorf("%v, %v", c, err)
	}
}
