package examples_test

import (
	"regexp"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// The command of docs/protocols.md is a reactor: on its subject, in its queue group, its body
// is a reaction.
func TestProtocols_ShortestReactor(t *testing.T) {
	command := regexp.MustCompile(`(?m)^nats reply --queue (\S+) skein\.reactor\.(\S+) '(.+)'$`).FindStringSubmatch(read(t, "../docs/protocols.md"))
	if command == nil {
		t.Fatal("docs/protocols.md has no command that answers as a reactor")
	}
	group, name, body := command[1], command[2], command[3]
	if group != events.WorkerQueue {
		t.Errorf("the queue group is %q", group)
	}
	s := natstest.Start(t)
	nc := natstest.Connect(t, s)
	if _, err := nc.QueueSubscribe("skein.reactor."+name, group, func(m *nats.Msg) {
		if err := m.Respond([]byte(body)); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	reactor, err := remote.Reactor(nc, events.DefaultNames(), name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := reactor.React(t.Context(), &runtime.StepInput{ItemID: "itm_2", Items: []events.Item{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var part struct{ Type, Text string }
	if content := got.AssistantEvent.Content; len(content) != 1 || unmarshal(content[0], &part) != nil || part.Type != events.OutputText || part.Text != "HELLO!" {
		t.Errorf("%s", content)
	}
}
