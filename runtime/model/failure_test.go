package model_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// overProtocols runs a test for each protocol.
func overProtocols(t *testing.T, f func(t *testing.T, p modeltest.Protocol)) {
	t.Helper()
	for _, p := range modeltest.Protocols() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

// begin writes the beginning of an answer, with its first text.
func begin(w *modeltest.Stream, p modeltest.Protocol) { beginWith(w, p, "so far") }

func beginWith(w *modeltest.Stream, p modeltest.Protocol, text string) {
	for _, data := range p.Tell(modeltest.Answer{Text: []string{text}}) {
		w.Data(data)
		if strings.Contains(data, text) {
			return
		}
	}
}

// Each failure of an endpoint: whether it is temporary, how long to wait, the error, and that the
// endpoint is called only once. A failure in mid-stream is an answer that broke off.
func TestFailures(t *testing.T) {
	t.Parallel()
	type answer = func(w *modeltest.Stream, p modeltest.Protocol)
	status := func(code int, body string, header ...string) answer {
		return func(w *modeltest.Stream, _ modeltest.Protocol) { w.Refuse(code, body, header...) }
	}
	events := func(f answer) answer {
		return func(w *modeltest.Stream, p modeltest.Protocol) { begin(w, p); f(w, p) }
	}
	raw := func(text string) answer {
		return events(func(w *modeltest.Stream, _ modeltest.Protocol) { w.Raw(text) })
	}
	failed := func(code string) answer {
		return events(func(w *modeltest.Stream, p modeltest.Protocol) { w.Data(p.Fail(code, "it said")) })
	}
	for name, c := range map[string]struct {
		answer answer
		retry  bool
		after  time.Duration
		want   string
	}{
		"429":                    {status(429, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, "Retry-After", "7"), true, 7 * time.Second, "429 Too Many Requests: slow down"},
		"429 with milliseconds":  {status(429, ``, "Retry-After-Ms", "1500", "Retry-After", "9"), true, 1500 * time.Millisecond, "429"},
		"429 without a time":     {status(429, `{}`), true, 0, "429"},
		"429 for a year":         {status(429, ``, "Retry-After", "31536000"), true, time.Hour, "429"},
		"429 with nonsense":      {status(429, ``, "Retry-After", "NaN"), true, 0, "429"},
		"429 with less than now": {status(429, ``, "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"), true, 0, "429"},
		"500":                    {status(500, `{"error":"broke"}`), true, 0, "500 Internal Server Error: broke"},
		"502 of a proxy":         {status(502, "<html>\n<h1>Bad gateway</h1>"), true, 0, "502 Bad Gateway: <html> <h1>Bad gateway</h1>"},
		"503 with a time":        {status(503, `{"message":"later"}`, "Retry-After", "2"), true, 2 * time.Second, "503 Service Unavailable: later"},
		"529":                    {status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Retry-After", "3"), true, 3 * time.Second, "529: Overloaded"},
		"408":                    {status(408, ``), true, 0, "408"},
		"400":                    {status(400, `{"error":{"message":"no such field","type":"invalid_request_error"}}`), false, 0, "400 Bad Request: no such field"},
		"401":                    {status(401, `{"error":{"message":"Incorrect API key provided: `+modeltest.Key+`"}}`), false, 0, "401 Unauthorized: Incorrect API key provided: ***"},
		"404":                    {status(404, ``), false, 0, "404"},
		"a redirect":             {status(307, ``, "Location", "http://127.0.0.1:1/"), false, 0, "307"},
		"a page":                 {status(200, `<html>`, "Content-Type", "text/html"), false, 0, "text/html, not with an event stream"},
		"no stream":              {status(200, `{"output":[]}`, "Content-Type", "application/json"), false, 0, "application/json, not with"},
		"nothing":                {status(200, ``, "Content-Type", "text/event-stream"), true, 0, "ended without LAST"},
		"an end too early":       {raw(""), true, 0, "ended without LAST"},
		"done too early":         {raw("data: [DONE]\n\n"), true, 0, "ended without LAST"},
		"half of an event":       {raw("data: {\"type\":"), true, 0, "ended without LAST"},
		"a cut connection":       {events(func(*modeltest.Stream, modeltest.Protocol) { panic(http.ErrAbortHandler) }), true, 0, "broke off: unexpected EOF"},
		"an event of nonsense":   {raw("event: x\ndata: {\"type\":\n\n"), false, 0, "cannot be read"},
		"failed: the server":     {failed("server_error"), true, 0, "the model failed (server_error): it said"},
		"failed: the rate":       {failed("rate_limit_exceeded"), true, 0, "rate_limit_exceeded"},
		"failed: overloaded":     {failed("overloaded_error"), true, 0, "the model failed (overloaded_error): it said"},
		"failed: the prompt":     {failed("invalid_prompt"), false, 0, "the model failed (invalid_prompt): it said"},
		"failed: a policy":       {failed("content_policy_violation"), false, 0, "content_policy_violation"},
		"an error that is older": {raw("data: {\"error\":{\"message\":\"it said\",\"type\":\"server_error\"}}\n\n"), true, 0, "the model failed (server_error): it said"},
		"an error of a router":   {raw("data: {\"error\":{\"message\":\"it said\",\"code\":502}}\n\n"), true, 0, "the model failed (502): it said"},
		"a refusal of a router":  {raw("data: {\"error\":{\"message\":\"it said\",\"code\":400}}\n\n"), false, 0, "the model failed (400): it said"},
		"an error that is text":  {raw("data: {\"error\":\"it said\"}\n\n"), true, 0, "the model failed: it said"},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
				w := &modeltest.Watch{}
				e := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) { c.answer(w, p) })
				got, err := e.Reactor(t, p.Codec).React(t.Context(), modeltest.Input(), w)
				if err == nil || got != nil {
					t.Fatalf("%v, %v", got, err)
				}
				var retry *runtime.RetryError
				var broke *runtime.BrokenOffError
				if errors.As(err, &retry) != c.retry || c.retry && retry.After != c.after {
					t.Errorf("%#v", err)
				}
				if len(w.Chunks) > 0 && c.retry && !errors.As(err, &broke) {
					t.Errorf("after its text: %#v", err)
				}
				if want := strings.Replace(c.want, "LAST", p.Codec.Protocol().LastName, 1); !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), e.URL) {
					t.Errorf("%q, not %q", err, want)
				}
				if e.Count() != 1 {
					t.Errorf("asked %d times", e.Count())
				}
			})
		})
	}
}

