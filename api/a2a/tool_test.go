package a2a_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/agents"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/threads"
)

// elsewhere returns a tool that is the agent at an address, with a token.
func elsewhere(address, token string) runtime.Tool {
	client := remote.NewClient(http.DefaultTransport.(*http.Transport).Clone())
	return agents.NewA2ATool(agents.A2AOptions{URL: address, Token: token, Reach: func(address string) (remote.Endpoint, error) {
		return remote.Endpoint{URL: address, Unsigned: true, Client: client}, nil
	}}, runtime.ToolSpec{Name: "elsewhere"})
}

// toldOf is what a call of the tool results in.
type toldOf struct {
	Task, State, Text string
	Data              []json.RawMessage
	Files             []object
}

// say calls the tool.
func (w *world) say(t runtime.Tool, thread, message, task string) (toldOf, runtime.ToolResult) {
	w.Helper()
	w.n++
	arguments, err := json.Marshal(map[string]string{"message": message, "task": task})
	w.s.Must(err)
	r, err := t.Call(w.Context(), &runtime.ToolInput{ThreadID: thread, Key: fmt.Sprint("key ", w.n), Arguments: arguments})
	w.s.Must(err)
	var out toldOf
	if r.Status == runtime.Success {
		w.s.Must(json.Unmarshal(r.Result, &out))
	}
	return out, r
}

// older serves what a server does with a card of 0.3 alone.
func (w *world) older() string {
	base, err := url.Parse(w.url)
	w.s.Must(err)
	var address string
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) }, ModifyResponse: func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.URL.Path, ".json") {
			return nil
		}
		var card object
		if err := json.NewDecoder(r.Body).Decode(&card); err != nil {
			return err
		}
		delete(card, "supportedInterfaces")
		card["url"], card["preferredTransport"] = address+"/a2a/triage", "JSONRPC"
		raw, err := json.Marshal(card)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(raw))), int64(len(raw))
		r.Header.Set("Content-Length", fmt.Sprint(len(raw)))
		return err
	}}
	s := httptest.NewServer(proxy)
	w.Cleanup(s.Close)
	address = s.URL
	return address
}

// A tool asks an agent elsewhere, over both versions: it has the answer, continues the context, answers
// a question of the task, and has failures as results.
func TestTool_AsksAnAgent(t *testing.T) {
	w := start(t)
	for name, address := range map[string]string{"1.0": w.url + "/a2a/triage", "0.3": w.older() + "/a2a/triage"} {
		t.Run(name, func(t *testing.T) {
			tool, thread := elsewhere(address, ""), threads.NewID()
			first, _ := w.say(tool, thread, "hello", "")
			if first.State != "completed" || first.Text != "answer to hello" || first.Task == "" {
				t.Fatalf("%+v", first)
			}
			if second, _ := w.say(tool, thread, "chart", ""); second.State != "completed" || second.Task == first.Task || len(second.Data) != 1 {
				t.Errorf("a second message: %+v", second)
			}
			asks, _ := w.say(tool, thread, "ask", "")
			if asks.State != "input_required" || !strings.Contains(asks.Text, "How much?") {
				t.Fatalf("a question: %+v", asks)
			}
			if then, _ := w.say(tool, thread, "5", asks.Task); then.State != "completed" || then.Task != asks.Task || !strings.Contains(then.Text, "done") {
				t.Errorf("its answer: %+v", then)
			}
			if _, failed := w.say(tool, thread, "fail", ""); failed.Status != runtime.Failure || !strings.Contains(failed.Error, "failed") {
				t.Errorf("a failure: %+v", failed)
			}
			if _, refused := w.say(tool, thread, "again", first.Task); refused.Status != runtime.Failure || !strings.Contains(refused.Error, "refuses") {
				t.Errorf("a message to a task that has ended: %+v", refused)
			}
		})
	}
}

