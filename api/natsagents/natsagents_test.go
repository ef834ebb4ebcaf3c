package natsagents_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/natsagents"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// found returns the agents that a client finds: their infos, by OWNER/AGENT. It asks until that many
// have answered one request.
func (w *world) found(subject string, n int) map[string]micro.Info {
	w.Helper()
	list := map[string]micro.Info{}
	natstest.Eventually(w, fmt.Sprintf("%d agents", n), func() bool {
		clear(list)
		inbox := w.nc.NewRespInbox()
		sub, err := w.nc.SubscribeSync(inbox)
		w.s.Must(err)
		defer func() { _ = sub.Unsubscribe() }()
		w.s.Must(w.nc.PublishRequest(subject, inbox, nil))
		for answers := 0; ; answers++ { // one of each agent
			m, err := sub.NextMsg(200 * time.Millisecond)
			if err != nil {
				return len(list) == n && answers == n
			}
			var i micro.Info
			if json.Unmarshal(m.Data, &i) == nil && i.Name == "agents" {
				list[i.Metadata["owner"]+"/"+i.Metadata["agent"]] = i
			}
		}
	})
	return list
}

// Any client finds the agents of all tenants, as long as they are defined, and their heartbeats.
func TestAgents_Discovery(t *testing.T) {
	w := start(t)
	i := w.found("$SRV.INFO.agents", 1)["acme/triage"]
	if i.Type != micro.InfoResponseType || i.Description != "Answers." || i.Metadata["protocol_version"] != "0.3" || i.Metadata["session"] != "main" || i.ID == "" {
		t.Errorf("%+v", i)
	}
	prompt := slices.IndexFunc(i.Endpoints, func(e micro.EndpointInfo) bool { return e.Name == "prompt" })
	status := slices.IndexFunc(i.Endpoints, func(e micro.EndpointInfo) bool { return e.Name == "status" })
	if prompt < 0 || status < 0 {
		t.Fatalf("endpoints %+v", i.Endpoints)
	}
	if e := i.Endpoints[prompt]; e.Subject != "agents.prompt.triage.acme.main" || e.QueueGroup != "agents" || e.Metadata["max_payload"] != "4MB" || e.Metadata["attachments_ok"] != "true" {
		t.Errorf("%+v", e)
	}
	if e := i.Endpoints[status]; e.Subject != "agents.status.triage.acme.main" || e.QueueGroup != "agents" {
		t.Errorf("%+v", e)
	}
	var beat map[string]any
	m, err := w.nc.Request("agents.status.triage.acme.main", nil, time.Minute)
	w.s.Must(err)
	if err := json.Unmarshal(m.Data, &beat); err != nil || beat["agent"] != "triage" || beat["owner"] != "acme" || beat["session"] != "main" || beat["instance_id"] != i.ID || beat["interval_s"] != 20.0 {
		t.Errorf("%s: %v", m.Data, err)
	}
	if ping := w.found("$SRV.PING.agents."+i.ID, 1); ping["acme/triage"].ID != i.ID {
		t.Errorf("%+v", ping)
	}
	w.found("$SRV.STATS.agents", 1)

	w.define("other", events.AgentKind, `{"name":"triage","type":"ai_human","reactor":"test"}`)
	w.define("acme", events.AgentKind, `{"name":"second","type":"ai_human","reactor":"test"}`)
	list := w.found("$SRV.INFO.agents", 3)
	if list["other/triage"].ID == list["acme/triage"].ID || list["acme/second"].Name == "" {
		t.Errorf("%v", list)
	}
	if own := w.found("agents.find.INFO.other", 1); own["other/triage"].Name == "" {
		t.Errorf("%v", own)
	}
	_, err = w.c.Send(t.Context(), "", events.ApplyDefinitions{Remove: []events.DefinitionRef{{Kind: events.AgentKind, Name: "second"}}})
	w.s.Must(err)
	w.found("$SRV.INFO.agents", 2)
}