// Retry-After may be a date.
func TestRetryAfterDate(t *testing.T) {
	t.Parallel()
	overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
		e := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) {
			w.Refuse(429, "", "Retry-After", time.Now().Add(10*time.Minute).UTC().Format(http.TimeFormat))
		})
		_, err := e.Reactor(t, p.Codec).React(t.Context(), modeltest.Input(), nil)
		var retry *runtime.RetryError
		if !errors.As(err, &retry) || retry.After < 5*time.Minute || retry.After > 10*time.Minute {
			t.Errorf("%#v", err)
		}
	})
}

// An answer of 50 MB is not read to its end, in any form.
func TestHugeAnswers(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 1<<20)
	for name, f := range map[string]func(w *modeltest.Stream, p modeltest.Protocol) error{
		"many events": func(w *modeltest.Stream, p modeltest.Protocol) error {
			beginWith(w, p, big)
			return nil
		},
		"one event": func(w *modeltest.Stream, _ modeltest.Protocol) error {
			if !w.Begun() {
				w.Raw("data: ")
			}
			_, err := w.W.Write([]byte(big))
			return err
		},
		"comments": func(w *modeltest.Stream, _ modeltest.Protocol) error { w.Raw(": " + big + "\n"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
				written := 0
				e := modeltest.Serve(t, func(w *modeltest.Stream, r *http.Request) {
					for ; written < 50 && r.Context().Err() == nil; written++ {
						if f(w, p) != nil {
							return
						}
					}
				})
				_, err := e.Reactor(t, p.Codec, func(c *model.Config) { c.MaxBytes = 4 << 20 }).React(t.Context(), modeltest.Input(), nil)
				var retry *runtime.RetryError
				if err == nil || errors.As(err, &retry) || !strings.Contains(err.Error(), "more than 4194304 bytes") {
					t.Errorf("%#v", err)
				}
				e.Close() // waits for the handler
				if written >= 50 {
					t.Error("all of it was read")
				}
			})
		})
	}
	e := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) { w.Refuse(400, strings.Repeat(big, 50)) })
	if _, err := e.Reactor(t, modeltest.Protocols()[0].Codec).React(t.Context(), modeltest.Input(), nil); err == nil || len(err.Error()) > 500 {
		t.Errorf("an error of 50 MB: %.600v", err)
	}
}