// A call that is no longer wanted cancels the task, and one that is repeated is one task.
func TestTool_CancelAndRepeat(t *testing.T) {
	w := start(t)
	tool, thread := elsewhere(w.url+"/a2a/triage", ""), threads.NewID()
	call := func(ctx context.Context) (runtime.ToolResult, error) {
		return tool.Call(ctx, &runtime.ToolInput{ThreadID: thread, Key: "the key", Arguments: events.JSON(`{"message":"wait"}`)})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended, reason := make(chan error, 1), errors.New("it is not wanted")
	go func() {
		_, err := call(ctx)
		ended <- err
	}()
	<-w.waits
	cancel(reason)
	if err := <-ended; !errors.Is(err, reason) {
		t.Errorf("it ends with %v", err)
	}
	again, err := call(t.Context()) // the same message: the task that was canceled
	if err != nil || again.Status != runtime.Failure || !strings.Contains(again.Error, "canceled") {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	select {
	case <-w.waits:
		t.Error("the repeated call began another task")
	default:
	}
}

// An agent of a definition asks one elsewhere.
func TestTool_OfADefinition(t *testing.T) {
	w := start(t)
	w.s.Must(w.s.Reactor("relay", func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		if in.Iteration > 0 {
			raw, err := json.Marshal(in.Items)
			return skein.Answer(string(raw)), err
		}
		r := skein.Answer("")
		r.ToolCalls = []skein.ToolCall{{CallID: "c1", Name: "triage", Arguments: []byte(`{"message":"hello"}`)}}
		return r, nil
	}))
	_, err := w.c.Apply(t.Context(),
		events.ToolDefinition{Name: "triage", Description: "Triages.", Type: events.A2ATool, Server: &events.ToolServer{URL: w.url + "/a2a/triage"}},
		events.AgentDefinition{Name: "desk", Type: events.AIHuman, Reactor: "relay", Tools: []string{"triage"}})
	w.s.Must(err)
	thread, err := w.c.Send(t.Context(), "", events.CreateThread{AgentID: "desk"})
	w.s.Must(err)
	answer, err := w.c.Ask(t.Context(), thread.ThreadID, "go")
	w.s.Must(err)
	if !strings.Contains(answer.Text, "answer to hello") {
		t.Errorf("%s", answer.Text)
	}
}

// Agents that answer otherwise are told of in a few words, and not with their token.
func TestTool_OddAgents(t *testing.T) {
	const token = "very-secret-token"
	pixel := "iVBORw0KGgo="
	for name, of := range map[string]struct {
		card, answer string // of JSON-RPC
		status       int
		want         string
	}{
		"no card":             {card: "<html>", want: "has no card at"},
		"another transport":   {card: `{"url":"/","preferredTransport":"GRPC"}`, want: "takes no JSON-RPC"},
		"no JSON-RPC":         {answer: `hello`, want: "something else than JSON-RPC"},
		"neither":             {answer: `{"jsonrpc":"2.0","id":1,"result":{}}`, want: "neither a task nor a message"},
		"a task without id":   {answer: `{"jsonrpc":"2.0","id":1,"result":{"task":{"status":{"state":"TASK_STATE_WORKING"}}}}`, want: "neither a task nor a message"},
		"the token repeated":  {answer: `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"bad ` + token + `"}}`, want: "bad ***"},
		"refused with status": {answer: `{"error":"no ` + token + `"}`, status: 401, want: "status 401: no ***"},
		"a redirect":          {answer: ``, status: 302, want: "redirects"},
		"rejected":            {answer: `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"1","status":{"state":"TASK_STATE_REJECTED","message":{"parts":[{"text":"no"}]}}}}}`, want: "rejected: no"},
		"a message":           {answer: `{"jsonrpc":"2.0","id":1,"result":{"message":{"parts":[{"text":"hi"}]}}}`, want: `{"text":"hi"}`},
		"an image": {answer: `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"parts":[{"text":"see"},{"raw":"` + pixel + `","mediaType":"image/png"}]}]}}}`,
			want: `"image_url":"data:image/png;base64,` + pixel},
	} {
		t.Run(name, func(t *testing.T) {
			var address string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+token {
					t.Errorf("the header Authorization is %q", r.Header.Get("Authorization"))
				}
				if r.Method == http.MethodGet {
					if of.card == "" {
						of.card = `{"supportedInterfaces":[{"url":"` + address + `/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`
					}
					_, _ = io.WriteString(w, of.card)
					return
				}
				if of.status != 0 {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(of.status)
				}
				_, _ = io.WriteString(w, of.answer)
			}))
			defer s.Close()
			address = s.URL
			r, err := elsewhere(s.URL, token).Call(t.Context(), &runtime.ToolInput{ThreadID: "T-1", Key: "k", Arguments: events.JSON(`{"message":"hello"}`)})
			said := fmt.Sprint(string(r.Result), r.Error, err)
			if !strings.Contains(said, of.want) || strings.Contains(said, token) {
				t.Errorf("%s; want %q", said, of.want)
			}
		})
	}
}
