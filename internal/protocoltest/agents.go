package protocoltest

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// agents is the agents' protocol for NATS. It has no way to cancel.
func agents() Protocol {
	reply := func(s *Stream, text string) Request {
		return Request{do: func(t testing.TB, server Server) *Stream {
			t.Helper()
			if err := server.NATS.Publish(idOf(s.String(), `"reply_subject":"([^"]+)"`), []byte(text)); err != nil {
				t.Fatal(err)
			}
			return done(t)
		}}
	}
	return Protocol{
		Name: "Agents on NATS", Follows: true,
		Begin: func(id, agent, text string) Request {
			return Request{do: func(t testing.TB, server Server) *Stream {
				t.Helper()
				s := prompt(t, server.NATS, "agents.prompt."+agent+".acme."+id, text)
				s.thread = "key:agents:" + id
				return s
			}}
		},
		Cancel: func(id, agent string, s *Stream) Request { return cancel("agents:"+id, agent, s) },
		Grant:  func(_, _ string, s *Stream) Request { return reply(s, "yes") },
		Answer: func(_, _, text string, s *Stream) Request { return reply(s, text) },
		Text: deltas(func(m fields) string {
			if m.text("type") != "response" {
				return ""
			}
			return m.text("data")
		}),
		Completed: "ended", Cancelled: "cancelled", Waits: `"type":"query"`,
	}
}

// done is the answer of what has none.
func done(t testing.TB) *Stream {
	return &Stream{t: t, Status: 200, read: func() (Frame, bool) { return Frame{}, false }, cut: func() {}}
}

// patience is how long a message is waited for.
const patience = 5 * time.Minute

// prompt publishes a prompt, whose replies the stream has. It ends with an empty message, which is a
// frame of its own unless an error came before it.
func prompt(t testing.TB, nc *nats.Conn, subject, text string) *Stream {
	t.Helper()
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	s := done(t)
	s.cut = func() { _ = sub.Unsubscribe() }
	t.Cleanup(s.cut)
	if err := nc.PublishRequest(subject, inbox, []byte(text)); err != nil {
		t.Fatal(err)
	}
	failed, ended := false, false
	s.read = func() (Frame, bool) {
		if ended {
			return Frame{}, false
		}
		m, err := sub.NextMsg(patience)
		code := ""
		if err == nil {
			code = m.Header.Get("Nats-Service-Error-Code")
		}
		switch {
		case err != nil:
			t.Fatalf("%s: %v", subject, err)
			return Frame{}, false
		case code != "":
			failed = true
			return Frame{Data: strings.Join([]string{"error", code, m.Header.Get("Nats-Service-Error")}, " ")}, true
		case len(m.Data) > 0:
			return Frame{Data: string(m.Data)}, true
		}
		ended = true
		if failed {
			return Frame{}, false
		}
		return Frame{Data: "ended"}, false
	}
	return s
}