// Each process publishes the heartbeats of its agents, and keeps a stream without news alive.
func TestAgents_HeartbeatsAndAcks(t *testing.T) {
	w := start(t)
	beats := make(chan *nats.Msg, 64)
	_, err := w.nc.ChanSubscribe("agents.hb.*.*.*", beats)
	w.s.Must(err)
	w.s.Must(w.nc.Flush())
	s, err := natsagents.Serve(natsagents.Options{
		Conn: natstest.Dial(t, w.s.Addresses().NATS), Interval: 20 * time.Millisecond,
		Client: func(tenant string) (*client.Client, error) { return w.s.Client(tenant), nil },
		Agents: func(context.Context) ([]natsagents.Agent, error) {
			return []natsagents.Agent{{Tenant: "acme", Name: "triage"}}, nil
		},
	})
	w.s.Must(err)
	t.Cleanup(func() { w.s.Must(s.Stop(context.Background())) })
	for range 3 {
		if m := natstest.Within(t, "a heartbeat", beats); m.Subject != "agents.hb.triage.acme.main" || !strings.Contains(string(m.Data), `"interval_s"`) {
			t.Errorf("%s %s", m.Subject, m.Data)
		}
	}
	// Either process answers: ask until the one with short intervals does.
	natstest.Eventually(t, "acks while a run is silent", func() bool {
		a := w.ask("agents.prompt.triage.acme.silent", "wait")
		acks := 0
		late := time.After(2 * time.Second)
		for acks < 3 {
			select {
			case m := <-a.messages:
				if string(m.Data) == `{"type":"status","data":"ack"}` {
					acks++
				}
				continue
			case <-late:
			}
			break
		}
		w.goOn <- struct{}{}
		a.all()
		return acks == 3
	})
}

// A prompt is answered with an ack, the texts and an empty message; its last token names the thread.
func TestAgents_Prompt(t *testing.T) {
	w := start(t)
	w.ask("agents.prompt.triage.acme.main", "hello").is(`status "ack"`, `response "answer to hello"`)
	w.ask("agents.prompt.triage.acme.order-7", `{"prompt": "more"}`).is(`status "ack"`, `response "answer to more"`)
	w.ask("agents.prompt.triage.acme.order-7", "again").is(`status "ack"`, `response "answer to again"`)
	for key, messages := range map[string]int64{"agents:main": 2, "agents:order-7": 4} {
		end, err := w.c.HistoryEnd(t.Context())
		w.s.Must(err)
		thread, err := client.Read(t.Context(), w.c, events.GetThread{ThreadID: "key:" + key, Fresh: events.Fresh{MinSeq: &end}})
		w.s.Must(err)
		if thread.Items != messages || thread.AgentID != "triage" {
			t.Errorf("%s has %d messages of %s", key, thread.Items, thread.AgentID)
		}
	}
	large := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n" + strings.Repeat("x", 600<<10)))
	small := base64.StdEncoding.EncodeToString([]byte("%PDF-1.4"))
	w.ask("agents.prompt.triage.acme.files", `{"prompt":"look","attachments":[{"filename":"a.png","content":"`+large+`"},{"filename":"b.pdf","content":"`+small+`"}]}`).
		is(`status "ack"`, `response "answer to look"`)
	w.mu.Lock()
	items := w.seen[len(w.seen)-1].Items
	w.mu.Unlock()
	shown := ""
	for _, i := range items {
		shown += string(i.Content)
	}
	for _, part := range []string{`"image_url":"skein:/attachments/`, "data:application/pdf;base64," + small, `"b.pdf"`} {
		if !strings.Contains(shown, part) {
			t.Errorf("the model was not shown %.60s", part)
		}
	}
}

// An approval and a question are queries. A reply that decides nothing is asked for again.
func TestAgents_Query(t *testing.T) {
	w := start(t)
	reply := func(q query, text string) {
		t.Helper()
		w.s.Must(w.nc.Publish(q.Reply, []byte(text)))
	}
	for n, c := range []struct {
		prompt, asks string
		replies      []string
		result       string // what the model is told
	}{
		{"refund", `The call of refund {"eur":5} needs an approval. Reply yes or no.`, []string{"yes"}, `"refunded":5`},
		{"refund", "The call of refund", []string{"perhaps", `{"prompt":"No."}`}, "denied"},
		{"refund", "The call of refund", []string{`{"grant":true,"arguments":{"eur":4}}`}, `"refunded":4`},
		{"refund", "The call of refund", []string{`{"deny":true,"reason":"too much"}`}, "too much"},
		{"how_much", "How much?", []string{"a lot", `{"eur":7}`}, `"eur":7`},
	} {
		t.Run(fmt.Sprint(c.prompt, n), func(t *testing.T) {
			s := w.ask(fmt.Sprintf("agents.prompt.triage.acme.s%d", n), c.prompt)
			q := s.query()
			if !strings.HasPrefix(q.Prompt, c.asks) {
				t.Errorf("asked %q", q.Prompt)
			}
			for i, text := range c.replies {
				if i > 0 {
					before := q
					if q = s.query(); q.ID == before.ID || q.Reply == before.Reply || !strings.Contains(q.Prompt, c.asks) {
						t.Errorf("asked again %+v", q)
					}
				}
				reply(q, text)
			}
			s.is(`response "done"`)
			w.mu.Lock()
			defer w.mu.Unlock()
			told := ""
			for _, i := range w.seen[len(w.seen)-1].Items {
				told += string(i.Content)
			}
			if !strings.Contains(told, c.result) {
				t.Errorf("the model was not told %s, but %s", c.result, told)
			}
		})
	}
}

