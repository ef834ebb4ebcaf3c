package responses_test

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
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/responses"
)

// Each failure of an endpoint: whether it is temporary, how long to wait, the error,
// and that the endpoint is called only once.
func TestFailures(t *testing.T) {
	status := func(code int, body string, header ...string) func(*stream, *http.Request) {
		return func(w *stream, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.w.Header().Set(header[i], header[i+1])
			}
			w.w.WriteHeader(code)
			_, _ = w.w.Write([]byte(body))
		}
	}
	events := func(f func(w *stream)) func(*stream, *http.Request) {
		return func(w *stream, _ *http.Request) {
			w.event("response.output_text.delta", `"output_index":0,"item_id":"m","delta":"so far"`)
			f(w)
		}
	}
	failed := func(code string) func(*stream, *http.Request) {
		return events(func(w *stream) {
			w.event("response.failed", `"response":{"status":"failed","error":{"code":%q,"message":"it said"},"output":[]}`, code)
		})
	}
	for name, c := range map[string]struct {
		answer func(*stream, *http.Request)
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
		"408":                    {status(408, ``), true, 0, "408"},
		"400":                    {status(400, `{"error":{"message":"no such field","type":"invalid_request_error"}}`), false, 0, "400 Bad Request: no such field"},
		"401":                    {status(401, `{"error":{"message":"Incorrect API key provided: `+key+`"}}`), false, 0, "401 Unauthorized: Incorrect API key provided: ***"},
		"404":                    {status(404, ``), false, 0, "404"},
		"a redirect":             {status(307, ``, "Location", "http://127.0.0.1:1/"), false, 0, "307"},
		"a page":                 {status(200, `<html>`, "Content-Type", "text/html"), false, 0, "text/html, not with an event stream"},
		"no stream":              {status(200, `{"output":[]}`, "Content-Type", "application/json"), false, 0, "application/json, not with"},
		"nothing":                {status(200, ``, "Content-Type", "text/event-stream"), true, 0, "ended without response.completed"},
		"an end too early":       {events(func(*stream) {}), true, 0, "ended without response.completed"},
		"done too early":         {events(func(w *stream) { w.raw("data: [DONE]\n\n") }), true, 0, "ended without response.completed"},
		"a cut connection":       {events(func(*stream) { panic(http.ErrAbortHandler) }), true, 0, "broke off: unexpected EOF"},
		"an event of nonsense":   {events(func(w *stream) { w.raw("event: x\ndata: {\"type\":\n\n") }), false, 0, "cannot be read"},
		"an event that is none":  {events(func(w *stream) { w.raw("data: {}\n\n") }), false, 0, "an event has no type"},
		"an item that is none":   {events(func(w *stream) { w.completed(`{"type":"message","content":7}`) }), false, 0, "item 0 is not of its type"},
		"an invalid part":        {events(func(w *stream) { w.completed(`{"type":"message","content":[{"type":"output_text"}]}`) }), false, 0, "an invalid part"},
		"failed: the server":     {failed("server_error"), true, 0, "the model failed (server_error): it said"},
		"failed: the rate":       {failed("rate_limit_exceeded"), true, 0, "rate_limit_exceeded"},
		"failed: the prompt":     {failed("invalid_prompt"), false, 0, "the model failed (invalid_prompt): it said"},
		"failed without a word":  {events(func(w *stream) { w.event("response.failed", `"response":{"error":null}`) }), true, 0, "the model failed"},
		"cancelled":              {events(func(w *stream) { w.event("response.cancelled", "") }), true, 0, "cancelled"},
		"an error event":         {events(func(w *stream) { w.event("error", `"code":"server_error","message":"it said","param":null`) }), true, 0, "the model failed (server_error): it said"},
		"a final error event":    {events(func(w *stream) { w.event("error", `"code":"content_policy_violation","message":"it said"`) }), false, 0, "content_policy_violation"},
		"an error that is older": {events(func(w *stream) { w.raw("data: {\"error\":{\"message\":\"it said\",\"type\":\"server_error\"}}\n\n") }), true, 0, "the model failed (server_error): it said"},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, c.answer)
			got, err := e.reactor(t).React(t.Context(), input(), &watch{})
			if err == nil || got != nil {
				t.Fatalf("%v, %v", got, err)
			}
			var retry *runtime.RetryError
			if errors.As(err, &retry) != c.retry || c.retry && retry.After != c.after {
				t.Errorf("%#v", err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), e.URL) {
				t.Errorf("%q, not %q", err, c.want)
			}
			if e.count() != 1 {
				t.Errorf("asked %d times", e.count())
			}
		})
	}
}

// Retry-After may be a date.
func TestRetryAfterDate(t *testing.T) {
	e := serve(t, func(w *stream, _ *http.Request) {
		w.w.Header().Set("Retry-After", time.Now().Add(10*time.Minute).UTC().Format(http.TimeFormat))
		w.w.WriteHeader(429)
	})
	_, err := e.reactor(t).React(t.Context(), input(), nil)
	var retry *runtime.RetryError
	if !errors.As(err, &retry) || retry.After < 5*time.Minute || retry.After > 10*time.Minute {
		t.Errorf("%#v", err)
	}
}