// A caller that ends a call gets its own reason. An idle or slow endpoint is not called again: it
// may be at work still, and is paid. An answer that is whole needs no end of its stream.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
		hang := func(w *modeltest.Stream, r *http.Request) {
			begin(w, p)
			<-r.Context().Done()
		}
		silent := func(_ *modeltest.Stream, r *http.Request) { <-r.Context().Done() }
		drip := func(w *modeltest.Stream, r *http.Request) {
			for tick := time.NewTicker(5 * time.Millisecond); r.Context().Err() == nil; <-tick.C {
				w.Raw(": still there\n\n")
			}
		}
		whole := func(w *modeltest.Stream, r *http.Request) {
			list := p.Tell(modeltest.Answer{Text: []string{"so far"}})
			w.Data(list...)
			<-r.Context().Done()
		}
		idle := func(c *model.Config) { c.Idle = 50 * time.Millisecond }
		for name, c := range map[string]struct {
			answer func(*modeltest.Stream, *http.Request)
			change func(*model.Config)
			want   string
		}{
			"silence at once":       {silent, idle, "nothing came from the model's endpoint for 50ms"},
			"silence in the stream": {hang, idle, "nothing came"},
			"slowness":              {drip, func(c *model.Config) { c.Timeout = 200 * time.Millisecond }, "did not answer within 200ms"},
		} {
			_, err := modeltest.Serve(t, c.answer).Reactor(t, p.Codec, c.change).React(t.Context(), modeltest.Input(), nil)
			var retry *runtime.RetryError
			var broke *runtime.BrokenOffError
			if errors.As(err, &retry) || !errors.As(err, &broke) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %#v", name, err)
			}
		}
		if got, err := modeltest.Serve(t, whole).Reactor(t, p.Codec).React(t.Context(), modeltest.Input(), nil); err != nil || len(got.AssistantEvent.Content) != 1 {
			t.Errorf("silence after the answer: %v, %v", got, err)
		}
		came := make(chan struct{}, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("the run was stopped")
		go func() { <-came; cancel(stopped) }()
		if _, err := modeltest.Serve(t, hang).Reactor(t, p.Codec).React(ctx, modeltest.Input(), &modeltest.Watch{Came: came}); !errors.Is(err, stopped) {
			t.Errorf("ended by the caller: %#v", err)
		}
	})
}

// A connection that cannot be made, or that breaks, may be retried. Only the operator's
// log has the endpoint's address: tenants read the error.
func TestReact_ConnectionFailureNamesNoAddress(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"nothing listens": true, "broken off": false} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
				e := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) {
					begin(w, p)
					conn, _, err := http.NewResponseController(w.W).Hijack()
					if err == nil {
						err = errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close()) // a reset, not an end
					}
					if err != nil {
						t.Error(err)
					}
				})
				var told bytes.Buffer
				r := e.Reactor(t, p.Codec, func(c *model.Config) { c.Logger = zerolog.New(&told) })
				want := "broke off"
				if closed {
					e.Close()
					want = "no connection"
				}
				_, err := r.React(t.Context(), modeltest.Input(), nil)
				var retry *runtime.RetryError
				if !errors.As(err, &retry) || !strings.Contains(err.Error(), want) {
					t.Fatalf("%#v", err)
				}
				if text := err.Error(); strings.Contains(text, "127.0.0.1") || strings.Contains(text, "/v1") || strings.Contains(text, "tcp") {
					t.Errorf("the tenant reads %q", text)
				}
				if address := strings.TrimPrefix(e.URL, "http://"); closed && !strings.Contains(told.String(), address) || told.Len() == 0 {
					t.Errorf("the operator's log has %q; want %s in it", told.String(), address)
				}
			})
		})
	}
}

