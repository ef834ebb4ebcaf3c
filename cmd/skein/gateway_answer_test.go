package main_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/skein-threads/skein"
)

// begins sends a request whose answer is a stream, and reads it.
func (p *gate) begins(path, body string) *reading {
	p.g.t.Helper()
	r, err := p.open(p.g.t.Context(), "POST", path, body, p.g.key)
	if err != nil || r.StatusCode != http.StatusOK {
		p.g.t.Fatalf("%s: %v, %v", path, r, err)
	}
	p.g.t.Cleanup(func() { _ = r.Body.Close() })
	return &reading{p.g.t, bufio.NewScanner(r.Body)}
}

// A gateway that is killed in the middle of an answer to a client of Open Responses, or of a chat,
// loses nothing: another one sends the rest under the same numbers, or the message from its start
// under the same id.
func TestGateway_AnswersContinueElsewhere(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	words := make(chan string)
	say := func(list ...string) {
		for _, w := range list {
			select {
			case words <- w:
			case <-t.Context().Done():
			}
		}
	}
	g.Must(g.Reactor("teller", skein.ReactorFunc(func(ctx context.Context, _ *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		said := ""
		for word := range words {
			if word == "." {
				break
			}
			said += word
			out.Chunk(skein.Chunk{Type: "text-delta", Data: []byte(fmt.Sprintf(`{"id":"t","delta":%q}`, word))})
		}
		return skein.Answer(said), ctx.Err()
	})))
	second := g.gateway()
	second.want(http.StatusOK, "PUT", "/api/definitions/agent/teller", `{"type":"ai_human","reactor":"teller"}`)
	type event struct {
		Type           string
		SequenceNumber int64 `json:"sequence_number"`
		MessageID      string
		Delta          string
		Response       struct{ ID string }
	}
	// told reads events until the text so far is whole, or the stream ends.
	told := func(r *reading, whole string) (list []event) {
		t.Helper()
		text := ""
		for {
			_, data, more := r.next()
			if !more || data == "[DONE]" {
				return list
			}
			var e event
			decode(t, data, &e)
			list = append(list, e)
			if text += e.Delta; e.Delta != "" && text == whole {
				return list
			}
		}
	}
	text := func(list []event) (all string) {
		for _, e := range list {
			all += e.Delta
		}
		return all
	}
	kill := func(p *gate) {
		g.Must(p.cmd.Process.Signal(syscall.SIGKILL))
		_ = p.cmd.Wait() // it was killed
	}

	first := g.gateway()
	stream := first.begins("/v1/responses", `{"model":"teller","input":"go","stream":true}`)
	go say("once ", "upon ")
	seen := told(stream, "once upon ")
	kill(first)
	id, last := seen[0].Response.ID, seen[len(seen)-1].SequenceNumber
	rest := second.stream(fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", id, last))
	go say("a ", "time", ".")
	seen = append(seen, told(rest, "")...)
	for n, e := range seen {
		if e.SequenceNumber != int64(n) {
			t.Errorf("event %d has the number %d", n, e.SequenceNumber)
		}
	}
	if end := seen[len(seen)-1]; text(seen) != "once upon a time" || end.Type != "response.completed" || end.Response.ID != id {
		t.Errorf("the response is %q, and ends with %+v", text(seen), end)
	}
	if again := told(second.stream("/v1/responses/"+id+"?stream=true"), ""); !slices.Equal(again, seen) {
		t.Errorf("again, the events are %+v, and were %+v", again, seen)
	}

	first = g.gateway()
	stream = first.begins("/chat", `{"id":"c1","agent":"teller","message":{"id":"u1","role":"user","parts":[{"type":"text","text":"go"}]}}`)
	go say("once ", "upon ")
	seen = told(stream, "once upon ")
	kill(first)
	rest = second.stream("/chat/c1/stream")
	go say("a ", "time", ".")
	resumed := told(rest, "")
	if resumed[0].Type != "start" || resumed[0].MessageID == "" || resumed[0].MessageID != seen[0].MessageID || text(resumed) != "once upon a time" {
		t.Errorf("the chat resumes with %+v after %+v, and says %q", resumed[0], seen[0], text(resumed))
	}
	if list := second.want(http.StatusOK, "GET", "/chat/c1", "").text; strings.Count(list, "once upon a time") != 1 {
		t.Errorf("the chat is %s", list)
	}
}
