package remote_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

const doubled = `{"kind":"result","status":"success","result":42}`

func TestHTTPTool_SignedCallIsAnswered(t *testing.T) {
	e := far(t, func(w http.ResponseWriter, r *http.Request) {
		body := bodyOf(t, r)
		if !genuine(r, body, "SHOP_2", newSecret) || !genuine(r, body, "SHOP_1", oldSecret) {
			t.Errorf("not signed with both secrets: %v", r.Header)
		}
		if genuine(r, append(body, ' '), "SHOP_2", newSecret) || genuine(r, body, "SHOP_2", oldSecret) {
			t.Error("another body or secret has the same signature")
		}
		if id := r.Header.Get("Webhook-Id"); !strings.HasPrefix(id, "call-") || r.Header.Get("Webhook-Signature") == "" {
			t.Errorf("not signed as Standard Webhooks has it: %v", r.Header)
		}
		r.Header.Set("Skein-Timestamp", "1")
		if genuine(r, body, "SHOP_2", newSecret) {
			t.Error("the time is not signed")
		}
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		p, _ := got["protocol"].(map[string]any)
		if got["tenant"] != "acme" || got["callId"] != "c1" || got["key"] != "k\n\u00fc." || got["attempt"] != 2.0 || p["heartbeatMs"] != 5000.0 || p["deadMs"] != 15000.0 || p["cancel"] != nil || p["maxBytes"] != float64(events.MaxPayload) {
			t.Errorf("%s", body)
		}
		answers(200, "application/json; charset=utf-8", doubled)(w, r)
	})
	in := &runtime.ToolInput{Tenant: "acme", ThreadID: "T-1", CallID: "c1", Name: "double", Key: "k\n\u00fc.", Attempt: 2, Arguments: events.JSON(`{"n":21}`)}
	result, err := farTool(t, e).Call(patient(t), in)
	if err != nil || result.Status != runtime.Success || string(result.Result) != "42" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestHTTPReactor_StreamsInBothForms(t *testing.T) {
	for name, form := range map[string]struct{ kind, before, after, comment string }{
		"SSE":    {"text/event-stream", "event: message\nid: 1\ndata: ", "\n\n", ": still here\n\n"},
		"CRLF":   {"text/event-stream", "data:", "\r\n\r\n", ":\r\n\r\n"},
		"NDJSON": {"application/x-ndjson", "", "\n", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			e := far(t, func(w http.ResponseWriter, r *http.Request) {
				bodyOf(t, r)
				w.Header().Set("Content-Type", form.kind)
				for _, m := range []string{form.comment, form.before + `{"kind":"heartbeat"}` + form.after, form.before + `{"kind":"chunk","type":"text-delta","data":{"id":"t","delta":"h"}}` + form.after} {
					write(w, m)
				}
				<-seen // the chunk arrives before the answer is complete
				write(w, form.before+`{"kind":"result","assistantEvent":{"content":[{"type":"output_text","text":"hi"}]}}`+form.after)
				<-r.Context().Done() // and the result ends it
			})
			out := chunks{make(chan runtime.Chunk)}
			go func() {
				if c := <-out.got; c.Type != runtime.ChunkTextDelta || string(c.Data) != `{"id":"t","delta":"h"}` {
					t.Errorf("chunk %+v", c)
				}
				close(seen)
			}()
			got, err := farReactor(t, e).React(patient(t), &runtime.StepInput{}, out)
			if err != nil || string(got.AssistantEvent.Content[0]) != `{"type":"output_text","text":"hi"}` {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A message of several data lines is one, and a last line of NDJSON needs no line end.
func TestHTTPTool_FormsOfStreams(t *testing.T) {
	for _, form := range []struct{ kind, body string }{
		{"text/event-stream", "data: {\"kind\":\"result\",\ndata: \"status\":\"success\",\"result\":42}\n\n"},
		{"application/x-ndjson", doubled}, {"application/jsonl", doubled + "\n"}, {"application/ndjson", "\r\n" + doubled + "\r\n"},
	} {
		result, err := farTool(t, far(t, answers(200, form.kind, form.body))).Call(patient(t), &runtime.ToolInput{})
		if err != nil || string(result.Result) != "42" {
			t.Errorf("%q: %+v, %v", form.body, result, err)
		}
	}
}

func TestHTTPTool_RefusalsAndInvalidAnswers(t *testing.T) {
	ndjson, sse := "application/x-ndjson", "text/event-stream"
	for _, c := range []struct {
		status     int
		kind, body string
		retry      bool
		want       string
	}{
		{400, "application/json", `{"error":"no such order"}`, false, "has status 400: no such order"},
		{422, "application/json", `{"error":{"message":"bad n"}}`, false, "has status 422: bad n"},
		{404, "text/html", `<html>`, false, "has status 404"},
		{401, "text/plain", "wrong\nsignature", false, "has status 401: wrong signature"},
		{400, "application/json", `{"kind":"error","message":"told"}`, false, "has status 400: told"},
		{408, "", ``, true, "may have been made"}, {500, "text/plain", "boom", true, "has status 500: boom; the call may have been made"}, {503, "", ``, true, "may have been made"},
		{425, "", ``, true, "was not made"}, {429, "", ``, true, "was not made"},
		{302, "", ``, false, "redirects (status 302)"},
		{200, "text/html", `<html>`, false, `has the content type "text/html"`}, {204, "", ``, false, `has the content type ""`},
		{200, "application/json", `{"kind":`, false, "is not JSON"}, {200, "application/json", `[]`, false, "has the wrong shape"}, {200, "application/json", ``, false, "is not JSON"},
		{200, "application/json", `{"kind":"heartbeat"}`, false, "does not end an answer"}, {200, "application/json", `{"kind":"done"}`, false, `kind "done"`},
		{200, "application/json", `{"kind":"result","status":"fine"}`, false, "not success or error"},
		{200, "application/json", `{"kind":"error","message":"not now","retry":true}`, true, "not now"}, {200, "application/json", `{"kind":"error","message":"never"}`, false, "never"},
		{200, ndjson, "{\"kind\":\"heartbeat\"}\n", true, "ended before its last message"}, {200, ndjson, `{"kind":"result","status":"succ`, true, "ended before its last message"},
		{200, sse, "data: " + doubled + "\n", true, "ended before its last message"}, {200, sse, "data: x\n\n", false, "is not JSON"},
		{200, ndjson, `{"kind":"piece","piece":0}` + "\n", false, "asks for a piece"},
		{200, "application/json", strings.Repeat(" ", 2000) + doubled, false, "is too large"}, {200, ndjson, `{"x":"` + strings.Repeat("x", 2000) + "\n", false, "is too large"},
		{200, sse, strings.Repeat("data: x\n", 600), false, "is too large"}, {200, sse, strings.Repeat(": alive\n", 4000), false, "is too large"},
		{200, ndjson, strings.Repeat(`{"kind":"heartbeat"}`+"\n", 1000), false, "is too large"},
	} {
		_, err := farTool(t, far(t, answers(c.status, c.kind, c.body)), remote.MaxBytes(1000)).Call(patient(t), &runtime.ToolInput{})
		fails(t, err, c.retry, c.want)
		if retry, ok := retries(err); ok && retry.NotMade != (c.status == 425 || c.status == 429) {
			t.Errorf("%d: not made is %v", c.status, retry.NotMade)
		}
	}
}

func TestHTTPTool_RetryAfterIsRespected(t *testing.T) {
	for value, want := range map[string]func(time.Duration) bool{
		"7":        func(d time.Duration) bool { return d == 7*time.Second },
		"99999999": func(d time.Duration) bool { return d == time.Hour },
		"-1":       func(d time.Duration) bool { return d == 0 }, "soon": func(d time.Duration) bool { return d == 0 },
		time.Now().Add(30 * time.Minute).UTC().Format(http.TimeFormat): func(d time.Duration) bool { return d > 10*time.Minute && d <= 30*time.Minute },
	} {
		for _, status := range []int{429, 503} {
			e := far(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", value)
				w.WriteHeader(status)
			})
			_, err := farTool(t, e).Call(patient(t), &runtime.ToolInput{})
			if retry, ok := retries(err); !ok || !want(retry.After) {
				t.Errorf("%d %q: %v", status, value, err)
			}
		}
	}
}

func TestHTTPTool_EndlessAnswerIsClosed(t *testing.T) {
	sent := make(chan int64, 2)
	for _, kind := range []string{"application/json", "application/x-ndjson", "text/event-stream"} {
		e := far(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			block, total := []byte(strings.Repeat("x", 1<<20)), int64(0)
			for total < 2<<30 {
				n, err := w.Write(block)
				if total += int64(n); err != nil {
					break
				}
			}
			sent <- total
		})
		_, err := farTool(t, e).Call(patient(t), &runtime.ToolInput{})
		fails(t, err, false, "is too large")
		if total := <-sent; total > 256<<20 {
			t.Errorf("%s: %d bytes were taken", kind, total)
		}
	}
}

func TestHTTPTool_SilentEndpointIsLost(t *testing.T) {
	for name, begin := range map[string]string{"before the answer": "", "within it": `{"kind":"heartbeat"}` + "\n" + `{"kind":"resu`} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{})
			e := far(t, func(w http.ResponseWriter, r *http.Request) {
				bodyOf(t, r)
				if begin != "" {
					w.Header().Set("Content-Type", "application/x-ndjson")
					write(w, begin)
				}
				<-r.Context().Done()
				close(closed)
			})
			_, err := farTool(t, e, remote.Timing(50*time.Millisecond, 200*time.Millisecond)).Call(patient(t), &runtime.ToolInput{})
			fails(t, err, true, "no heartbeat for 200ms")
			if retry, _ := retries(err); retry == nil || retry.NotMade {
				t.Errorf("%v", err)
			}
			<-closed
		})
	}
}