// An answer of 50 MB is not read to its end, in any form.
func TestHugeAnswers(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for name, f := range map[string]func(w *stream) error{
		"many events": func(w *stream) error {
			w.event("response.output_text.delta", `"output_index":0,"item_id":"m","delta":%q`, big)
			return nil
		},
		"one event": func(w *stream) error {
			if !w.open {
				w.raw("data: ")
			}
			_, err := w.w.Write([]byte(big))
			return err
		},
		"comments": func(w *stream) error { w.raw(": " + big + "\n"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			written := 0
			e := serve(t, func(w *stream, r *http.Request) {
				for ; written < 50 && r.Context().Err() == nil; written++ {
					if f(w) != nil {
						return
					}
				}
			})
			_, err := e.reactor(t, func(c *model.Config) { c.MaxBytes = 4 << 20 }).React(t.Context(), input(), nil)
			var retry *runtime.RetryError
			if err == nil || errors.As(err, &retry) || !strings.Contains(err.Error(), "more than 4194304 bytes") {
				t.Errorf("%#v", err)
			}
			e.Close() // waits for the handler
			if written >= 50 {
				t.Error("all of it was read")
			}
		})
	}
	e := serve(t, func(w *stream, _ *http.Request) {
		w.w.WriteHeader(400)
		for range 50 {
			_, _ = w.w.Write([]byte(big))
		}
	})
	if _, err := e.reactor(t).React(t.Context(), input(), nil); err == nil || len(err.Error()) > 500 {
		t.Errorf("an error of 50 MB: %.600v", err)
	}
}

// A caller that ends a call gets its own reason. An idle or slow endpoint is not called again: it
// may be at work still, and is paid.
func TestTimeouts(t *testing.T) {
	var came chan struct{}
	hang := func(w *stream, r *http.Request) {
		w.event("response.output_text.delta", `"output_index":0,"item_id":"m","delta":"a"`)
		<-r.Context().Done()
	}
	silent := func(_ *stream, r *http.Request) { <-r.Context().Done() }
	drip := func(w *stream, r *http.Request) {
		for tick := time.NewTicker(5 * time.Millisecond); r.Context().Err() == nil; <-tick.C {
			w.raw(": still there\n\n")
		}
	}
	for name, c := range map[string]struct {
		answer func(*stream, *http.Request)
		change func(*model.Config)
		want   string
	}{
		"silence at once":       {silent, func(c *model.Config) { c.Idle = 50 * time.Millisecond }, "nothing came from the model's endpoint for 50ms"},
		"silence in the stream": {hang, func(c *model.Config) { c.Idle = 50 * time.Millisecond }, "nothing came"},
		"slowness":              {drip, func(c *model.Config) { c.Timeout = 200 * time.Millisecond }, "did not answer within 200ms"},
	} {
		_, err := serve(t, c.answer).reactor(t, c.change).React(t.Context(), input(), nil)
		var retry *runtime.RetryError
		var broke *runtime.BrokenOffError
		if errors.As(err, &retry) || !errors.As(err, &broke) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %#v", name, err)
		}
	}
	came = make(chan struct{}, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the run was stopped")
	go func() { <-came; cancel(stopped) }()
	if _, err := serve(t, hang).reactor(t).React(ctx, input(), &watch{came: came}); !errors.Is(err, stopped) {
		t.Errorf("ended by the caller: %#v", err)
	}
}

// A connection that cannot be made, or that breaks, may be retried. Only the operator's
// log has the endpoint's address: tenants read the error.
func TestReact_ConnectionFailureNamesNoAddress(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*stream, *http.Request)
		closed bool
		want   string
	}{
		"nothing listens": {func(*stream, *http.Request) {}, true, "no connection"},
		"broken off": {func(s *stream, _ *http.Request) {
			s.event("response.created", `"response":{}`)
			conn, _, err := http.NewResponseController(s.w).Hijack()
			if err == nil {
				err = errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close()) // a reset, not an end
			}
			if err != nil {
				t.Error(err)
			}
		}, false, "broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, c.answer)
			var told bytes.Buffer
			r := e.reactor(t, func(c *model.Config) { c.Logger = zerolog.New(&told) })
			address := strings.TrimPrefix(e.URL, "http://")
			if c.closed {
				e.Close()
			}
			_, err := r.React(t.Context(), input(), nil)
			var retry *runtime.RetryError
			if !errors.As(err, &retry) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%#v", err)
			}
			if text := err.Error(); strings.Contains(text, "127.0.0.1") || strings.Contains(text, "/v1") || strings.Contains(text, "tcp") {
				t.Errorf("the tenant reads %q", text)
			}
			if c.closed && !strings.Contains(told.String(), address) || told.Len() == 0 {
				t.Errorf("the operator's log has %q; want %s in it", told.String(), address)
			}
		})
	}
}