// A program that answers every query with the same text is not asked for ever: the prompt ends with an
// error, and the run waits for somebody else.
func TestAgents_QueryWithoutADecision(t *testing.T) {
	w := start(t)
	for _, c := range []struct{ prompt, reply string }{{"refund", "perhaps"}, {"how_much", "a lot"}} {
		t.Run(c.prompt, func(t *testing.T) {
			subject := "agents.prompt.triage.acme." + c.prompt
			s := w.ask(subject, c.prompt)
			for range 5 {
				w.s.Must(w.nc.Publish(s.query().Reply, []byte(c.reply)))
			}
			if list := s.all(); len(list) != 1 || !strings.HasPrefix(list[0], "error 400 5 replies to the query decided nothing") {
				t.Fatalf("%q", list)
			}
			now, err := w.c.UpToDate(t.Context())
			w.s.Must(err)
			list, err := client.Read(t.Context(), now, events.ListExecutions{ThreadID: "key:agents:" + c.prompt})
			w.s.Must(err)
			if len(list.Executions[0].WaitingApprovals()) != 1 {
				t.Errorf("%+v waits for nothing", list.Executions[0])
			}
		})
	}
}

// A query that is answered elsewhere is over.
func TestAgents_QueryAnsweredElsewhere(t *testing.T) {
	w := start(t)
	s := w.ask("agents.prompt.triage.acme.main", "refund")
	s.query()
	now, err := w.c.UpToDate(t.Context())
	w.s.Must(err)
	list, err := client.Read(t.Context(), now, events.ListExecutions{ThreadID: "key:agents:main"})
	w.s.Must(err)
	_, err = w.c.Send(t.Context(), "key:agents:main", events.ResolveApproval{CallID: list.Executions[0].WaitingApprovals()[0].CallID, Deny: true})
	w.s.Must(err)
	s.is(`response "done"`)
}

// What cannot be answered is an error with a code and a text, and then an empty message.
func TestAgents_Errors(t *testing.T) {
	w := start(t)
	for _, c := range []struct{ name, subject, body, want string }{
		{"empty", "agents.prompt.triage.acme.main", "", "error 400"},
		{"spaces", "agents.prompt.triage.acme.main", " \n", "error 400"},
		{"broken JSON", "agents.prompt.triage.acme.main", `{"prompt":`, "error 400"},
		{"no prompt", "agents.prompt.triage.acme.main", `{"text":"x"}`, "error 400"},
		{"empty prompt", "agents.prompt.triage.acme.main", `{"prompt":""}`, "error 400"},
		{"unsafe name", "agents.prompt.triage.acme.main", `{"prompt":"x","attachments":[{"filename":"../a","content":""}]}`, "error 400"},
		{"no base64", "agents.prompt.triage.acme.main", `{"prompt":"x","attachments":[{"filename":"a","content":"-_"}]}`, "error 400"},
		{"unknown agent", "agents.prompt.nobody.acme.main", "x", "error 404"},
		{"another tenant's agent", "agents.prompt.triage.other.main", "x", "error 404"},
		{"long session", "agents.prompt.triage.acme." + strings.Repeat("x", 250), "x", "error 400 the last token"},
		{"failed run", "agents.prompt.triage.acme.main", "fail", `status "ack"|error 500 the model is gone`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(w.ask(c.subject, c.body).all(), "|")
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("%q", got)
			}
		})
	}
	s := w.ask("agents.status.nobody.acme.main", "")
	if text := s.text(); !strings.HasPrefix(text, "error 404") {
		t.Errorf("%q", text)
	}
}

// Of several processes on one NATS, each announces the agents with ids of its own, and one answers.
func TestAgents_SeveralProcesses(t *testing.T) {
	w := start(t)
	second := skeintest.Start(t, func(o *skein.Options) {
		o.NATS, o.AgentsProtocol = w.s.Addresses().NATS, true
	})
	second.Must(second.Reactor("test", w.react))
	ids := map[string]bool{}
	natstest.Eventually(t, "both processes", func() bool {
		clear(ids)
		inbox := w.nc.NewRespInbox()
		sub, err := w.nc.SubscribeSync(inbox)
		w.s.Must(err)
		defer func() { _ = sub.Unsubscribe() }()
		w.s.Must(w.nc.PublishRequest("$SRV.PING.agents", inbox, nil))
		for {
			m, err := sub.NextMsg(200 * time.Millisecond)
			if err != nil {
				return len(ids) == 2
			}
			var p micro.Ping
			w.s.Must(json.Unmarshal(m.Data, &p))
			ids[p.ID] = true
		}
	})
	for n := range 8 {
		w.ask(fmt.Sprintf("agents.prompt.triage.acme.s%d", n), "hello").is(`status "ack"`, `response "answer to hello"`)
	}
}