func TestHTTPReactor_HeartbeatsKeepTheCall(t *testing.T) {
	const dead = 3 * time.Second
	e := far(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for began := time.Now(); time.Since(began) < dead+dead/2; time.Sleep(dead / 40) {
			write(w, ":\n\n")
		}
		write(w, `data: {"kind":"result","assistantEvent":{"content":[]}}`+"\n\n")
	})
	if _, err := farReactor(t, e, remote.Timing(50*time.Millisecond, dead)).React(patient(t), &runtime.StepInput{}, nil); err != nil {
		t.Error(err)
	}
}

func TestHTTPReactor_CancelClosesTheConnection(t *testing.T) {
	closed := make(chan struct{})
	e := far(t, func(w http.ResponseWriter, r *http.Request) {
		bodyOf(t, r)
		w.Header().Set("Content-Type", "text/event-stream")
		write(w, `data: {"kind":"chunk","type":"text-delta"}`+"\n\n")
		<-r.Context().Done()
		close(closed)
	})
	ctx, cancel := context.WithCancelCause(patient(t))
	why := errors.New("the run was stopped")
	out := chunks{make(chan runtime.Chunk, 1)}
	go func() {
		<-out.got
		cancel(why)
	}()
	if _, err := farReactor(t, e).React(ctx, &runtime.StepInput{}, out); !errors.Is(err, why) {
		t.Error(err)
	}
	<-closed
}