// No secret in an endpoint's message gets into an error.
func TestErrorsHoldNoSecrets(t *testing.T) {
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
		for name, answer := range map[string]func(w *stream, r *http.Request){
			"status": func(w *stream, _ *http.Request) { w.w.WriteHeader(400); _, _ = w.w.Write([]byte(said)) },
			"event": func(w *stream, _ *http.Request) {
				w.event("error", `"message":%q`, strings.ReplaceAll(said, "\x1b", ""))
			},
			"failed": func(w *stream, _ *http.Request) {
				w.event("response.failed", `"response":{"error":{"message":%q}}`, strings.ReplaceAll(said, "\x1b", ""))
			},
		} {
			_, err := serve(t, answer).reactor(t).React(t.Context(), input(), nil)
			if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%#v %+v", err, errors.Unwrap(err)), secret) || len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %.50q: %q", name, said, err)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	env := map[string]string{"OPENAI_BASE_URL": "http://a/v1", "OPENAI_API_KEY": "a"}
	if c := responses.FromEnv(func(n string) string { return env[n] }); c.BaseURL != "http://a/v1" || c.APIKey != "a" {
		t.Errorf("%+v", c)
	}
	env["SKEIN_OPENAI_BASE_URL"], env["SKEIN_OPENAI_API_KEY"] = "http://b/v1", "b"
	if c := responses.FromEnv(func(n string) string { return env[n] }); c.BaseURL != "http://b/v1" || c.APIKey != "b" {
		t.Errorf("%+v", c)
	}
	p := responses.Codec{}.Protocol()
	if c := responses.FromEnv(func(string) string { return "" }).WithDefaults(p); c.BaseURL != responses.DefaultBaseURL || c.Validate(p) != nil {
		t.Errorf("%+v", c)
	}
	_, err := responses.New(model.Config{BaseURL: "https://eva:hunter22@example.com/v1", APIKey: "with blank", Timeout: -1, Idle: -1, MaxBytes: -1})
	if err == nil {
		t.Fatal("all of it is accepted")
	}
	for _, want := range []string{"user or password", "SKEIN_OPENAI_API_KEY", "timeouts", "limit"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter22") || strings.Contains(err.Error(), "with blank") {
			t.Errorf("%v does not say %q, or too much", err, want)
		}
	}
	for _, bad := range []string{"ftp://x", "x", "http://", "http://x/?k=1", "://"} {
		if _, err := responses.New(model.Config{BaseURL: bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// The reactor reads nothing from the environment by itself, and sends no key if the
// configuration has none.
func TestReactor_ReadsNoEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-from-elsewhere")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/")
	e := serve(t, func(w *stream, _ *http.Request) { w.completed() })
	if _, err := e.reactor(t, func(c *model.Config) { c.APIKey = "" }).React(t.Context(), input(), nil); err != nil {
		t.Fatal(err)
	}
	if got := e.asked[0].key; got != "" {
		t.Errorf("a key was sent: %q", got)
	}
}

// A conversation that is too long for the model is halved until the model accepts it,
// the oldest results first, whatever the endpoint's error is; one that cannot become
// shorter fails with the endpoint's message.
func TestReact_ConversationTooLongForTheModel(t *testing.T) {
	result := `{"type":"tool-look","toolCallId":"c%d","input":{},"state":"output-available","output":"` + strings.Repeat("o", 4000) + `"}`
	items := []events.Item{message("itm_0", events.User, `{"type":"input_text","text":"look"}`)}
	for i := range 10 {
		items = append(items, message(fmt.Sprintf("itm_%d", i+1), events.Assistant, fmt.Sprintf(result, i)))
	}
	items = append(items, message("itm_last", events.User, `{"type":"input_text","text":"and?"}`))
	for name, refuse := range map[string]func(*stream){
		"400": func(w *stream) {
			w.w.WriteHeader(400)
			_, _ = w.w.Write([]byte(`{"error":{"code":"context_length_exceeded","message":"too many tokens"}}`))
		},
		"413": func(w *stream) { w.w.WriteHeader(413) },
		"an event": func(w *stream) {
			w.event("response.failed", `"response":{"status":"failed","error":{"code":"context_length_exceeded","message":"too many tokens"},"output":[]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, nil)
			takes := 12_000
			e.answer = func(w *stream, _ *http.Request) {
				if n := e.count(); len(e.body(t, n-1)) > takes {
					refuse(w)
					return
				}
				w.completed(says("fine"))
			}
			got, err := e.reactor(t).React(t.Context(), input(items...), nil)
			if err != nil {
				t.Fatal(err)
			}
			body := string(e.body(t, e.count()-1))
			if e.count() != 3 || !strings.Contains(body, "and?") || !strings.Contains(body, "left out: 4002 bytes") || len(got.MessagesForModel.Items) == 0 {
				t.Errorf("it was asked %d times, at last with %.500s", e.count(), body)
			}
			takes = 0
			before := e.count()
			if _, err := e.reactor(t).React(t.Context(), input(items...), nil); err == nil || e.count() > before+6 {
				t.Errorf("it was asked %d times more: %v", e.count()-before, err)
			}
		})
	}
}
