package model_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/chat"
)

// A model whose endpoint does not answer is replaced by its fallback, and usage says which one
// answered; an endpoint that is not for a tenant does not exist for it.
func TestEndpoints_Fallback(t *testing.T) {
	asked := 0
	status := http.StatusTooManyRequests
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"model":"first"`) {
			asked++
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\n")
	}))
	defer e.Close()
	endpoint := func(name string, tenants ...string) model.Endpoint {
		r, err := model.New(model.Config{BaseURL: e.URL, Provider: name, Attempts: 2}, chat.Codec{})
		if err != nil {
			t.Fatal(err)
		}
		return model.Endpoint{Name: name, Reactor: r, Tenants: tenants}
	}
	all := model.NewEndpoints([]model.Endpoint{endpoint("one"), endpoint("two"), endpoint("ours", "acme")}, "none")
	ask := func(tenant string, attempt int, m runtime.Model) (*runtime.Reaction, error) {
		return all.React(t.Context(), &runtime.StepInput{Tenant: tenant, StepID: "stp_1", Attempt: attempt, Model: m, Items: []events.Item{
			{ID: "itm_1", Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hello"}]`)},
		}}, nil)
	}
	m := runtime.Model{Name: "m", Model: "first", Fallback: []runtime.Model{{Name: "n", Model: "second", Endpoint: "two"}}}
	for _, status = range []int{429, 500, 529} {
		if got, err := ask("acme", 1, m); err == nil {
			t.Errorf("%d: the first attempt was the last: %+v", status, got)
		}
		if got, err := ask("acme", 2, m); err != nil || got.Usage.Provider != "two" || got.Usage.Model != "second" {
			t.Errorf("%d: %+v, %v", status, got, err)
		}
	}
	status = 401
	if got, err := ask("acme", 1, m); err != nil || got.Usage.Provider != "two" {
		t.Errorf("a wrong key: %+v, %v", got, err)
	}
	status = 400
	if _, err := ask("acme", 2, m); err == nil {
		t.Error("a request that is refused was sent elsewhere")
	}
	if asked != 8 {
		t.Errorf("the first was asked %d times", asked)
	}
	for tenant, want := range map[string]string{"acme": "", "other": "does not exist"} {
		_, err := ask(tenant, 1, runtime.Model{Name: "m", Model: "second", Endpoint: "ours"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", tenant, err)
		}
	}
}