// No secret in an endpoint's message gets into an error.
func TestErrorsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const key = modeltest.Key
	for said, secret := range map[string]string{
		"the key " + key + " is wrong":                       key,
		"the key sk-proj-abcDEF0123456 is wrong":             "abcDEF0123456",
		"https://eva:hunter22@example.com/x is gone":         "hunter22",
		"Authorization: Bearer abc.def.ghi":                  "abc.def.ghi",
		"api_key=abcdef12345 is invalid":                     "abcdef12345",
		`{"password": "hunter22"}`:                           "hunter22",
		strings.Repeat("z", 290) + " " + key:                 "sk-test",
		strings.Repeat("word ", 1000) + "the tail of it":     "tail",
		"two\nlines\x1b[31m and a colour":                    "\x1b",
		"https://user@example.com and " + key + key + "more": key,
	} {
		overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
			for name, answer := range map[string]func(w *modeltest.Stream){
				"status": func(w *modeltest.Stream) { w.Refuse(400, said) },
				"event":  func(w *modeltest.Stream) { w.Data(p.Fail("", strings.ReplaceAll(said, "\x1b", ""))) },
			} {
				_, err := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) { answer(w) }).Reactor(t, p.Codec).React(t.Context(), modeltest.Input(), nil)
				if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%#v %+v", err, errors.Unwrap(err)), secret) || len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %.50q: %q", name, said, err)
				}
			}
		})
	}
}

// A conversation that is too long for the model is halved until the model accepts it,
// the oldest results first, whatever the endpoint's error is; one that cannot become
// shorter fails with the endpoint's message.
func TestReact_ConversationTooLongForTheModel(t *testing.T) {
	t.Parallel()
	result := `{"type":"tool-look","toolCallId":"c%d","input":{},"state":"output-available","output":"` + strings.Repeat("o", 4000) + `"}`
	items := []events.Item{modeltest.Message("itm_0", events.User, `{"type":"input_text","text":"look"}`)}
	for i := range 10 {
		items = append(items, modeltest.Message(fmt.Sprintf("itm_%d", i+1), events.Assistant, fmt.Sprintf(result, i)))
	}
	items = append(items, modeltest.Message("itm_last", events.User, `{"type":"input_text","text":"and?"}`))
	overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
		code, said := "context_length_exceeded", "too many tokens"
		if p.Name == "messages" {
			code, said = "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"
		}
		for name, refuse := range map[string]func(*modeltest.Stream){
			"400":      func(w *modeltest.Stream) { w.Refuse(400, `{"error":{"code":"`+code+`","message":"`+said+`"}}`) },
			"413":      func(w *modeltest.Stream) { w.Refuse(413, "") },
			"an event": func(w *modeltest.Stream) { w.Data(p.Fail(code, said)) },
		} {
			e := modeltest.Serve(t, nil)
			takes := 12_000
			e.Answer = func(w *modeltest.Stream, _ *http.Request) {
				if n := e.Count(); len(e.Body(t, n-1)) > takes {
					refuse(w)
					return
				}
				w.Data(p.Tell(modeltest.Answer{Text: []string{"fine"}})...)
			}
			got, err := e.Reactor(t, p.Codec).React(t.Context(), modeltest.Input(items...), nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			body := string(e.Body(t, e.Count()-1))
			if e.Count() != 3 || !strings.Contains(body, "and?") || !strings.Contains(body, "left out: 4002 bytes") || len(got.MessagesForModel.Items) == 0 {
				t.Errorf("%s: it was asked %d times, at last with %.500s", name, e.Count(), body)
			}
			takes = 0
			before := e.Count()
			if _, err := e.Reactor(t, p.Codec).React(t.Context(), modeltest.Input(items...), nil); err == nil || e.Count() > before+6 {
				t.Errorf("%s: it was asked %d times more: %v", name, e.Count()-before, err)
			}
		}
	})
}
