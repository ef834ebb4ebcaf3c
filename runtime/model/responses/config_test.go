package responses_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/responses"
)

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
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) { completed(w) })
	if _, err := reactor(t, e, func(c *model.Config) { c.APIKey = "" }).React(t.Context(), modeltest.Input(), nil); err != nil {
		t.Fatal(err)
	}
	if got := e.Request(t, 0).Header.Get("Authorization"); got != "" {
		t.Errorf("a key was sent: %q", got)
	}
}
