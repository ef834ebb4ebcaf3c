package model_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// An endpoint that does not answer says so, once its attempts are used up or where another attempt
// cannot succeed; one that refuses a request has answered. One that is not for a tenant does not exist
// for it.
func TestEndpoints_Unanswered(t *testing.T) {
	t.Parallel()
	overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
		var answer func(w *modeltest.Stream)
		e := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) { answer(w) })
		endpoint := func(name string, attempts int, tenants ...string) model.Endpoint {
			return model.Endpoint{Name: name, Tenants: tenants, Reactor: e.Reactor(t, p.Codec, func(c *model.Config) { c.Provider, c.Attempts = name, attempts })}
		}
		all := model.NewEndpoints([]model.Endpoint{endpoint("one", 0), endpoint("two", 2), endpoint("ours", 1, "acme")}, "none")
		ask := func(tenant, name string, attempt int) (*runtime.Reaction, error) {
			in := modeltest.Input()
			in.Tenant, in.Attempt, in.Model.Endpoint = tenant, attempt, name
			return all.React(t.Context(), in, nil)
		}
		status := func(n int) func(w *modeltest.Stream) { return func(w *modeltest.Stream) { w.Refuse(n, "") } }
		for name, c := range map[string]struct {
			answer     func(w *modeltest.Stream)
			unanswered bool
			temporary  bool
		}{
			"429":            {status(429), true, true},
			"500":            {status(500), true, true},
			"529":            {status(529), true, true},
			"a broken off":   {func(w *modeltest.Stream) { begin(w, p) }, true, true},
			"a wrong key":    {status(401), true, false},
			"no quota":       {status(402), true, false},
			"a bad request":  {status(400), false, false},
			"not a stream":   {func(w *modeltest.Stream) { w.Refuse(200, "{}", "Content-Type", "application/json") }, true, false},
			"a policy":       {func(w *modeltest.Stream) { w.Data(p.Fail("content_policy_violation", "no")) }, false, false},
			"what is no SSE": {func(w *modeltest.Stream) { begin(w, p); w.Raw("data: {\n\n") }, true, false},
		} {
			answer = c.answer
			for _, a := range []struct {
				endpoint string
				attempt  int
				again    bool // before a fallback
				retry    bool // without one
			}{{"one", 1, false, true}, {"two", 1, true, true}, {"two", 2, false, false}, {"ours", 1, false, false}, {"", 1, false, true}} {
				_, err := ask("acme", a.endpoint, a.attempt)
				err = runtime.Returned(err)
				var unanswered *runtime.UnansweredError
				var later *runtime.RetryError
				if errors.As(err, &unanswered) != c.unanswered || c.unanswered && unanswered.Again != (a.again && c.temporary) {
					t.Errorf("%s, %+v: %#v", name, a, err)
				}
				if errors.As(err, &later) != (c.temporary && a.retry) {
					t.Errorf("%s, %+v, another attempt: %#v", name, a, err)
				}
			}
		}
		answer = func(w *modeltest.Stream) { w.Data(p.Tell(modeltest.Answer{Text: []string{"hi"}})...) }
		for tenant, want := range map[string]string{"acme": "", "other": "does not exist"} {
			got, err := ask(tenant, "ours", 1)
			var unanswered *runtime.UnansweredError
			if want == "" && (err != nil || got.Usage.Provider != "ours") || want != "" && (!errors.As(err, &unanswered) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %+v, %v", tenant, got, err)
			}
		}
	})
}