func TestHTTPTool_UnreachableCallWasNotMade(t *testing.T) {
	_, err := farTool(t, endpointAt(t, "http://127.0.0.1:1", "127.0.0.1")).Call(patient(t), &runtime.ToolInput{})
	fails(t, err, true, "the call was not made")
	if retry, _ := retries(err); retry == nil || !retry.NotMade {
		t.Errorf("%v", err)
	}
}

// A server that closes a connection which was used before, after it received a request,
// may have done its work: the transport does not repeat it.
func TestHTTPTool_BrokenConnectionMayHaveMadeTheCall(t *testing.T) {
	var calls atomic.Int32
	e := far(t, func(w http.ResponseWriter, r *http.Request) {
		bodyOf(t, r)
		if calls.Add(1) == 1 {
			answers(200, "application/json", doubled)(w, r)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	})
	tool := farTool(t, e)
	if _, err := tool.Call(patient(t), &runtime.ToolInput{}); err != nil {
		t.Fatal(err)
	}
	_, err := tool.Call(patient(t), &runtime.ToolInput{})
	fails(t, err, true, "may have been made")
	if retry, _ := retries(err); retry == nil || retry.NotMade || calls.Load() != 2 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

// An address inside is not connected to, whatever names it, and a redirect is not
// followed; the error does not say which address it was.
func TestHTTPTool_PrivateAddressesAreNotReached(t *testing.T) {
	var reached atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inner.Close()
	port := inner.URL[strings.LastIndexByte(inner.URL, ':'):]
	for _, url := range []string{inner.URL, "http://localhost" + port, "http://2130706433" + port, "http://[::ffff:127.0.0.1]" + port, "http://169.254.169.254/latest/meta-data"} {
		_, err := farTool(t, endpointAt(t, url)).Call(patient(t), &runtime.ToolInput{})
		if err == nil || reached.Load() != 0 {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if _, retried := retries(err); !strings.Contains(url, "2130706433") && (retried || !strings.Contains(err.Error(), "--egress-allow")) {
			t.Errorf("%s: %v", url, err)
		}
		if strings.Contains(url, "localhost") && strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, to := range []string{inner.URL, "http://169.254.169.254/latest/meta-data"} {
		outer := httptest.NewServer(http.RedirectHandler(to, http.StatusTemporaryRedirect))
		_, err := farTool(t, endpointAt(t, outer.URL, "127.0.0.0/8")).Call(patient(t), &runtime.ToolInput{})
		fails(t, err, false, "redirects (status 307), which is not followed")
		outer.Close()
	}
	if reached.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// A conversation that exceeds the limit of requests is shortened, and the reaction says
// what the reactor was shown.
func TestHTTPReactor_LongConversationIsShortened(t *testing.T) {
	var request struct {
		Items   []events.Item   `json:"items"`
		Omitted *events.Omitted `json:"omitted"`
	}
	e := far(t, func(w http.ResponseWriter, r *http.Request) {
		body := bodyOf(t, r)
		if err := json.Unmarshal(body, &request); err != nil || len(body) > 16*4000 {
			t.Errorf("%d bytes: %v", len(body), err)
		}
		answers(200, "application/json", `{"kind":"result","assistantEvent":{"content":[]}}`)(w, r)
	})
	in := &runtime.StepInput{}
	for range 100 {
		in.Items = append(in.Items, events.Item{ID: "itm_" + strings.Repeat("x", len(in.Items)), Type: events.Message, Content: events.JSON(`[{"type":"input_text","text":"` + strings.Repeat("y", 1000) + `"}]`)})
	}
	got, err := farReactor(t, e, remote.MaxBytes(4000)).React(patient(t), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(request.Items); n == 0 || n == 100 || request.Omitted == nil || got.MessagesForModel == nil || len(got.MessagesForModel.Items) != n {
		t.Errorf("%d items, omitted %+v, shown %+v", n, request.Omitted, got.MessagesForModel)
	}
}

func TestHTTP_InvalidEndpoints(t *testing.T) {
	good := endpointAt(t, "http://x.example/")
	for name, change := range map[string]func(*remote.Endpoint){
		"scheme": func(e *remote.Endpoint) { e.URL = "ftp://x.example/" }, "host": func(e *remote.Endpoint) { e.URL = "http:///x" },
		"keys": func(e *remote.Endpoint) { e.Keys = nil }, "client": func(e *remote.Endpoint) { e.Client = nil },
	} {
		e := good
		change(&e)
		_, err := remote.HTTPTool(e, runtime.ToolSpec{Name: "double"})
		_, err2 := remote.HTTPReactor(e)
		if err == nil || err2 == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := remote.HTTPTool(good, runtime.ToolSpec{Name: "double"}, remote.MaxBytes(0)); err == nil {
		t.Error("an invalid option is accepted")
	}
}
