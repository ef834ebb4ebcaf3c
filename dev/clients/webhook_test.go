package clients_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// The released library of Standard Webhooks takes what a webhook sends, under each of two secrets.
func TestWebhook_StandardWebhooks(t *testing.T) {
	dir, node := install(t, "webhook.mjs")
	t.Setenv("SKEIN_TEST_HOOK_NEW", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	t.Setenv("SKEIN_TEST_HOOK_OLD", "a secret of 16 bytes or more")
	type request struct {
		Secret  string            `json:"secret"`
		Format  string            `json:"format,omitzero"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	sent := make(chan request, 1)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the server has stopped
		}
		headers := map[string]string{}
		for name := range r.Header {
			headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		select {
		case sent <- request{Headers: headers, Body: string(body)}:
		default:
		}
	}))
	t.Cleanup(endpoint.Close)
	s := skeintest.Start(t, func(o *skein.Options) {
		o.EgressAllow = []string{"127.0.0.1"}
		o.HTTPSecrets = []string{"acme:SKEIN_TEST_HOOK_NEW=" + endpoint.URL, "acme:SKEIN_TEST_HOOK_OLD=" + endpoint.URL}
	})
	_, err := s.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.WebhookKind, Definition: []byte(`{"name":"orders","http":{"url":"` + endpoint.URL + `","secretEnv":["SKEIN_TEST_HOOK_NEW","SKEIN_TEST_HOOK_OLD"]}}`)},
	}})
	s.Must(err)
	_, err = s.Client("acme").Send(t.Context(), "", events.CreateThread{})
	s.Must(err)
	got := <-sent
	var event struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(got.Body), &event); err != nil || event.ID == "" || event.ID != got.Headers["webhook-id"] {
		t.Errorf("%v: the id is %q, that of the event %q", err, got.Headers["webhook-id"], event.ID)
	}
	var lines strings.Builder
	for secret, format := range map[string]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": "", "a secret of 16 bytes or more": "raw"} {
		got.Secret, got.Format = secret, format
		line, err := json.Marshal(got)
		s.Must(err)
		lines.Write(append(line, '\n'))
	}
	cmd := exec.CommandContext(t.Context(), node, "webhook.mjs")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(lines.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
