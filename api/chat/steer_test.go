package chat_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/chat"
	"github.com/skein-threads/skein/events"
)

// seen describes the items that a reactor is shown: texts, and calls with their results.
func seen(items []events.Item) string {
	var out []string
	for _, i := range items {
		var parts []struct {
			Type, Text, ToolCallID string
			Output                 events.JSON
		}
		_ = json.Unmarshal(i.Content, &parts, json.MatchCaseInsensitiveNames(true))
		for _, p := range parts {
			switch {
			case strings.HasPrefix(p.Type, "tool-"):
				out = append(out, p.ToolCallID+"="+string(p.Output))
			default:
				out = append(out, p.Text)
			}
		}
	}
	return strings.Join(out, " > ")
}

// page describes the messages of a chat: who wrote them, their texts, and the states of their
// calls.
func page(list []chat.Message) string {
	var out []string
	for _, m := range list {
		said := m.Role + ":"
		for _, p := range m.Parts {
			switch {
			case p.Type == "text":
				said += " " + *p.Text
			case p.ToolCallID != "":
				said += " " + p.ToolCallID + "(" + p.State + ")"
			}
		}
		out = append(out, said)
	}
	return strings.Join(out, " | ")
}

// A message that comes during a run stands after what came before it and before what follows: in
// what the model is shown at every later step and turn, on the page, and in what is streamed. It
// may come while a tool works or while the first answer is being written, as a message of the page,
// as one of another program that steers, or as one that only joins the conversation.
func TestChat_MessageDuringARun(t *testing.T) {
	send := map[string]func(w *world) *reader{
		"sent by the page": func(w *world) *reader {
			return w.post(strings.Replace(submit("c1", text("u2", "B")), `"assistant"`, `"steered"`, 1))
		},
		"steering": func(w *world) *reader {
			to := "B"
			_, err := w.client.Send(w.Context(), "key:c1", events.ReactThread{Text: &to, AgentID: "steered", Policy: events.Steer})
			w.server.Must(err)
			return nil
		},
		"added": func(w *world) *reader {
			item := events.UserText("B")
			_, err := w.client.Send(w.Context(), "key:c1", events.CreateItem{Item: item})
			w.server.Must(err)
			return nil
		},
	}
	for name, send := range send {
		for _, during := range []string{"a call", "the first answer"} {
			t.Run(name+" during "+during, func(t *testing.T) {
				var mu sync.Mutex
				var inputs []string
				working, release := make(chan struct{}), make(chan struct{})
				wait := func(ctx context.Context) {
					select {
					case working <- struct{}{}:
						<-release
					case <-ctx.Done():
					}
				}
				w := newWorld(t, func(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
					mu.Lock()
					inputs = append(inputs, seen(in.Items))
					mu.Unlock()
					if in.LastText(events.User) == "C" || in.Iteration == 2 {
						return skein.Answer("end"), nil
					}
					if during == "the first answer" && in.Iteration == 0 {
						wait(ctx)
					}
					id := []string{"c1", "c2"}[in.Iteration]
					r := skein.Answer("t" + id)
					r.ToolCalls = []skein.ToolCall{{CallID: id, Name: "work", Arguments: []byte(`{"id":"` + id + `"}`)}}
					return r, nil
				})
				w.server.Must(w.server.Tool(skein.NewTool("work", func(ctx context.Context, in struct {
					ID string `json:"id"`
				}) (int, error) {
					if during == "a call" && in.ID == "c1" {
						wait(ctx)
					}
					return 1, nil
				}, skein.Description("Works."))))
				var apply events.ApplyDefinitions
				for kind, text := range map[events.DefinitionKind]string{
					events.ToolKind:  `{"name":"work","description":"Works.","type":"go"}`,
					events.AgentKind: `{"name":"steered","type":"ai_human","reactor":"assistant","policy":"steer","tools":["work"]}`,
				} {
					apply.Definitions = append(apply.Definitions, events.NewDefinition{Kind: kind, Definition: []byte(text)})
				}
				_, err := w.client.Send(t.Context(), "", apply)
				w.server.Must(err)

				first := w.post(strings.Replace(submit("c1", text("u1", "A")), `"assistant"`, `"steered"`, 1))
				<-working
				second := send(w)
				close(release)
				streamed := []*shown{first.rest()}
				if second != nil {
					streamed = append(streamed, second.rest())
				}
				for status := 0; status != http.StatusNoContent; { // what another program's message steers goes on after the first stream
					var body string
					if status, body = w.do(http.MethodGet, "/chat/c1/stream", ""); status == http.StatusOK && !strings.Contains(body, "[DONE]") {
						t.Fatalf("%d %s", status, body)
					}
				}
				list := w.messages("c1")
				const want = "user: A | assistant: tc1 c1(output-available) | user: B | assistant: tc2 c2(output-available) end"
				if got := page(list); got != want {
					t.Errorf("the page shows %s", got)
				}
				for _, m := range list { // each answer says of which run it is, or goes on with one that does
					var about []string
					for _, p := range m.Parts {
						if strings.HasPrefix(p.Type, "data-") {
							about = append(about, p.Type)
						}
					}
					if m.Role == "assistant" && strings.Join(about, " ") != "data-skein-thread data-skein-execution" {
						t.Errorf("message %s is listed with the data %q", m.ID, about)
					}
				}
				for i, m := range streamed {
					switch stored := list[2*i+1]; {
					case name == "added": // the stream of the run is one message
					case m.id != stored.ID || strings.Count(m.String(), "tool-") != 1 || m.end != "stop":
						t.Errorf("message %s is streamed as %s: %s, %s", stored.ID, m.id, m, m.end)
					}
				}
				fork, err := w.client.Send(t.Context(), "key:c1", events.ForkThread{ItemID: list[3].ID})
				w.server.Must(err)
				if got := page(w.messages(fork.Result.ChildID)); got != want {
					t.Errorf("a fork shows %s", got)
				}
				w.post(strings.Replace(submit("c1", text("u3", "C")), `"assistant"`, `"steered"`, 1)).rest()
				mu.Lock()
				defer mu.Unlock()
				if got := strings.Join(inputs, "\n"); got != "A\nA > tc1 > c1=1 > B\nA > tc1 > c1=1 > B > tc2 > c2=1\nA > tc1 > c1=1 > B > tc2 > c2=1 > end > C" {
					t.Errorf("the model was shown\n%s", got)
				}
			})
		}
	}
}
